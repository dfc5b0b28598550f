package harness

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

// SystemPython is the Python with Debian's kazoo. The python3 in PATH may be another one.
const SystemPython = "/usr/bin/python3"

// Python returns the command that runs Debian's Python with the arguments. It skips
// the test if Python or one of the modules, separated by commas, is missing.
func Python(tb testing.TB, modules string, args ...string) *exec.Cmd {
	tb.Helper()
	out, err := exec.Command(SystemPython, "-c", "import "+modules).CombinedOutput()
	if err != nil {
		SkipOrFail(tb, fmt.Sprintf("%s cannot import %s: %v: %s", SystemPython, modules, err, strings.TrimSpace(string(out))))
	}
	return exec.Command(SystemPython, args...)
}
