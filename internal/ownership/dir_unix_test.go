//go:build unix

package ownership

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const otherUser = 12345

func needsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to change the owner of a file")
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestExposed checks that a file is exposed if other users may read or change it. The group may
// read a file that another user owns.
func TestExposed(t *testing.T) {
	needsRoot(t)
	path := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(path, nil, 0o600))
	for _, tt := range []struct {
		mode          fs.FileMode
		mine, another bool // whether it is exposed
	}{{0o600, false, false}, {0o400, false, false}, {0o640, true, false}, {0o620, true, true}, {0o604, true, true}, {0o602, true, true}} {
		for uid, want := range map[int]bool{os.Geteuid(): tt.mine, otherUser: tt.another} {
			must(t, os.Chown(path, uid, -1), os.Chmod(path, tt.mode))
			info, err := os.Stat(path)
			must(t, err)
			if got := Exposed(info); got != want {
				t.Errorf("mode %04o of user %d: %v", tt.mode, uid, got)
			}
		}
	}
}

func TestOpenDirFollowsNoLinkOfAnotherUser(t *testing.T) {
	needsRoot(t)
	top := t.TempDir()
	real, shared := filepath.Join(top, "real"), filepath.Join(top, "shared")
	sub, link, mine := filepath.Join(real, "sub"), filepath.Join(shared, "link"), filepath.Join(shared, "mine")
	must(t, os.MkdirAll(sub, 0o700), os.Mkdir(shared, 0o700), os.Symlink(real, link), os.Symlink("link", mine))
	for _, path := range []string{real, sub, link, filepath.Join(link, "sub"), mine, link + "/../real/./sub/"} {
		dir, err := OpenDir(path)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		must(t, dir.Close())
	}
	must(t, os.Lchown(link, otherUser, -1))
	for _, path := range []string{link, filepath.Join(link, "sub"), mine, link + "/../real"} {
		if _, err := OpenDir(path); err == nil || !strings.Contains(err.Error(), "symbolic link of user 12345") {
			t.Errorf("%s: %v", path, err)
		}
	}
	// Replace does not follow a link out of a directory of the other user.
	must(t, os.Chown(shared, otherUser, -1))
	dir, err := OpenDir(shared)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	text := func(f *os.File) error { _, err := f.WriteString("x"); return err }
	if err := Replace(dir, "link", 0o644, text); err != nil {
		t.Error(err) // replaces the link
	}
	if text, err := os.ReadFile(link); err != nil || string(text) != "x" {
		t.Errorf("the file says %q, %v", text, err)
	}
	if err := Replace(dir, "../real/file", 0o644, text); err == nil {
		t.Error("Replace wrote a file outside of the directory")
	}
}

// TestOpenedDirectoryIsTheCheckedOne checks that OpenDir fails if the path leads to another
// directory after the check.
func TestOpenedDirectoryIsTheCheckedOne(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	info, err := os.Stat(a)
	must(t, err, checkOpened(a, info))
	if err := checkOpened(b, info); err == nil || !strings.Contains(err.Error(), "led to another directory") {
		t.Errorf("another directory: %v", err)
	}
}
