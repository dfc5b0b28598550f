//go:build darwin || freebsd || linux || netbsd || openbsd

package wal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/zklock/internal/ownership"
	"github.com/zklock/zklock/internal/wal"
)

// TestRefusedOpenLeavesLockFileUnlocked: a server that starts locks the directory, then the
// file. If a second server locked the file in between, neither would start.
func TestRefusedOpenLeavesLockFileUnlocked(t *testing.T) {
	path := lockedDir(t)
	f, err := os.Create(filepath.Join(path, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	done := make(chan error, 1)
	go func() {
		for range 5000 {
			if _, _, err := wal.Open(wal.OS{}, path, wal.Options{}); !errors.Is(err, wal.ErrLocked) {
				done <- err
				return
			}
		}
		done <- nil
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the locked directory was opened: %v", err)
			}
			return
		default:
		}
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			t.Errorf("a refused server has locked the file: %v", err)
			<-done
			return
		}
		must(t, syscall.Flock(int(f.Fd()), syscall.LOCK_UN))
	}
}

// TestOSDirectoryLockedByAnotherUser: every user who may read the directory can lock it, and
// runs no server there.
func TestOSDirectoryLockedByAnotherUser(t *testing.T) {
	path := lockedDir(t)
	const ended = "1999999999" // more than the largest process ID
	for _, pid := range []string{"", ended} {
		must(t, os.WriteFile(filepath.Join(path, "lock"), []byte(pid), 0o600))
		_, _, err := wal.Open(wal.OS{}, path, wal.Options{})
		if !errors.Is(err, wal.ErrLocked) || !strings.Contains(err.Error(), "another user") {
			t.Errorf("process ID %q: %v", pid, err)
		}
	}
}

// lockedDir returns a directory that is locked until the test ends.
func lockedDir(t *testing.T) string {
	t.Helper()
	path := t.TempDir()
	root, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	lock, err := ownership.Lock(root, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	return path
}
