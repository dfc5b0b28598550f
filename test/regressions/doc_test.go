package regressions

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestTable: the package's documentation has all of its tests, and no other.
func TestTable(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	inTable := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^//\t(Test\w+) `).FindAllSubmatch(doc, -1) {
		inTable[string(m[1])] = true
	}
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{"TestTable": true}
	for _, name := range files {
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t`).FindAllSubmatch(code, -1) {
			found[string(m[1])] = true
			if name != "doc_test.go" && !inTable[string(m[1])] {
				t.Errorf("%s is not in the table", m[1])
			}
		}
	}
	for name := range inTable {
		if !found[name] {
			t.Errorf("%s is in the table, and does not exist", name)
		}
	}
}
