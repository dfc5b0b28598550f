package thirdparty

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/zklock/zklock/test/zkreal"
)

//go:embed script/kazoo_script.py
var kazooScript string

// systemPython has Debian's kazoo; the python3 in the path may be another one.
const systemPython = "/usr/bin/python3"

// needPython skips the test where Debian's Python lacks one of the modules.
func needPython(t *testing.T, modules ...string) {
	t.Helper()
	if _, err := os.Stat(systemPython); err != nil {
		zkreal.SkipOrFail(t, "no "+systemPython)
	}
	if out, err := exec.Command(systemPython, "-c", "import "+strings.Join(modules, ", ")).CombinedOutput(); err != nil {
		zkreal.SkipOrFail(t, fmt.Sprintf("a module is missing for %s: %s", systemPython, out))
	}
}

// Kazoo runs the script of kazoo against the server at addr and returns its lines.
func Kazoo(t *testing.T, addr string) []string {
	t.Helper()
	needPython(t, "kazoo")
	return textLines(output(t, exec.Command(systemPython, "-c", kazooScript, addr)))
}

// textLines splits what a program printed.
func textLines(out string) []string {
	return strings.Split(strings.TrimSuffix(out, "\n"), "\n")
}
