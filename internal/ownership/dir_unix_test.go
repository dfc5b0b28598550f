//go:build unix

package ownership

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
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
// read a file that another user owns, and could not read it any more with the mode 0600.
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
			advice := map[bool]string{true: "chmod 600 it", false: "chmod 640 it"}[uid != otherUser]
			if got := Exposed(info); (got != "") != want || want && !strings.Contains(got, advice) {
				t.Errorf("mode %04o of user %d: %q", tt.mode, uid, got)
			}
		}
	}
}

// TestOpenDirRefusesOtherFiles checks that OpenDir and MakeDir refuse files, and do not wait for
// the other end of a pipe.
func TestOpenDirRefusesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	file, pipe := filepath.Join(dir, "file"), filepath.Join(dir, "pipe")
	must(t, os.WriteFile(file, nil, 0o600), syscall.Mkfifo(pipe, 0o600))
	for path, want := range map[string]error{file: syscall.ENOTDIR, pipe: syscall.ENOTDIR, filepath.Join(pipe, "sub"): syscall.ENOTDIR, "": fs.ErrNotExist} {
		if _, err := OpenDir(path); !errors.Is(err, want) || strings.Contains(err.Error(), "/.:") {
			t.Errorf("OpenDir(%q): %v", path, err)
		}
		if err := MakeDir(path, 0o700); path != "" && !errors.Is(err, want) {
			t.Errorf("MakeDir(%q): %v", path, err)
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

// flicker makes and removes a link of another user to a new directory again and again, until the
// test ends. It removes no directory that was made in place of the link. It returns the path of the
// link and that of the directory.
func flicker(t *testing.T) (path, to string) {
	needsRoot(t)
	dir, to := t.TempDir(), t.TempDir()
	path, link := filepath.Join(dir, "path"), filepath.Join(dir, "link")
	must(t, os.Symlink(to, link), os.Lchown(link, otherUser, -1))
	repeat(t, func() {
		_, _ = os.Rename(link, path), syscall.Unlink(path)
		_, _ = os.Symlink(to, link), os.Lchown(link, otherUser, -1)
	})
	return path, to
}

// repeat calls f again and again in a goroutine, until the test ends.
func repeat(t *testing.T, f func()) {
	stop := make(chan struct{})
	t.Cleanup(func() { stop <- struct{}{} })
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				f()
			}
		}
	}()
}

// enough reports whether a test that has made so many calls can end: it must have met a link that
// flickers.
func enough(calls int, met bool) bool { return calls >= 1_500 && met || calls >= 1_000_000 }

// TestResolveFollowsNoLinkThatAppears checks that Resolve never returns what another user's link
// leads to, although that user makes and removes the link while Resolve runs.
func TestResolveFollowsNoLinkThatAppears(t *testing.T) {
	path, to := flicker(t)
	mine := filepath.Join(t.TempDir(), "mine")
	must(t, os.Symlink(path, mine))
	refused := false
	for i := 0; !enough(i, refused); i++ {
		for _, name := range []string{path, mine} {
			real, _, err := Resolve(name)
			if real == to {
				t.Fatalf("after %d calls, %s leads through the link", i, name)
			}
			refused = refused || err != nil
		}
	}
	if !refused {
		t.Error("Resolve never saw the link")
	}
}

// TestMakeDirFollowsNoLinkThatAppears checks that MakeDir makes nothing where another user's link
// leads to, although that user makes and removes the link while MakeDir runs.
func TestMakeDirFollowsNoLinkThatAppears(t *testing.T) {
	path, to := flicker(t)
	refused := false
	for i := 0; !enough(i, refused); i++ {
		refused = MakeDir(filepath.Join(path, "dir"), 0o700) != nil || refused
		if made, err := os.ReadDir(to); err != nil || len(made) > 0 {
			t.Fatalf("after %d calls, the link leads to %v, %v", i, made, err)
		}
		_ = os.RemoveAll(path) // it can be the link
	}
	if !refused {
		t.Error("MakeDir never saw the link")
	}
}

// TestMakeDirAcceptsNoLinkThatAppears checks that MakeDir does not take another user's link for the
// directory that it should make, although that user makes and removes the link while MakeDir runs.
func TestMakeDirAcceptsNoLinkThatAppears(t *testing.T) {
	path, _ := flicker(t)
	refused := false
	for i := 0; !enough(i, refused); i++ {
		if err := MakeDir(path, 0o700); err != nil {
			refused = true
			continue
		}
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			t.Fatalf("after %d calls, MakeDir made %v, %v", i, info, err)
		}
		must(t, os.Remove(path))
	}
	if !refused {
		t.Error("MakeDir never saw the link")
	}
}

