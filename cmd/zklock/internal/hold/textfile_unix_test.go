//go:build unix

package hold

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/zklock/zklock/internal/ownership"
)

// TestTextfileInSharedDirectory checks that a run follows no link, and waits for no pipe, of
// another user who may write to the directory.
func TestTextfileInSharedDirectory(t *testing.T) {
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
	change := func(s Textfile) { s.Put("zklock_run_running", "/a", 1) }
	for _, name := range []string{link, pipe} {
		err := UpdateTextfile(name, change)
		if !errors.Is(err, ErrTextfileForeign) || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, err := os.ReadFile(target); err != nil || len(text) > 0 {
		t.Errorf("what the link leads to says %q, %v", text, err)
	}
}

// TestLockedDirectoryDelaysMetrics: every user who may read the directory can lock it. The
// metrics are written nevertheless, after a time limit.
func TestLockedDirectoryDelaysMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "x.prom")
		dir, err := ownership.OpenDir(filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		defer dir.Close()
		lock, err := ownership.Lock(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		err = UpdateTextfile(path, func(s Textfile) { s.Put("zklock_run_running", "/a", 1) })
		if !errors.Is(err, ErrTextfileBusy) {
			t.Errorf("in a locked directory: %v", err)
		}
		if text, err := os.ReadFile(path); err != nil || !strings.Contains(string(text), `zklock_run_running{lock="/a"} 1`) {
			t.Errorf("the file has %q, %v", text, err)
		}
	})
}

// TestMetricsFollowNoLinkOfAnotherUser checks the directories on the path to the file.
func TestMetricsFollowNoLinkOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to make a link another user's")
	}
	top := t.TempDir()
	real, link := filepath.Join(top, "real", "sub"), filepath.Join(top, "link")
	if err := errors.Join(os.MkdirAll(real, 0o700), os.Symlink("real", link)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(link, "sub", "x.prom")
	change := func(s Textfile) { s.Put("zklock_run_running", "/a", 1) }
	if err := UpdateTextfile(path, change); err != nil {
		t.Errorf("a link of this user: %v", err)
	}
	if err := errors.Join(os.Remove(path), os.Lchown(link, 12345, -1)); err != nil {
		t.Fatal(err)
	}
	if err := UpdateTextfile(path, change); err == nil || !strings.Contains(err.Error(), "symbolic link of user 12345") {
		t.Errorf("a link of another user: %v", err)
	}
	if names, err := os.ReadDir(real); err != nil || len(names) > 0 {
		t.Errorf("what the link leads to has %v, %v", names, err)
	}
}
