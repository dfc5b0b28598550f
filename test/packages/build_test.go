// Package packages installs the packages, runs their units' command lines, and
// removes them again, where nothing of the machine is touched: on an overlay of its
// file system, in a mount namespace of its own.
package packages

import (
	"bytes"
	"context"
	"crypto/sha256"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/test/zkreal"
)

// built are the packages, and the command as it is in them.
type built struct {
	dir      string
	deb, rpm string
	bin      string
	err      error
}

var once = sync.OnceValue(func() (b built) {
	if b.dir, b.err = os.MkdirTemp("", "packages"); b.err != nil {
		return b
	}
	if b.err = pack(b.dir); b.err != nil {
		return b
	}
	b.deb, b.err = only(b.dir, "*.deb")
	if b.err == nil {
		b.rpm, b.err = only(b.dir, "*.rpm")
	}
	b.bin = filepath.Join(b.dir, "zklock")
	if b.err == nil {
		c := exec.Command("go", "build", "-o", b.bin, "github.com/zklock/zklock/cmd/zklock")
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		b.err = run(c)
	}
	return b
})

func TestMain(m *testing.M) {
	code := m.Run()
	if dir := once().dir; dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// failure is a command's, with what it said.
type failure struct {
	error
	said string
}

func (f *failure) Error() string { return f.error.Error() + "\n" + f.said }

// run runs a command to its end.
func run(c *exec.Cmd) error {
	if out, err := c.CombinedOutput(); err != nil {
		return &failure{err, string(out)}
	}
	return nil
}

// pack runs packaging/build for this machine.
func pack(dir string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	return run(exec.CommandContext(ctx, "../../packaging/build", dir, runtime.GOARCH))
}

// only is the one file that a pattern matches.
func only(dir, pattern string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err == nil && len(found) != 1 {
		err = &failure{os.ErrNotExist, pattern + " matches " + strings.Join(found, " ")}
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// packages builds what the tests are about, once.
func packages(t *testing.T) built {
	t.Helper()
	if runtime.GOOS != "linux" {
		zkreal.SkipOrFail(t, "the packages are for Linux")
	}
	b := once()
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b
}

// build returns the command as it is in the packages.
func build(t *testing.T) string { return packages(t).bin }

// command is one of the zklock command's, which knows nothing of who runs the tests.
func command(t *testing.T, bin string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, bin, args...)
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	return c
}

// need skips or fails without a program.
func need(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		zkreal.SkipOrFail(t, program+" is not installed")
	}
	return path
}

// TestReproducible: one tree gives the same packages, byte for byte.
func TestReproducible(t *testing.T) {
	first := packages(t)
	again := t.TempDir()
	if err := pack(again); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{first.deb, first.rpm} {
		a, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(again, filepath.Base(path)))
		if err != nil {
			t.Fatal(err)
		}
		if sha256.Sum256(a) != sha256.Sum256(b) {
			t.Errorf("%s is another one the second time: %d and %d bytes", filepath.Base(path), len(a), len(b))
		}
	}
}

// TestStatic: the command needs no library, so that it runs in an empty image and on
// any distribution.
func TestStatic(t *testing.T) {
	b, err := os.ReadFile(build(t))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte("/lib64/ld-linux")) {
		t.Error("the command wants a dynamic linker")
	}
}