// TestCheckDirFollowsNoLinkOfAnotherUser: the link leads to a directory of this user, which is
// safe, but the other user could change where the link leads.
func TestCheckDirFollowsNoLinkOfAnotherUser(t *testing.T) {
	needsRoot(t)
	path := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(t.TempDir(), path), CheckDir(path), os.Lchown(path, otherUser, -1))
	if err := CheckDir(path); err == nil || !strings.Contains(err.Error(), "symbolic link of user 12345") {
		t.Error(err)
	}
}

// TestMakeDir checks that the umask takes nothing from the owner, and that existing directories keep
// their modes.
func TestMakeDir(t *testing.T) {
	top := t.TempDir()
	defer syscall.Umask(syscall.Umask(0o777))
	must(t, os.Chmod(top, 0o750), MakeDir(filepath.Join(top, "a", "b"), 0o700), MakeDir(top, 0o700))
	wantModes(t, top, map[string]fs.FileMode{".": 0o750, "a": 0o700, "a/b": 0o700})
	must(t, os.WriteFile(filepath.Join(top, "file"), nil, 0o600))
	if err := MakeDir(filepath.Join(top, "file", "dir"), 0o700); err == nil {
		t.Error("a directory was made in a file")
	}
}

// wantModes checks the modes of directories below top.
func wantModes(t *testing.T, top string, want map[string]fs.FileMode) {
	t.Helper()
	for name, mode := range want {
		info, err := os.Stat(filepath.Join(top, name))
		must(t, err)
		if got := info.Mode() &^ fs.ModeDir; got != mode {
			t.Errorf("%s has the mode %v, not %v", name, got, mode)
		}
	}
}

// TestMakeDirGivesNoMoreThanUmaskPermits checks that the umask applies to the group and to other
// users, and that a new directory inherits the group bit of its parent.
func TestMakeDirGivesNoMoreThanUmaskPermits(t *testing.T) {
	top := t.TempDir()
	probe := filepath.Join(top, "probe")
	defer syscall.Umask(syscall.Umask(0o077))
	must(t, os.Chmod(top, 0o700|fs.ModeSetgid), os.Mkdir(probe, 0o755), MakeDir(filepath.Join(top, "a", "b"), 0o755))
	info, err := os.Stat(probe)
	must(t, err)
	mode := info.Mode() &^ fs.ModeDir // with the group bit on most systems
	wantModes(t, top, map[string]fs.FileMode{"a": mode, "a/b": mode})
}

// TestMakeDirMakesOnlyThePath checks that a slash at the end does not matter, and that ".." after a
// link means the parent of the directory that the link leads to.
func TestMakeDirMakesOnlyThePath(t *testing.T) {
	top := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(top, "x", "y"), 0o700), os.Symlink("x/y", filepath.Join(top, "link")))
	for path, want := range map[string]string{"a/b//": "a/b", "c/": "c", "link/../d": "x/d", "e/.": "e"} {
		must(t, MakeDir(top+"/"+path, 0o700))
		wantModes(t, top, map[string]fs.FileMode{want: 0o700})
		if below, err := os.ReadDir(filepath.Join(top, want)); err != nil || len(below) > 0 {
			t.Errorf("%s: %v, %v", path, below, err)
		}
	}
	if _, err := os.Stat(filepath.Join(top, "d")); err == nil {
		t.Error("MakeDir did not follow the link")
	}
}

// TestErrorsNameTheWholePath: a user can only fix a directory that the error names.
func TestErrorsNameTheWholePath(t *testing.T) {
	top := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(top, "taken", "x"), 0o700))
	dir, err := OpenDir(top)
	must(t, err)
	defer dir.Close()
	nothing := func(*os.File) error { return nil }
	for _, err := range []error{
		Replace(dir, strings.Repeat("x", 300), 0o600, nothing), // the name is too long
		Replace(dir, "taken", 0o600, nothing),
	} {
		if err == nil || !strings.Contains(err.Error(), " "+top+"/") {
			t.Errorf("error %v", err)
		}
	}
	if runtime.GOOS != "linux" {
		return
	}
	if err := MakeDir("/proc/self/fd/new", 0o700); err == nil || !strings.Contains(err.Error(), "mkdir /proc/self/fd/new: ") {
		t.Errorf("error %v", err)
	}
}

// TestParent checks the directories of paths, of which each ".." is kept.
func TestParent(t *testing.T) {
	for path, want := range map[string]string{
		"f": ".", "d/f": "d", "d//f": "d", "/f": "/", "//f": "/", "/d/e/f": "/d/e", "link/../f": "link/..", "./f": ".",
	} {
		if got := Parent(path); got != want {
			t.Errorf("the directory of %s is %s, want %s", path, got, want)
		}
	}
}
