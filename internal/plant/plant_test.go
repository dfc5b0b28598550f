package plant

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// declared are the bugs by the name of their constant, as the source has them.
func declared(t *testing.T) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "bugs.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	bugs := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil || spec.Doc.Text() == "" {
			t.Errorf("%s: %v; its comment is %q", spec.Names[0], err, spec.Doc.Text())
		}
		bugs[spec.Names[0].Name] = value
		return true
	})
	if len(bugs) < 16 {
		t.Fatalf("only %d bugs", len(bugs))
	}
	return bugs
}

// TestNames: the word that makes a bug live is the name of its constant.
func TestNames(t *testing.T) {
	for name, value := range declared(t) {
		if name != value {
			t.Errorf("%s is %q", name, value)
		}
	}
}

var hook = regexp.MustCompile(`plant\.Is\(plant\.(\w+)\)`)

// TestEveryBugHasAHook: each bug is planted somewhere in the code that ships, and
// in no test; and no hook is about a bug that there is not.
func TestEveryBugHasAHook(t *testing.T) {
	bugs, hooks := declared(t), map[string]int{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasPrefix(path, "../../internal/plant/") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range hook.FindAllSubmatch(text, -1) {
			hooks[string(m[1])]++
			if strings.HasSuffix(path, "_test.go") {
				t.Errorf("%s has a hook for %s", path, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range bugs {
		if hooks[name] == 0 {
			t.Errorf("%s is planted nowhere", name)
		}
	}
	for name := range hooks {
		if _, ok := bugs[name]; !ok {
			t.Errorf("there is a hook for %s, and no such bug", name)
		}
	}
}

// TestNormalBuildsHaveNone: a binary without the tag does not even know the name
// of the variable; one with it does, so that the look for it is a good one.
func TestNormalBuildsHaveNone(t *testing.T) {
	for _, tags := range []string{"", "planted"} {
		path := filepath.Join(t.TempDir(), "queue.test")
		out, err := exec.Command("go", "test", "-c", "-vet=off", "-tags="+tags, "-o", path, "../queue").CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		binary, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if found := bytes.Contains(binary, []byte("ZKLOCK_PLANT")); found != (tags == "planted") {
			t.Errorf("with the tags %q the binary has the variable's name: %v", tags, found)
		}
	}
}
