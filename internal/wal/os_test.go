package wal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/wal"
)

// openOS opens a log on the real file system.
func openOS(t testing.TB, path string, opts wal.Options) (*wal.Log, *wal.Recovered, state) {
	t.Helper()
	l, rec, err := wal.Open(wal.OS{}, path, opts)
	if err != nil {
		t.Fatal(err)
	}
	s, err := load(rec)
	if err != nil {
		t.Fatal(err)
	}
	return l, rec, s
}

// TestLogOnRealDisk runs segments, snapshots and restarts on a real disk.
func TestLogOnRealDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "data")
	opts := wal.Options{SegmentSize: 4096, Preallocate: 1024}
	var want state
	for life := range 5 {
		l, rec, s := openOS(t, path, opts)
		if s != want || rec.Torn != nil || len(rec.BadSnapshots) > 0 {
			t.Fatalf("life %d: %+v, want %+v, recovered %+v", life, s, want, rec)
		}
		for i := range 40 {
			appendAll(t, l, &s, fmt.Sprintf("life %d batch %d", life, i), strings.Repeat("x", i*10))
			if i == 30 {
				must(t, l.Snapshot(s.index, nil, s.snapshot))
			}
		}
		must(t, l.Close())
		want = s
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) < 5 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || (runtime.GOOS != "windows" && info.Mode().Perm() != 0o600) {
			t.Errorf("%s: mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
}

// TestTornEndOfRealFile tears the end of a real file.
func TestTornEndOfRealFile(t *testing.T) {
	path := t.TempDir()
	l, _, s := openOS(t, path, wal.Options{Preallocate: -1})
	appendAll(t, l, &s, "one")
	kept := s
	appendAll(t, l, &s, "two")
	name := filepath.Join(path, "log-00000000000000000001")
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	must(t, l.Close())
	must(t, os.WriteFile(name, b[:len(b)-1], 0o600))
	l, rec, got := openOS(t, path, wal.Options{})
	if got != kept || rec.Torn == nil || rec.Torn.File != name || !strings.Contains(rec.Torn.String(), name) {
		t.Fatalf("%+v, torn %v", got, rec.Torn)
	}
	appendAll(t, l, &got, "two again")
	must(t, l.Close())
	if _, rec, again := openOS(t, path, wal.Options{}); again != got || rec.Torn != nil {
		t.Fatalf("%+v, torn %v", again, rec.Torn)
	}
}

// TestRealDirectoryIsLocked opens a real directory twice.
func TestRealDirectoryIsLocked(t *testing.T) {
	path := t.TempDir()
	l, _, _ := openOS(t, path, wal.Options{})
	_, _, err := wal.Open(wal.OS{}, path, wal.Options{})
	if !errors.Is(err, wal.ErrLocked) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "another server runs") {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" && !strings.Contains(err.Error(), fmt.Sprintf("process %d;", os.Getpid())) {
		t.Errorf("no word on which process has it: %v", err)
	}
	must(t, l.Close())
	l, _, _ = openOS(t, path, wal.Options{})
	must(t, l.Close())
}

// TestOSLockRemoved: if an operator removes the lock file, a second server does not start,
// because the directory is locked too. The first server detects the removal before it
// acknowledges another record.
func TestOSLockRemoved(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" && !strings.HasSuffix(runtime.GOOS, "bsd") {
		t.Skip("no lock of directories there")
	}
	path := t.TempDir()
	first, _, s := openOS(t, path, wal.Options{})
	appendAll(t, first, &s, "one")
	for _, change := range []func(string) error{
		os.Remove,
		func(name string) error { return os.WriteFile(name, nil, 0o600) },
	} {
		must(t, change(filepath.Join(path, "lock")))
		if _, _, err := wal.Open(wal.OS{}, path, wal.Options{}); !errors.Is(err, wal.ErrLocked) {
			t.Fatalf("the second one opened the directory: %v", err)
		}
	}
	checkLockLost(t, first, s)
	second, _, got := openOS(t, path, wal.Options{})
	if got.index < s.index {
		t.Errorf("recovered %d records of %d", got.index, s.index)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
}

