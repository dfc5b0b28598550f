//go:build unix

package wal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wal"
)

// precious is the content of a file that no log may change.
const precious = "not of the log"

// preciousFile creates one in its own directory.
func preciousFile(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "precious")
	must(t, os.WriteFile(name, []byte(precious), 0o600))
	return name
}

// wantPrecious checks that it is unchanged.
func wantPrecious(t *testing.T, name string) {
	t.Helper()
	if got, err := os.ReadFile(name); err != nil || string(got) != precious {
		t.Errorf("the file says %q, %v", got, err)
	}
}

// TestLinksInDataDirectoryAreNotFollowed replaces a file of a log by a link to a file
// elsewhere. Open refuses it by name, and the file stays unchanged.
func TestLinksInDataDirectoryAreNotFollowed(t *testing.T) {
	for _, test := range []struct {
		name string
		link func(oldname, newname string) error
		file string
		says string
	}{
		{"lock", os.Symlink, "lock", "symbolic link"},
		{"hard link of the lock", os.Link, "lock", "not a regular file with a single link"},
		{"segment", os.Symlink, "log-00000000000000000001", "symbolic link"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path, target := t.TempDir(), preciousFile(t)
			must(t, test.link(target, filepath.Join(path, test.file)))
			l, _, err := wal.Open(wal.OS{}, path, wal.Options{})
			if err == nil {
				l.Close()
				t.Error("the link was taken for a file of the log")
			} else if !strings.Contains(err.Error(), filepath.Join(path, test.file)) || !strings.Contains(err.Error(), test.says) {
				t.Error(err)
			}
			wantPrecious(t, target)
		})
	}
}

// TestLastSegmentWithTwoLinksIsRefused: a copy of a directory by hard links (cp -al) shares the
// segment that the log writes. Two logs would overwrite each other's records there. The full
// segments, which no log writes, may have other links, and so may the last one while the log is
// open.
func TestLastSegmentWithTwoLinksIsRefused(t *testing.T) {
	path, copied := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "copy")
	opts := wal.Options{SegmentSize: 100, Preallocate: -1}
	l, _, s := openOS(t, path, opts)
	appendAll(t, l, &s, strings.Repeat("x", 100))
	appendAll(t, l, &s, "two")
	must(t, os.Mkdir(copied, 0o700))
	const first, last = "log-00000000000000000001", "log-00000000000000000002"
	for _, name := range []string{first, last} {
		must(t, os.Link(filepath.Join(path, name), filepath.Join(copied, name)))
	}
	refuse := func(dir string) {
		t.Helper()
		_, _, err := wal.Open(wal.OS{}, dir, opts)
		if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, last)) ||
			!strings.Contains(err.Error(), "another hard link") {
			t.Fatalf("Open: %v", err)
		}
	}
	refuse(copied)
	content, err := os.ReadFile(filepath.Join(path, last))
	must(t, err)
	must(t, l.Close()) // the log was not disturbed, and writes a seal
	refuse(path)
	must(t, os.Remove(filepath.Join(copied, last)))
	must(t, os.WriteFile(filepath.Join(copied, last), content, 0o600))
	for _, dir := range []string{path, copied} {
		l, _, got := openOS(t, dir, opts)
		if got != s {
			t.Errorf("recovered %d records of %d", got.index, s.index)
		}
		must(t, l.Close())
	}
}

// TestPipesInDataDirectoryAreRefused replaces files by pipes: waiting for the other
// end would block the start of the server.
func TestPipesInDataDirectoryAreRefused(t *testing.T) {
	for _, file := range []string{"", "lock", "log-00000000000000000001", "snapshot-00000000000000000001"} { // "" is the directory itself
		path := t.TempDir()
		l, _, err := wal.Open(wal.OS{}, path, wal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		name := filepath.Join(path, file)
		os.RemoveAll(name)
		must(t, syscall.Mkfifo(name, 0o600))
		done := make(chan error, 1)
		go func() { // ends with Open, or with the process if Open waits for the pipe
			l, _, err := wal.Open(wal.OS{}, path, wal.Options{})
			if err == nil {
				l.Close()
			}
			done <- err
		}()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", file, err)
			}
		case <-time.After(time.Minute):
			t.Errorf("%s: the log waits for the pipe", file)
		}
	}
}

