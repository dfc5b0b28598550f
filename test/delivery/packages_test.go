package delivery

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// built is the result of a build of the packages.
type built struct {
	dir      string
	deb, rpm string
	err      error
}

var buildPackages = sync.OnceValue(func() (b built) {
	if b.dir, b.err = harness.ScratchDir(); b.err != nil {
		return b
	}
	if b.err = pack(b.dir); b.err != nil {
		return b
	}
	b.deb, b.err = only(b.dir, "*.deb")
	if b.err == nil {
		b.rpm, b.err = only(b.dir, "*.rpm")
	}
	return b
})

// run runs a command, and returns its output as an error if it fails.
func run(c *exec.Cmd) error {
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

// pack runs packaging/build for this machine.
func pack(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Minute)
	defer cancel()
	return run(exec.CommandContext(ctx, "../../packaging/build", dir, runtime.GOARCH))
}

// only returns the one file that a pattern matches.
func only(dir, pattern string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%s matches %q", pattern, found)
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// packages builds the packages once.
func packages(t *testing.T) built {
	t.Helper()
	if runtime.GOOS != "linux" {
		harness.SkipOrFail(t, "the packages are for Linux")
	}
	b := buildPackages()
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b
}

// command returns a zklock command with an empty environment, except for PATH and HOME.
func command(t *testing.T, bin string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, bin, args...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	return c
}

// TestCommandIsStatic checks that the command needs no shared library, so it runs in an empty
// image and on any distribution.
func TestCommandIsStatic(t *testing.T) {
	b, err := os.ReadFile(harness.Command(t))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte("/lib64/ld-linux")) {
		t.Error("the command wants a dynamic linker")
	}
}