// checkLockLost checks that the log acknowledges no further record and writes no snapshot,
// and closes it.
func checkLockLost(t *testing.T, l *wal.Log, s state) {
	t.Helper()
	if _, err := l.Append([]byte("two")); err != nil {
		t.Fatal(err)
	}
	if err := l.Sync(); !errors.Is(err, wal.ErrLockLost) || l.Durable() != s.index {
		t.Errorf("the next record: %v; %d are acknowledged, want %d", err, l.Durable(), s.index)
	} else if text := err.Error(); !strings.Contains(text, "put it back") || strings.Contains(text, "recovers") {
		t.Errorf("the error promises recovery without the directory: %v", err)
	}
	if err := l.Snapshot(s.index, nil, s.snapshot); !errors.Is(err, wal.ErrLockLost) {
		t.Errorf("the snapshot: %v", err)
	}
	if err := l.Close(); !errors.Is(err, wal.ErrLockLost) {
		t.Errorf("Close: %v", err)
	}
}

// TestOSDirectoryMoved renames and removes the directory of a log. The log acknowledges
// nothing that the next start would not find.
func TestOSDirectoryMoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: this system cannot move a directory with an open file")
	}
	for name, change := range map[string]func(string) error{
		"renamed":  func(path string) error { return os.Rename(path, path+".old") },
		"removed":  os.RemoveAll,
		"replaced": func(path string) error { return errors.Join(os.Rename(path, path+".old"), os.Mkdir(path, 0o700)) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "data")
			l, _, s := openOS(t, path, wal.Options{})
			appendAll(t, l, &s, "one")
			must(t, change(path))
			checkLockLost(t, l, s)
			if name == "removed" {
				return
			}
			moved, _, got := openOS(t, path+".old", wal.Options{})
			if got.index < s.index {
				t.Errorf("%d of %d acknowledged records are in the directory", got.index, s.index)
			}
			if err := moved.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestOSSegmentMoved removes, renames, replaces, truncates, and overwrites the segment that a log
// writes. The log acknowledges nothing that the next start would not find, neither in this segment
// nor in a new one.
func TestOSSegmentMoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: this system cannot move an open file")
	}
	for name, change := range map[string]func(path string, older []byte) error{
		"renamed": func(path string, _ []byte) error { return os.Rename(path, path+".old") },
		"removed": func(path string, _ []byte) error { return os.Remove(path) },
		"replaced": func(path string, _ []byte) error {
			return errors.Join(os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
		},
		"truncated": func(path string, _ []byte) error { return os.Truncate(path, 0) },
		// As cp does with a backup: the file has the same length as before.
		"overwritten": func(path string, older []byte) error { return os.WriteFile(path, older, 0o600) },
	} {
		for _, size := range []int64{0, 100} { // the next record begins a new segment if it is 100
			t.Run(fmt.Sprint(name, " ", size), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "data")
				l, _, s := openOS(t, path, wal.Options{SegmentSize: size})
				segment := filepath.Join(path, "log-00000000000000000001")
				older, err := os.ReadFile(segment)
				must(t, err)
				appendAll(t, l, &s, strings.Repeat("x", 100))
				must(t, change(segment, append(older, make([]byte, 256<<10-len(older))...)))
				if _, err := l.Append([]byte("two")); err != nil {
					t.Fatal(err)
				}
				err = l.Sync()
				if !errors.Is(err, wal.ErrFileChanged) || l.Durable() != s.index {
					t.Fatalf("the next record: %v; %d are acknowledged, want %d", err, l.Durable(), s.index)
				}
				text := err.Error()
				if !strings.Contains(text, segment) || !strings.Contains(text, "put the file back") ||
					strings.Contains(text, "recovers") {
					t.Errorf("the error does not fit: %v", err)
				}
				_ = l.Close() // the error is the same
				if name != "truncated" && name != "overwritten" {
					return
				}
				if _, _, err := wal.Open(wal.OS{}, path, wal.Options{}); !errors.Is(err, wal.ErrCorrupt) {
					t.Errorf("the next start does not report that a record is missing: %v", err)
				}
			})
		}
	}
}

