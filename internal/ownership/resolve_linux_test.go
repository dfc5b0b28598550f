package ownership

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// exchange exchanges two entries of a directory.
func exchange(t *testing.T, a, b string) {
	t.Helper()
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		t.Skipf("SKIPPED: this file system does not exchange entries: %v", err)
	}
}

// TestResolveStaysInDirectoryThatIsExchanged checks that resolve does not follow another user's
// link that takes the place of a directory while resolve is in that directory.
func TestResolveStaysInDirectoryThatIsExchanged(t *testing.T) {
	needsRoot(t)
	top, to := t.TempDir(), t.TempDir()
	dir, link := filepath.Join(top, "dir"), filepath.Join(top, "link")
	must(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700), os.Mkdir(filepath.Join(to, "sub"), 0o700),
		os.Symlink(to, link), os.Lchown(link, otherUser, -1))
	_, got, err := resolve(filepath.Join(dir, "sub"), func(at string, _ fs.FileInfo) error {
		if at == dir {
			exchange(t, dir, link)
		}
		return nil
	})
	must(t, err)
	want, err := os.Stat(filepath.Join(link, "sub")) // where the directory is now
	must(t, err)
	if !os.SameFile(got, want) {
		t.Error("the path leads through the link")
	}
}

// TestResolveReadsTheLinkThatItChecked checks that Resolve never returns what another user's link
// leads to, although that user exchanges it again and again for a link of this user.
func TestResolveReadsTheLinkThatItChecked(t *testing.T) {
	needsRoot(t)
	top, mine, other := t.TempDir(), t.TempDir(), t.TempDir()
	a, b := filepath.Join(top, "a"), filepath.Join(top, "b")
	must(t, os.Symlink(mine, a), os.Symlink(other, b), os.Lchown(b, otherUser, -1))
	exchange(t, a, b)
	exchange(t, a, b)
	repeat(t, func() { _ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) })
	refused, followed := false, false
	for i := 0; i < 30_000 || i < 1_000_000 && (!refused || !followed); i++ {
		real, _, err := Resolve(a)
		if real == other {
			t.Fatalf("after %d calls, the path leads through the link of the other user", i)
		}
		refused, followed = refused || err != nil, followed || real == mine
	}
	if !refused || !followed {
		t.Errorf("Resolve met the link of the other user: %v, of this user: %v", refused, followed)
	}
}

// TestResolveWithoutDescriptorFails checks that a path that cannot be checked now is refused.
func TestResolveWithoutDescriptorFails(t *testing.T) {
	var limit unix.Rlimit
	must(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &limit), unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Max: limit.Max}))
	_, _, err := Resolve("/")
	must(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &limit))
	if !errors.Is(err, unix.EMFILE) {
		t.Error(err)
	}
}
