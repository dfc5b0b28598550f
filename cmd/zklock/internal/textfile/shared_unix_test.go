//go:build unix

package textfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestSharedDirectory: where others may make files, a run follows no link of theirs and
// waits for no pipe.
func TestSharedDirectory(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link, pipe := filepath.Join(dir, "link.prom"), filepath.Join(dir, "pipe.prom")
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	change := func(s *Set) { s.Put("zklock_run_running", "/a", 1) }
	if err := Update(link, change); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("a link: %v", err)
	}
	if err := Update(pipe, change); !errors.Is(err, ErrForeign) {
		t.Errorf("a pipe: %v", err)
	}
	if text, err := os.ReadFile(target); err != nil || len(text) > 0 {
		t.Errorf("what the link leads to says %q, %v", text, err)
	}
}
