package zklock_test

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentedGoCodeIsCompiled checks that the Go code of the documents below is, as
// it stands there, part of an example that is compiled and run.
func TestDocumentedGoCodeIsCompiled(t *testing.T) {
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
