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
	path := t.TempDir()
	lockDir(t, path)
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

// TestOSDirectoryLockedByAnotherUser: every user who may read the directory can lock it. A server
// starts if its lock file is the one that the last server locked, because then no server is
// running.
func TestOSDirectoryLockedByAnotherUser(t *testing.T) {
	refused := func(path, when string) {
		t.Helper()
		if _, _, err := wal.Open(wal.OS{}, path, wal.Options{}); !errors.Is(err, wal.ErrLocked) {
			t.Errorf("%s: %v", when, err)
		}
	}
	replace := func(lock string) {
		old, err := os.ReadFile(lock)
		must(t, errors.Join(err, os.WriteFile(lock+".new", old, 0o600), os.Rename(lock+".new", lock)))
	}
	for mode, opens := range map[os.FileMode]bool{0o755: true, 0o750: true, 0o711: false} {
		path := t.TempDir()
		must(t, os.Chmod(path, mode))
		lock := filepath.Join(path, "lock")
		unlock := lockDir(t, path)
		refused(path, "a new directory")
		unlock()
		log, _, _ := openOS(t, path, wal.Options{})
		must(t, log.Close())
		must(t, os.Chmod(lock, 0o644))
		unlock = lockDir(t, path)
		log, _, err := wal.Open(wal.OS{}, path, wal.Options{})
		if (err == nil) != opens {
			t.Errorf("mode %o: %v", mode, err)
		}
		if err != nil {
			continue
		}
		if info, err := os.Lstat(lock); err != nil || info.Mode() != 0o600 {
			t.Errorf("another user can lock the file: %v, %v", info, err)
		}
		refused(path, "a second server")
		must(t, log.Close())
		replace(lock)
		refused(path, "a copy of the lock file")
		unlock()

		log, _, _ = openOS(t, path, wal.Options{})
		replace(lock) // as when a backup is restored
		refused(path, "a second server with a copy of the lock file")
		must(t, os.Remove(lock))
		refused(path, "a second server without the file")
		_ = log.Close() // its lock is lost
	}
}

// TestErrorOfDirectoryLockedByAnotherUser: no process has the ID in the lock file.
func TestErrorOfDirectoryLockedByAnotherUser(t *testing.T) {
	path := t.TempDir()
	lockDir(t, path)
	const ended = "1999999999" // more than the largest process ID
	for _, text := range []string{"", ended, ended + " 1 2"} {
		must(t, os.WriteFile(filepath.Join(path, "lock"), []byte(text), 0o600))
		_, _, err := wal.Open(wal.OS{}, path, wal.Options{})
		if !errors.Is(err, wal.ErrLocked) || !strings.Contains(err.Error(), "another user") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// lockDir locks a directory as another user who may read it could.
func lockDir(t *testing.T, path string) (unlock func()) {
	t.Helper()
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
	return func() { lock.Close() }
}
