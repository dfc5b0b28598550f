package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// commandPackage is the package of the command zklock.
const commandPackage = "github.com/zklock/zklock/cmd/zklock"

// built is the command that Command built.
var built struct {
	once sync.Once // its function sets the fields below
	path string
	err  error
}

// Command returns the path of the command zklock. It builds the command once for each test
// binary, without cgo, like the packages. The file's name is zklock. The package's TestMain
// must call [Main], which removes the file.
func Command(tb testing.TB) string {
	tb.Helper()
	built.once.Do(func() {
		var dir string
		if dir, built.err = ScratchDir(); built.err != nil {
			return
		}
		built.path = filepath.Join(dir, "zklock")
		cmd := exec.Command("go", "build", "-o", built.path, commandPackage)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("harness: go build %s: %w\n%s", commandPackage, err, out)
		}
	})
	if built.err != nil {
		tb.Fatal(built.err)
	}
	return built.path
}
