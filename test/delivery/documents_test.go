package delivery

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents returns the documents that name tests.
func documents() []string { return []string{"GUARANTEES.md", "SECURITY.md", "docs/bad-input.md"} }

// TestDocumentsNameExistingTests checks that a test named `directory.Test` exists in that
// directory, and that each row of a table with a column of tests names one.
func TestDocumentsNameExistingTests(t *testing.T) {
	t.Chdir("../..")
	named := regexp.MustCompile("`([\\w./-]+)\\.((?:Test|Fuzz|Example)\\w+)`(?: \\(((?:[A-Z]\\w+(?:, )?)+)\\))?")
	declared := testFunctions(t)
	for _, name := range documents() {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		found := named.FindAllStringSubmatch(string(text), -1)
		for _, m := range found {
			if !declared[m[1]+"."+m[2]] {
				t.Errorf("%s names %s.%s, which does not exist", name, m[1], m[2])
				continue
			}
			for part := range strings.SplitSeq(m[3], ", ") {
				if !mentions(t, m[1], part) {
					t.Errorf("%s names %s of %s.%s, of which the package knows nothing", name, part, m[1], m[2])
				}
			}
		}
		if len(found) == 0 {
			t.Errorf("%s names no test", name)
		}
		for _, row := range rowsWithTests(string(text)) {
			if !named.MatchString(row) {
				t.Errorf("%s: no test shows this row: %s", name, row)
			}
		}
	}
}

// mentions reports whether the code of a package, or of test/locktest, contains a word, such as
// the name of a test from a table.
func mentions(t *testing.T, pkg, word string) bool {
	t.Helper()
	if pkg == "zklock" {
		pkg = "."
	}
	files, err := filepath.Glob(filepath.Join(pkg, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	shared, err := filepath.Glob("test/locktest/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range append(files, shared...) {
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(code), word) {
			return true
		}
	}
	return false
}

// rowsWithTests returns the rows of tables whose last column is "shown by".
func rowsWithTests(text string) (rows []string) {
	within := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			within = false
		case strings.HasSuffix(line, "| shown by |"):
			within = true
		case within && !strings.HasPrefix(line, "|---"):
			rows = append(rows, line)
		}
	}
	return rows
}

func TestDocumentsNameExistingFiles(t *testing.T) {
	t.Chdir("../..")
	file := regexp.MustCompile("`([\\w-]+/[\\w./-]+\\.(?:pml|txtar|md|go|conf|json))`")
	for _, name := range documents() {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, m := range file.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// testFunctions returns the test functions of all modules, as "directory.Test".
func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w*)\(`)
	declared := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		pkg := filepath.ToSlash(filepath.Dir(path))
		if pkg == "." {
			pkg = "zklock"
		}
		for _, m := range function.FindAllSubmatch(code, -1) {
			declared[pkg+"."+string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return declared
}

// TestCommandsOfLongRunsExist checks that the commands in docs/how-zklock-is-tested.md
// name tests and flags that exist.
func TestCommandsOfLongRunsExist(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile("docs/how-zklock-is-tested.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile("`(?:cd (\\w+) && )?go test (\\S+) -run '?([^' `]+)'?([^`]*)`")
	flag := regexp.MustCompile(` -([\w.-]+)`)
	own := []string{"timeout", "v", "count"} // flags of go test
	declared := testFunctions(t)
	found := command.FindAllStringSubmatch(string(text), -1)
	if len(found) < 6 {
		t.Errorf("%d commands", len(found))
	}
	for _, m := range found {
		pkg := filepath.ToSlash(filepath.Join(m[1], m[2]))
		pattern, err := regexp.Compile(strings.ReplaceAll(m[3], `\|`, "|"))
		if err != nil {
			t.Error(err)
			continue
		}
		name := strings.Replace(pkg, ".", "zklock", 1) // the root
		there := false
		for test := range declared {
			function, ok := strings.CutPrefix(test, name+".")
			there = there || ok && pattern.MatchString(function)
		}
		if !there {
			t.Errorf("no test of %s is called %s", pkg, m[3])
		}
		for _, f := range flag.FindAllStringSubmatch(m[4], -1) {
			if !slices.Contains(own, f[1]) && !mentions(t, name, `"`+f[1]+`"`) {
				t.Errorf("the tests of %s have no flag %s", pkg, f[1])
			}
		}
	}
}

// TestDocumentedGoCodeIsCompiled checks that examples contain the Go code of the documents
// below, word for word.
func TestDocumentedGoCodeIsCompiled(t *testing.T) {
	t.Chdir("../..")
	examples, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"README.md", "docs/embedded-server.md"} {
		document, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		blocks := strings.Split(string(document), "```go\n")[1:]
		if len(blocks) == 0 {
			t.Errorf("%s has no Go code", name)
		}
		for _, block := range blocks {
			code, _, _ := strings.Cut(block, "```")
			if !strings.Contains(string(examples), code) {
				t.Errorf("%s: not in example_test.go:\n%s", name, code)
			}
		}
	}
}

// TestLinkTargetsExist checks that each link of a document leads to a file, and to a heading
// in it if the link names one.
func TestLinkTargetsExist(t *testing.T) {
	t.Chdir("../..")
	var names []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/guides/*.md", "spec/*.md", "bench/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	block := regexp.MustCompile("(?ms)^```.*?^```$")
	texts := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = block.ReplaceAllString(string(text), "")
	}
	link := regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	for _, name := range names {
		for _, m := range link.FindAllStringSubmatch(texts[name], -1) {
			to := name
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(name), m[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: %v", name, err)
			} else if m[2] != "" && !slices.Contains(anchors(texts[to]), m[2]) {
				t.Errorf("%s: %s has no heading #%s", name, to, m[2])
			}
		}
	}
}

// anchors returns the anchors of a document's headings, as GitHub makes them.
func anchors(text string) (all []string) {
	for _, m := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		heading := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(heading, " ", "-"))
	}
	return all
}
