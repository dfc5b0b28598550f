//go:build unix

package serve

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipesAreRefused checks that a pipe is not opened, which would block.
func TestPipesAreRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, read := range map[string]func() error{
		"token":   func() error { _, err := tokenIn(pipe, "--token-file"); return err },
		"zoo.cfg": func() error { _, err := readConfig(pipe); return err },
	} {
		if err := read(); err == nil || !strings.Contains(err.Error(), "is a named pipe, not a regular file") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestTokenFileOfAnotherUser: as for credentials, the group may read a file that another user
// owns, such as root in the volume of a Kubernetes Secret.
func TestTokenFileOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		owner int
		mode  os.FileMode
		ok    bool
	}{{0, 0o600, true}, {0, 0o640, false}, {12345, 0o440, true}, {12345, 0o460, false}, {12345, 0o444, false}} {
		if err := os.Chown(file, tt.owner, -1); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, tt.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := tokenIn(file, "--token-file"); (err == nil) != tt.ok {
			t.Errorf("file of user %d with mode %v: %v", tt.owner, tt.mode, err)
		}
	}
}
