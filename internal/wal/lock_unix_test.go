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
	must(t, os.Chmod(path, 0o700))
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
// runs no server there. A server that was there before starts: its files decide.
func TestOSDirectoryLockedByAnotherUser(t *testing.T) {
	const ended = "1999999999" // more than the largest process ID
	for _, tt := range []struct {
		name, pid string
		mode      os.FileMode
		opens     bool
	}{
		{"others may read", ended, 0o755, true},
		{"the group may read", ended, 0o750, true},
		{"an empty file", "", 0o755, true},
		{"no other user may read", ended, 0o711, false},
	} {
		path := lockedDir(t)
		must(t, os.Chmod(path, tt.mode))
		lock, guard := filepath.Join(path, "lock"), filepath.Join(path, ".lock")
		must(t, os.WriteFile(lock, []byte(tt.pid), 0o644))
		refused := func(when string) {
			if _, _, err := wal.Open(wal.OS{}, path, wal.Options{}); !errors.Is(err, wal.ErrLocked) {
				t.Errorf("%s, %s: %v", tt.name, when, err)
			}
		}
		_, _, err := wal.Open(wal.OS{}, path, wal.Options{})
		if !errors.Is(err, wal.ErrLocked) || !strings.Contains(err.Error(), "another user") {
			t.Errorf("%s: in a new directory: %v", tt.name, err)
		}
		must(t, os.WriteFile(guard, nil, 0o644))
		log, _, err := wal.Open(wal.OS{}, path, wal.Options{})
		if (err == nil) != tt.opens || err != nil && !strings.Contains(err.Error(), "another user") {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err != nil {
			continue
		}
		for _, name := range []string{lock, guard} {
			if info, err := os.Lstat(name); err != nil || info.Mode() != 0o600 {
				t.Errorf("%s: another user can lock %s: %v, %v", tt.name, name, info, err)
			}
		}
		refused("a second server")
		must(t, os.Remove(lock)) // as an operator could
		refused("a second server without the file")
		must(t, os.Remove(guard))
		refused("a second server without both files")
		_ = log.Close() // its lock is lost
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