// syncHookFS calls hook after each sync of a segment.
type syncHookFS struct {
	wal.OS
	hook *func()
}

func (fsys syncHookFS) OpenWrite(name string) (wal.File, error) {
	f, err := fsys.OS.OpenWrite(name)
	if err != nil {
		return nil, err
	}
	return syncHookFile{f, f.(changeChecker), fsys.hook}, nil
}

// changeChecker is what package wal calls if a file has it.
type changeChecker interface {
	CheckLinks() error
	CheckName() error
	CheckContent(size int64, b []byte, offset int64) error
}

type syncHookFile struct {
	wal.File
	changeChecker
	hook *func()
}

func (f syncHookFile) Sync() error {
	err := f.File.Sync()
	(*f.hook)()
	return err
}

// TestOSSegmentChangedDuringSync truncates and overwrites a segment while a record is synced, which
// is then not acknowledged.
func TestOSSegmentChangedDuringSync(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: this system cannot truncate an open file")
	}
	for name, length := range map[string]int{
		"truncated": 0, "overwritten by a short file": 32, "overwritten by a long file": 256 << 10,
	} {
		path, hook := filepath.Join(t.TempDir(), "data"), func() {}
		l, _, err := wal.Open(syncHookFS{hook: &hook}, path, wal.Options{})
		must(t, err)
		var s state
		segment := filepath.Join(path, "log-00000000000000000001")
		older, err := os.ReadFile(segment)
		must(t, err)
		older = append(older, make([]byte, 256<<10)...)[:length]
		appendAll(t, l, &s, "one")
		hook = func() { must(t, os.WriteFile(segment, older, 0o600)) }
		if _, err := l.Append([]byte("two")); err != nil {
			t.Fatal(err)
		}
		if err := l.Sync(); !errors.Is(err, wal.ErrFileChanged) || l.Durable() != s.index {
			t.Errorf("%s: %v; %d are acknowledged, want %d", name, err, l.Durable(), s.index)
		}
		hook = func() {}
		_ = l.Close() // the error is the same
	}
}

// TestOSNotADirectory opens a path that cannot be a data directory.
func TestOSNotADirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	for _, path := range []string{file, filepath.Join(file, "below")} {
		if _, _, err := wal.Open(wal.OS{}, path, wal.Options{}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	must(t, os.Mkdir(file+".d", 0o700))
	must(t, os.Mkdir(filepath.Join(file+".d", "log-00000000000000000001"), 0o700))
	if _, _, err := wal.Open(wal.OS{}, file+".d", wal.Options{}); err == nil {
		t.Error("a directory passed for a segment")
	}
}

// BenchmarkSync makes a batch of records durable on a real disk, in the directory
// TMPDIR.
func BenchmarkSync(b *testing.B) {
	for _, records := range []int{1, 64} {
		b.Run(fmt.Sprintf("records=%d", records), func(b *testing.B) {
			l, _, _ := openOS(b, b.TempDir(), wal.Options{})
			rec := make([]byte, 200)
			b.SetBytes(int64(records * len(rec)))
			b.ReportAllocs()
			for b.Loop() {
				for range records {
					if _, err := l.Append(rec); err != nil {
						b.Fatal(err)
					}
				}
				must(b, l.Sync())
			}
			must(b, l.Close())
		})
	}
}

// TestOSErrorNamesTheFile: the error has the present name, because a segment is
// created under a temporary name.
func TestOSErrorNamesTheFile(t *testing.T) {
	path := t.TempDir()
	l, _, s := openOS(t, path, wal.Options{})
	appendAll(t, l, &s, "one")
	must(t, wal.CloseActive(l))
	if _, err := l.Append([]byte("two")); err != nil {
		t.Fatal(err)
	}
	err := l.Sync()
	if !errors.Is(err, wal.ErrPoisoned) || !errors.Is(err, os.ErrClosed) || strings.Contains(err.Error(), ".tmp") || !strings.Contains(err.Error(), "log-00000000000000000001") {
		t.Errorf("%v", err)
	}
	_ = l.Close() // the error is the same
}
