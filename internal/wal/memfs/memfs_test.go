package memfs_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wal/memfs"
)

func newFS(t *testing.T, seed uint64) *memfs.FS {
	t.Helper()
	m := memfs.New(rand.New(rand.NewPCG(seed, 2)))
	if err := m.MkdirAll("/d"); err != nil {
		t.Fatal(err)
	}
	return m
}

// put writes a file, with the given number of syncs: 1 for the file, 2 also for the
// directory.
func put(t *testing.T, m *memfs.FS, name string, content []byte, syncs int) wal.File {
	t.Helper()
	f, err := m.Create(name)
	if err == nil {
		_, err = f.WriteAt(content, 0)
	}
	if err == nil && syncs > 0 {
		err = f.Sync()
	}
	if err == nil && syncs > 1 {
		var d wal.Dir
		if d, err = m.OpenDir(filepath.Dir(name)); err == nil {
			err = d.Sync()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func content(m *memfs.FS, name string) string {
	b, err := m.ReadFile(name)
	if err != nil {
		return "none"
	}
	return string(b)
}

// outcomes counts what crashes leave of one file.
func outcomes(t *testing.T, do func(*memfs.FS), name string) map[string]int {
	t.Helper()
	count := make(map[string]int)
	for seed := range uint64(300) {
		m := newFS(t, seed)
		do(m)
		m.Crash()
		count[content(m, name)]++
	}
	return count
}

// TestFilesAfterCrash checks what may and may not be there after a crash.
func TestFilesAfterCrash(t *testing.T) {
	one, two := strings.Repeat("1", 512), strings.Repeat("2", 512)
	cases := []struct {
		name string
		do   func(*memfs.FS)
		may  []string // all of them happen, and nothing else; nil: at least five outcomes
	}{
		{"synced", func(m *memfs.FS) { put(t, m, "/d/a", []byte("x"), 2) }, []string{"x"}},
		{"name not synced", func(m *memfs.FS) { put(t, m, "/d/a", []byte("x"), 1) }, []string{"x", "none"}},
		{"overwritten", func(m *memfs.FS) {
			f := put(t, m, "/d/a", []byte(one+one), 2)
			_, _ = f.WriteAt([]byte(two+two), 0)
		}, []string{one + one, two + two, one + two, two + one}},
		{"cut", func(m *memfs.FS) { _ = put(t, m, "/d/a", []byte("xyz"), 2).Truncate(1) }, []string{"xyz", "x"}},
		{"removed", func(m *memfs.FS) { put(t, m, "/d/a", []byte("x"), 2); _ = m.Remove("/d/a") }, []string{"x", "none"}},
		{"renamed over", func(m *memfs.FS) {
			put(t, m, "/d/a", []byte("old"), 2)
			put(t, m, "/d/b", []byte("new"), 2)
			_ = m.Rename("/d/b", "/d/a")
		}, []string{"old", "new"}},
		{"grown", func(m *memfs.FS) {
			f := put(t, m, "/d/a", []byte("x"), 2)
			_, _ = f.WriteAt(bytes.Repeat([]byte("y"), 3000), 1)
		}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := outcomes(t, c.do, "/d/a")
			for _, want := range c.may {
				if got[want] == 0 {
					t.Errorf("never %.20q", want)
				}
				delete(got, want)
			}
			if c.may != nil && len(got) > 0 {
				t.Errorf("others: %.100v", got)
			}
			if c.may == nil && len(got) < 5 {
				t.Errorf("only %d outcomes", len(got))
			}
		})
	}
}

// TestFailedSync: what a failed sync did not write is never written, and later syncs
// return no error.
func TestFailedSync(t *testing.T) {
	lost := 0
	for seed := range uint64(100) {
		m := newFS(t, seed)
		f := put(t, m, "/d/a", []byte("old"), 2)
		if _, err := f.WriteAt([]byte("new"), 0); err != nil {
			t.Fatal(err)
		}
		m.FailAt(0, syscall.EIO, 0)
		if err := f.Sync(); !errors.Is(err, syscall.EIO) {
			t.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			t.Fatal(err)
		}
		if content(m, "/d/a") != "new" {
			t.Fatal("programs see the old content")
		}
		if m.Crash(); content(m, "/d/a") == "old" {
			lost++
		}
	}
	if lost < 20 || lost > 80 {
		t.Errorf("lost %d of 100", lost)
	}
}

// TestHandlesFailAfterCrash: handles end with the process, and locks are released.
func TestHandlesFailAfterCrash(t *testing.T) {
	for name, end := range map[string]func(*memfs.FS){"restart": (*memfs.FS).Restart, "crash": (*memfs.FS).Crash} {
		m := newFS(t, 1)
		f := put(t, m, "/d/a", []byte("x"), 2)
		lock, err := m.Lock("/d/lock")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Lock("/d/lock"); !errors.Is(err, wal.ErrLocked) {
			t.Errorf("%s: %v", name, err)
		}
		end(m)
		_, werr := f.WriteAt([]byte("y"), 0)
		_, rerr := f.ReadAt(make([]byte, 1), 0)
		for _, err := range []error{werr, rerr, f.Sync(), f.Truncate(0), f.Close(), lock.Close()} {
			if !errors.Is(err, memfs.ErrCrashed) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if lock, err = m.Lock("/d/lock"); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if err := lock.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if content(m, "/d/a") != "x" {
			t.Errorf("%s: synced content is gone", name)
		}
	}
}

func TestRestartKeepsUnsyncedData(t *testing.T) {
	m := newFS(t, 1)
	put(t, m, "/d/a", []byte("x"), 0)
	if m.Restart(); content(m, "/d/a") != "x" {
		t.Error("a restart lost a file")
	}
}

// TestReadAtAnyOffset reads various lengths and offsets.
func TestReadAtAnyOffset(t *testing.T) {
	m := newFS(t, 1)
	f := put(t, m, "/d/a", []byte("hello"), 0)
	b := make([]byte, 4)
	for _, c := range []struct {
		off  int64
		n    int
		want error
	}{{0, 4, nil}, {1, 4, nil}, {2, 3, io.EOF}, {5, 0, io.EOF}, {99, 0, io.EOF}, {-1, 0, io.EOF}} {
		if n, err := f.ReadAt(b, c.off); n != c.n || err != c.want {
			t.Errorf("ReadAt %d: %d, %v", c.off, n, err)
		}
	}
	if err := f.Truncate(8); err != nil {
		t.Fatal(err)
	}
	if n, err := f.Size(); n != 8 || err != nil || content(m, "/d/a") != "hello\x00\x00\x00" {
		t.Errorf("%d %v %q", n, err, content(m, "/d/a"))
	}
	if err := errors.Join(f.Truncate(2), f.Truncate(4)); err != nil || content(m, "/d/a") != "he\x00\x00" {
		t.Errorf("%v %q", err, content(m, "/d/a"))
	}
	if _, err := f.WriteAt(b, -1); !errors.Is(err, fs.ErrInvalid) {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if err := f.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Error(err)
	}
}

// TestMissingFilesFail uses missing files.
func TestMissingFilesFail(t *testing.T) {
	m := newFS(t, 1)
	_, oerr := m.Open("/d/a")
	_, cerr := m.Create("/e/a")
	_, derr := m.ReadDir("/e")
	for _, err := range []error{oerr, cerr, derr, m.Remove("/d/a"), m.Rename("/d/a", "/d/b")} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	put(t, m, "/d/b", nil, 0)
	put(t, m, "/d/a", nil, 0)
	if names, err := m.ReadDir("/d/"); err != nil || strings.Join(names, " ") != "a b" {
		t.Error(names, err)
	}
}

// TestWritesAreShortOnFullDisk: writes are short when the disk is full, until space is freed.
func TestWritesAreShortOnFullDisk(t *testing.T) {
	m := newFS(t, 1)
	m.SetLimit(1024)
	f := put(t, m, "/d/a", []byte("x"), 0)
	n, err := f.WriteAt(make([]byte, 2000), 100)
	if n != 924 || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := f.WriteAt(make([]byte, 100), 0); n != 100 || err != nil {
		t.Errorf("overwriting: %d, %v", n, err)
	}
	if err := f.Truncate(10); err != nil {
		t.Fatal(err)
	}
	if n, err := f.WriteAt(make([]byte, 500), 512); n != 500 || err != nil {
		t.Errorf("after truncating: %d, %v", n, err)
	}
}

// TestInjectedFaults has short writes, counted operations, and damage.
func TestInjectedFaults(t *testing.T) {
	m := newFS(t, 1)
	f := put(t, m, "/d/a", []byte("x"), 2)
	if m.Syncs() != 2 || m.Ops() != 6 {
		t.Errorf("%d syncs, %d operations", m.Syncs(), m.Ops())
	}
	m.FailAt(1, syscall.EIO, 2)
	if _, err := f.Size(); err != nil {
		t.Error(err)
	}
	if n, err := f.WriteAt([]byte("wxyz"), 0); n != 2 || !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "/d/a") {
		t.Error(n, err)
	}
	if n, err := f.WriteAt([]byte("z"), 2); n != 1 || err != nil || content(m, "/d/a") != "wxz" {
		t.Error(n, err, content(m, "/d/a"))
	}
	m.FlipBit("/d/a", 8)
	m.FlipBit("/d/a", 1000)
	m.FlipBit("/d/none", 0)
	if content(m, "/d/a") != "wyz" {
		t.Error(content(m, "/d/a"))
	}
	c := m.Clone(rand.New(rand.NewPCG(1, 1)))
	m.Delete("/d/a")
	if content(m, "/d/a") != "none" || content(c, "/d/a") != "wyz" {
		t.Error("the copy is not one")
	}
}
