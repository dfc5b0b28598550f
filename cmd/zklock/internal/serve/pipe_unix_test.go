//go:build unix

package serve

import (
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