// TestNewFilesReplaceLinks has links with the names of temporary files: the log
// replaces them.
func TestNewFilesReplaceLinks(t *testing.T) {
	path, target := t.TempDir(), preciousFile(t)
	l, _, s := openOS(t, path, wal.Options{SegmentSize: 100, Preallocate: -1})
	for _, name := range []string{"snapshot-00000000000000000002.tmp", "log-00000000000000000003.tmp", "snapshot-00000000000000000003"} {
		must(t, os.Symlink(target, filepath.Join(path, name)))
	}
	appendAll(t, l, &s, strings.Repeat("x", 100), "two")
	if err := l.Snapshot(s.index, nil, s.snapshot); err != nil {
		t.Error(err)
	}
	appendAll(t, l, &s, strings.Repeat("x", 100))
	if err := l.Snapshot(s.index, nil, s.snapshot); err != nil {
		t.Error(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	wantPrecious(t, target)
	l, rec, got := openOS(t, path, wal.Options{})
	if got != s || rec.SnapshotIndex != 3 {
		t.Errorf("%+v, %+v", got, rec)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestDirectoryOfAnotherUserIsRefused: a log is kept only in a directory in which no
// other user could replace it.
func TestDirectoryOfAnotherUserIsRefused(t *testing.T) {
	const other = 12345
	root := os.Geteuid() == 0
	chmod := func(mode os.FileMode) func(string) (string, error) {
		return func(dir string) (string, error) { return dir, os.Chmod(dir, mode) }
	}
	linked := func(uid int) func(string) (string, error) {
		return func(dir string) (string, error) {
			link := filepath.Join(filepath.Dir(dir), "link")
			if err := os.Symlink(dir, link); err != nil {
				return "", err
			}
			return link, os.Lchown(link, uid, -1)
		}
	}
	for _, test := range []struct {
		name  string
		apply func(dir string) (path string, err error)
		root  bool // only root can make it
		says  string
	}{
		{"as made", chmod(0o700), false, ""},
		{"readable by all", chmod(0o755), false, ""},
		{"writable by the group", chmod(0o770), false, ""},
		{"writable by all", chmod(0o777), false, "every user could replace"},
		{"sticky", chmod(0o777 | os.ModeSticky), false, "every user could replace"},
		{"of another user", func(dir string) (string, error) { return dir, os.Chown(dir, other, -1) }, true, "belongs to user 12345"},
		{"through a link", linked(os.Geteuid()), false, ""},
		{"through a link of another user", linked(other), true, "symbolic link of user 12345"},
		{"below a link of another user", func(dir string) (string, error) {
			link, err := linked(other)(dir)
			return filepath.Join(link, "data"), err
		}, true, "symbolic link of user 12345"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.root && !root {
				t.Skip("needs root to make a file another user's")
			}
			dir := filepath.Join(t.TempDir(), "dir")
			must(t, os.Mkdir(dir, 0o700))
			path, err := test.apply(dir)
			if err != nil {
				t.Fatal(err)
			}
			l, _, err := wal.Open(wal.OS{}, path, wal.Options{})
			switch {
			case err == nil && test.says != "":
				t.Error("it was taken")
			case err != nil && (test.says == "" || !strings.Contains(err.Error(), test.says)):
				t.Error(err)
			}
			if err == nil {
				if err := l.Close(); err != nil {
					t.Error(err)
				}
			} else if names, _ := os.ReadDir(dir); len(names) > 0 {
				t.Errorf("a refused directory has %v", names)
			}
		})
	}
}

// TestUnreadableContentIsNoChange checks that a read that fails does not count as a change by another
// process: the server can still write its state to another segment.
func TestUnreadableContentIsNoChange(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(name, []byte("content"), 0o600))
	f, err := wal.OS{}.OpenWrite(name)
	must(t, err)
	defer f.Close()
	check := f.(changeChecker).CheckContent
	must(t, check(7, []byte("content"), 0))
	must(t, check(7, []byte("content"), -1)) // the read fails
	for _, other := range []string{"Content", "content and more"} {
		if err := check(7, []byte(other), 0); !errors.Is(err, wal.ErrFileChanged) {
			t.Errorf("%q: %v", other, err)
		}
	}
	if err := check(8, []byte("content"), 0); !errors.Is(err, wal.ErrFileChanged) {
		t.Errorf("a short file: %v", err)
	}
}
