package zklock_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestCommandsOfLongRunsExist checks that the commands in docs/how-zklock-is-tested.md
// name tests and flags that exist.
func TestCommandsOfLongRunsExist(t *testing.T) {
	text, err := os.ReadFile("docs/how-zklock-is-tested.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile("`(?:cd (\\w+) && )?go test (\\S+) -run '?([^' `]+)'?([^`]*)`")
	flag := regexp.MustCompile(` -([\w.-]+)`)
	own := []string{"timeout", "v", "count"} // those of go test
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
