package wal_test

import (
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wal/memfs"
)

// openFuzzed opens a directory with hostile files. The result is a refusal, or a log
// that replays, accepts a record, and has it after a crash.
func openFuzzed(t *testing.T, fsys *memfs.FS) {
	l, rec, err := wal.Open(fsys, dir, smallOptions(1))
	if err != nil {
		if !errors.Is(err, wal.ErrCorrupt) && !errors.Is(err, wal.ErrVersion) {
			t.Fatal(err)
		}
		return
	}
	records := uint64(0)
	skip := func(uint64, []byte) error { records++; return nil }
	if err := rec.Replay(func(r io.Reader, _ int64) error { _, err := io.Copy(io.Discard, r); return err }, skip); err != nil {
		t.Fatal(err)
	}
	if records != rec.LastIndex-rec.SnapshotIndex {
		t.Fatalf("%d records after %d, not up to %d", records, rec.SnapshotIndex, rec.LastIndex)
	}
	index, err := l.Append([]byte("another"))
	if err != nil || index != rec.LastIndex+1 {
		t.Fatal(index, err)
	}
	must(t, l.Sync())
	fsys.Crash()
	_, rec, err = wal.Open(fsys, dir, smallOptions(1))
	if err != nil || rec.LastIndex != index {
		t.Fatal(rec, err)
	}
}

// FuzzOpen reads a hostile segment, and a hostile snapshot together with a valid log.
func FuzzOpen(f *testing.F) {
	fsys, _, _ := newMem(f, 1, smallOptions(1), 4, 0)
	for _, name := range names(f, fsys, "log-") {
		b := read(f, fsys, name)
		f.Add(b)
		f.Add(b[:len(b)/2])
	}
	fsys, l, _ := newMem(f, 1, smallOptions(1), 4, 4)
	must(f, l.Close())
	name := names(f, fsys, "snapshot-")[0]
	b := read(f, fsys, name)
	f.Add(b)
	f.Add(b[:39])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		segment := memfs.New(seeded(1))
		segment.WriteFile(filepath.Join(dir, "log-00000000000000000001"), b)
		openFuzzed(t, segment)
		snapshot := fsys.Clone(seeded(1))
		snapshot.WriteFile(filepath.Join(dir, name), b)
		openFuzzed(t, snapshot)
	})
}
