package model_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/zklock/zklock/test/harness"
)

const dir = "../../spec"

var update = flag.Bool("update", false, "write the results into the table of spec/README.md")

func TestMain(m *testing.M) { os.Exit(harness.Main(m)) }

func models(t *testing.T) []*Model {
	t.Helper()
	all, err := Models(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("only %d models in %s", len(all), dir)
	}
	return all
}

// TestModels runs every check of every model, two at a time on two processors.
func TestModels(t *testing.T) {
	if err := Missing(); err != nil {
		harness.SkipOrFail(t, err.Error())
	}
	all := models(t)
	rows := make([][]string, len(all)) // one element per check
	t.Run("all", func(t *testing.T) {
		for i, m := range all {
			rows[i] = make([]string, len(m.Checks))
			for j, c := range m.Checks {
				t.Run(m.Name+"/"+c.Name(), func(t *testing.T) {
					t.Parallel()
					r, err := m.Search(t.Context(), c, t.TempDir())
					if err != nil {
						t.Fatal(err)
					}
					if err := c.Judge(r); err != nil {
						t.Fatal(err)
					}
					rows[i][j] = Row(m, c, r)
					t.Logf("%d states, %.0f MB, %v", r.States, r.Memory, r.Elapsed)
				})
			}
		}
	})
	if *update && !t.Failed() {
		writeTable(t, rows)
	}
}

func writeTable(t *testing.T, rows [][]string) {
	t.Helper()
	var flat []string
	for _, r := range rows {
		for _, row := range r {
			if row == "" {
				t.Fatal("the table needs a run of all checks")
			}
			flat = append(flat, row)
		}
	}
	path := filepath.Join(dir, "README.md")
	document, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err := Replace(string(document), Table(flat))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestFlagsMatchHeader checks that the header and the model have the same flags, and that
// each model has at least three broken variants and one state to reach.
func TestFlagsMatchHeader(t *testing.T) {
	for _, m := range models(t) {
		if names := m.unmatched(); len(names) > 0 {
			t.Errorf("%s: in the header or in the model only: %v", m.Name, names)
		}
		counts := map[Want]int{}
		for _, c := range m.Checks {
			counts[c.Want]++
		}
		if counts[Broken] < 3 || counts[Reach] == 0 {
			t.Errorf("%s: %d broken variants and %d states to reach", m.Name, counts[Broken], counts[Reach])
		}
	}
}

func TestTableHasEveryCheck(t *testing.T) {
	document, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(document), tableBegins)
	table, _, _ := strings.Cut(rest, tableEnds)
	for _, m := range models(t) {
		for _, c := range m.Checks {
			want, _, _ := strings.Cut(Row(m, c, Result{Kind: c.By}), " | 0 |")
			if !strings.Contains(table, want+" | ") {
				t.Errorf("spec/README.md lacks %q (make spec-table)", want)
			}
		}
	}
}

var (
	codeFile = regexp.MustCompile(`([\w/]+\.go) \(([\w, ]+)\)`)
	starts   = regexp.MustCompile(`\n \*\s*`)
)

// TestCodeInHeaderExists checks that the files in a header exist and declare the names in
// the header.
func TestCodeInHeaderExists(t *testing.T) {
	for _, m := range models(t) {
		header, _, _ := strings.Cut(m.source, "*/")
		_, code, _ := strings.Cut(header, "\n * code: ")
		code, _, _ = strings.Cut(code, "\n *\n")
		code = starts.ReplaceAllString(code, " ")
		named := codeFile.FindAllStringSubmatch(code, -1)
		if len(named) == 0 || len(named) != strings.Count(code, ".go") {
			t.Errorf("%s: code is not named as path/file.go (name, name): %s", m.Name, code)
		}
		for _, file := range named {
			text, err := os.ReadFile(filepath.Join("../..", file[1]))
			if err != nil {
				t.Errorf("%s: %v", m.Name, err)
				continue
			}
			for name := range strings.SplitSeq(file[2], ", ") {
				declared := regexp.MustCompile(`(?m)^(func (\(.*?\) )?|type )` + name + `\b`)
				if !declared.Match(text) {
					t.Errorf("%s: %s declares no %s", m.Name, file[1], name)
				}
			}
		}
	}
}
