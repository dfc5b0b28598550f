package wal_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wal/memfs"
)

// TestViewAtEveryRecord reads the log up to every record while it is written, with snapshots
// before and after it.
func TestViewAtEveryRecord(t *testing.T) {
	opts := smallOptions(31)
	opts.KeepSnapshots = 9
	_, l, states := newMem(t, 31, opts, 20, 6)
	for index := range uint64(len(states)) {
		err := l.View(index, func(past *wal.Recovered) error {
			s, err := load(past)
			if err == nil && s != states[index] {
				err = fmt.Errorf("another state, after %d records", s.index)
			}
			return err
		})
		if err != nil {
			t.Errorf("up to record %d: %v", index, err)
		}
	}
	if err := l.View(uint64(len(states)), func(*wal.Recovered) error { return nil }); !errors.Is(err, wal.ErrSnapshotIndex) {
		t.Errorf("beyond the end: %v", err)
	}
	must(t, l.Close())
	if err := l.View(1, func(*wal.Recovered) error { return nil }); !errors.Is(err, wal.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}

// TestViewOfPoisonedLog reads exactly what was acknowledged.
func TestViewOfPoisonedLog(t *testing.T) {
	for _, kind := range []memfs.Kind{memfs.OpWrite, memfs.OpSync} {
		fsys, l, states := newMem(t, 32, smallOptions(32), 9, 4)
		fsys.SetFault(func(op memfs.Op) memfs.Fault {
			if op.Kind == kind {
				return memfs.Fault{Err: syscall.EIO, Keep: 20}
			}
			return memfs.Fault{}
		})
		if _, err := l.Append([]byte("never acknowledged")); err != nil {
			t.Fatal(err)
		}
		if err := l.Sync(); !errors.Is(err, wal.ErrPoisoned) {
			t.Fatal(err)
		}
		last := states[len(states)-1]
		if got := l.Stats().DurableIndex; got != last.index {
			t.Fatalf("%v: durable are %d records of %d", kind, got, last.index)
		}
		err := l.View(last.index, func(past *wal.Recovered) error {
			if s, err := load(past); err != nil || s != last {
				return fmt.Errorf("%+v, %w", s, err)
			}
			return nil
		})
		if err != nil {
			t.Errorf("%v: %v", kind, err)
		}
	}
}

// TestViewSkipsDamagedSnapshot: a snapshot that was valid when it was written is
// verified again.
func TestViewSkipsDamagedSnapshot(t *testing.T) {
	opts := smallOptions(33)
	opts.KeepSnapshots = 9
	fsys, l, states := newMem(t, 33, opts, 20, 6)
	for _, name := range names(t, fsys, "snapshot-") {
		fsys.FlipBit(filepath.Join(dir, name), 300)
	}
	last := states[len(states)-1]
	err := l.View(last.index, func(past *wal.Recovered) error {
		s, err := load(past)
		if err == nil && (s != last || past.SnapshotIndex != 0 || len(past.BadSnapshots) != 3) {
			err = fmt.Errorf("%+v from %+v", s, past)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	fsys.Delete(filepath.Join(dir, names(t, fsys, "log-")[2]))
	if err := l.View(last.index, func(past *wal.Recovered) error { _, err := load(past); return err }); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a segment is missing: %v", err)
	}
}

// TestSnapshotFromFiles makes snapshots of the log's own content.
func TestSnapshotFromFiles(t *testing.T) {
	fsys, l, states := newMem(t, 34, smallOptions(34), 9, 0)
	last := states[len(states)-1]
	var made state
	write := func(past *wal.Recovered, w io.Writer) (err error) {
		if made, err = load(past); err != nil {
			return err
		}
		return made.snapshot(w)
	}
	refuse := errors.New("not as it should be")
	err := l.SnapshotFromFiles(last.index, nil, write, func(io.Reader, int64) error { return refuse })
	if !errors.Is(err, refuse) || len(names(t, fsys, "snapshot-")) != 0 || l.Err() != nil {
		t.Fatalf("a snapshot that is refused: %v, files %q", err, names(t, fsys, ""))
	}
	err = l.SnapshotFromFiles(last.index, nil, write, func(r io.Reader, size int64) error {
		var s state
		if err := s.restore(r, size); err != nil || s != last {
			return fmt.Errorf("%+v, %w", s, err)
		}
		return nil
	})
	if err != nil || made != last {
		t.Fatalf("%+v, %v", made, err)
	}
	if l.Stats().SnapshotIndex != last.index {
		t.Error("no snapshot")
	}
}

// TestSnapshotIsReadBackFromDisk: if a snapshot reads back differently, older ones
// are not removed.
func TestSnapshotIsReadBackFromDisk(t *testing.T) {
	opts := smallOptions(35)
	opts.KeepSnapshots = 1
	fsys, l, states := newMem(t, 35, opts, 8, 8)
	last := states[len(states)-1]
	kept := names(t, fsys, "")
	appendAll(t, l, &last, "more")
	fails(memfs.OpRead, syscall.EIO)(t, fsys)
	if err := l.Snapshot(last.index, nil, last.snapshot); !errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), "reading back") {
		t.Fatal(err)
	}
	fsys.SetFault(nil)
	if now := names(t, fsys, ""); fmt.Sprint(now) != fmt.Sprint(kept) {
		t.Errorf("%q, before %q", now, kept)
	}
	appendAll(t, l, &last, "still works")
}

// TestCanceledSnapshotChangesNothing: a snapshot that is canceled while it reads the previous
// snapshot or its own file leaves all files as they were.
func TestCanceledSnapshotChangesNothing(t *testing.T) {
	for part, reads := range map[string]func(name string) bool{
		"previous snapshot": func(name string) bool { return strings.Contains(name, "snapshot-") },
		"own file":          func(name string) bool { return strings.HasSuffix(name, ".tmp") },
	} {
		fsys, l, states := newMem(t, 36, smallOptions(36), 8, 8)
		last := states[len(states)-1]
		appendAll(t, l, &last, "more")
		kept := names(t, fsys, "")
		cancel := make(chan struct{})
		fsys.SetFault(func(op memfs.Op) memfs.Fault {
			if op.Kind == memfs.OpRead && reads(op.Name) {
				close(cancel)
				reads = func(string) bool { return false }
			}
			return memfs.Fault{}
		})
		write := func(past *wal.Recovered, w io.Writer) error {
			made, err := load(past)
			if err != nil {
				return err
			}
			return made.snapshot(w)
		}
		check := func(r io.Reader, _ int64) error {
			if _, err := io.Copy(io.Discard, r); err != nil {
				return err
			}
			t.Errorf("%s: the canceled snapshot is read to its end", part)
			return nil
		}
		if err := l.SnapshotFromFiles(last.index, cancel, write, check); !errors.Is(err, wal.ErrCanceled) {
			t.Errorf("%s: %v", part, err)
		}
		if now := names(t, fsys, ""); fmt.Sprint(now) != fmt.Sprint(kept) {
			t.Errorf("%s: %q, before %q", part, now, kept)
		}
		if err := l.Snapshot(last.index, nil, last.snapshot); err != nil {
			t.Errorf("%s: the next snapshot: %v", part, err)
		}
	}
}

// TestLostLockPoisonsLog: a log without its lock file accepts no more writes after
// the next check, which precedes each snapshot and segment.
func TestLostLockPoisonsLog(t *testing.T) {
	for name, do := range map[string]func(*wal.Log, *state) error{
		"snapshot": func(l *wal.Log, s *state) error { return l.Snapshot(s.index, nil, s.snapshot) },
		"segment": func(l *wal.Log, s *state) error {
			for range 100 {
				if _, err := l.Append(make([]byte, 100)); err != nil {
					return err
				}
				if err := l.Sync(); err != nil {
					return err
				}
			}
			return nil
		},
		"rotation": func(l *wal.Log, _ *state) error { return l.Rotate() },
	} {
		fsys, l, states := newMem(t, 36, smallOptions(36), 3, 0)
		before := fmt.Sprint(names(t, fsys, ""))
		fsys.LoseLock(filepath.Join(dir, "lock"))
		if err := do(l, &states[len(states)-1]); !errors.Is(err, wal.ErrLockLost) || !errors.Is(err, wal.ErrPoisoned) {
			t.Errorf("%s: %v", name, err)
		}
		if err := l.Err(); !errors.Is(err, wal.ErrLockLost) {
			t.Errorf("%s: the log goes on: %v", name, err)
		}
		if after := fmt.Sprint(names(t, fsys, "")); after != before {
			t.Errorf("%s: files %s, before %s", name, after, before)
		}
		// Our end does not unlock the directory of the other process.
		if _, err := fsys.Lock(filepath.Join(dir, "lock")); err != nil {
			t.Error(err)
		}
		if err := l.Close(); !errors.Is(err, wal.ErrLockLost) {
			t.Errorf("%s: close: %v", name, err)
		}
		if _, err := fsys.Lock(filepath.Join(dir, "lock")); !errors.Is(err, wal.ErrLocked) {
			t.Errorf("%s: the other one's lock was given up: %v", name, err)
		}
	}
}

// TestRotate starts a segment at once: damage before a snapshot at its beginning does
// not matter.
func TestRotate(t *testing.T) {
	opts := smallOptions(37)
	opts.SegmentSize = 1 << 20
	fsys, l, states := newMem(t, 37, opts, 6, 0)
	s := states[len(states)-1]
	if _, err := l.Append([]byte("pending")); err != nil {
		t.Fatal(err)
	}
	s.apply([]byte("pending"))
	for range 2 { // the second time there is nothing to do
		must(t, l.Rotate())
	}
	if n := l.Stats(); n.Segments != 2 || n.DurableIndex != s.index {
		t.Fatalf("%+v", n)
	}
	must(t, l.Snapshot(s.index, nil, s.snapshot))
	appendAll(t, l, &s, "behind")
	must(t, l.Close())
	fsys.FlipBit(filepath.Join(dir, names(t, fsys, "log-")[0]), 800)
	if _, _, got := mustOpen(t, fsys, opts); got != s {
		t.Errorf("%+v, want %+v", got, s)
	}
}

// TestNoSyncOmitsSyncOfBatches: batches are not synced, but segments, snapshots, and
// the end are.
func TestNoSyncOmitsSyncOfBatches(t *testing.T) {
	opts := smallOptions(38)
	opts.NoSync, opts.SegmentSize = true, 2000
	fsys := memfs.New(seeded(38))
	l, _, s := mustOpen(t, fsys, opts)
	before := fsys.Syncs()
	appendAll(t, l, &s, "a")
	appendAll(t, l, &s, "b")
	if n := fsys.Syncs() - before; n != 0 {
		t.Errorf("%d syncs for two batches", n)
	}
	must(t, l.Snapshot(s.index, nil, s.snapshot))
	// The records of the snapshot are durable, and so is the log up to it.
	for seed := range uint64(20) {
		c := fsys.Clone(seeded(seed))
		c.Crash()
		if _, _, got := mustOpen(t, c, opts); got.index < s.index {
			t.Fatalf("seed %d: %d records after a snapshot of %d", seed, got.index, s.index)
		}
	}
	for i := range 60 {
		appendAll(t, l, &s, fmt.Sprintf("record %d that fills segments", i))
	}
	// Only the last segment can be torn.
	for seed := range uint64(50) {
		c := fsys.Clone(seeded(seed))
		c.Crash()
		if l, rec, err := wal.Open(c, dir, opts); err == nil {
			if got, err := load(rec); err != nil || got.index > s.index {
				t.Fatal(got, err)
			}
			_ = l.Close()
		} else if !errors.Is(err, wal.ErrCorrupt) || !strings.Contains(err.Error(), names(t, c, "log-")[len(names(t, c, "log-"))-1]) {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	must(t, l.Close())
	fsys.Crash()
	if _, _, got := mustOpen(t, fsys, opts); got != s {
		t.Errorf("after a regular end and a crash: %+v, want %+v", got, s)
	}
}

// TestOpenErrorsSayWhatToDo checks what the error of a start tells an operator.
func TestOpenErrorsSayWhatToDo(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(*testing.T, *memfs.FS)
		want   error
		says   []string
	}{
		{"bit flip in the middle", func(t *testing.T, f *memfs.FS) { f.FlipBit(filepath.Join(dir, names(t, f, "log-")[1]), 8*80) }, wal.ErrCorrupt,
			[]string{"log-", "offset 32", "checksum of record", "would be lost", "to ", "restore the directory from a copy"}},
		{"segment missing", func(t *testing.T, f *memfs.FS) { f.Delete(filepath.Join(dir, names(t, f, "log-")[1])) }, wal.ErrCorrupt,
			[]string{"are missing", "records", "would be lost"}},
		{"full", fails(memfs.OpWrite, syscall.ENOSPC), syscall.ENOSPC, []string{dir, "free space on this disk", "no acknowledged change is lost"}},
		{"limit of file sizes", fails(memfs.OpWrite, syscall.EFBIG), syscall.EFBIG, []string{dir, "raise the limit of file sizes (ulimit -f", "no acknowledged change is lost"}},
		{"below a read-only mount", fails(memfs.OpMkdir, syscall.EROFS), syscall.EROFS, []string{"check the disk"}},
		{"mounted read-only", fails(memfs.OpLock, syscall.EROFS), syscall.EROFS, []string{dir, "read-only"}},
		{"not ours", fails(memfs.OpLock, fs.ErrPermission), fs.ErrPermission, []string{dir, "must own"}},
		{"a segment is not ours", fails(memfs.OpOpen, fs.ErrPermission), fs.ErrPermission, []string{dir, "must own"}},
		{"sick", fails(memfs.OpRead, syscall.EIO), syscall.EIO, []string{dir, "check the disk"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			opts := smallOptions(39)
			opts.KeepSnapshots = 9
			fsys, l, _ := newMem(t, 39, opts, 18, 0)
			must(t, l.Close())
			c.damage(t, fsys)
			_, _, err := wal.Open(fsys, dir, opts)
			if !errors.Is(err, c.want) {
				t.Fatal(err)
			}
			for _, part := range c.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("no %q in %q", part, err)
				}
			}
		})
	}
}

// fails makes one kind of operation fail.
func fails(kind memfs.Kind, err error) func(*testing.T, *memfs.FS) {
	return func(_ *testing.T, f *memfs.FS) {
		f.SetFault(func(op memfs.Op) memfs.Fault {
			if op.Kind == kind {
				return memfs.Fault{Err: &fs.PathError{Op: kind.String(), Path: op.Name, Err: err}}
			}
			return memfs.Fault{}
		})
	}
}

// TestUnreadableSnapshotIsNotSkipped: a snapshot that cannot be opened does not count
// as damaged, because damaged snapshots are removed later.
func TestUnreadableSnapshotIsNotSkipped(t *testing.T) {
	for _, cause := range []error{fs.ErrPermission, syscall.EMFILE} {
		fsys, l, _ := newMem(t, 40, smallOptions(40), 9, 4)
		must(t, l.Close())
		fsys.SetFault(func(op memfs.Op) memfs.Fault {
			if op.Kind == memfs.OpOpen && strings.Contains(op.Name, "snapshot-") {
				return memfs.Fault{Err: &fs.PathError{Op: "open", Path: op.Name, Err: cause}}
			}
			return memfs.Fault{}
		})
		if _, _, err := wal.Open(fsys, dir, smallOptions(40)); !errors.Is(err, cause) || !strings.Contains(err.Error(), "snapshot-") {
			t.Errorf("a snapshot that cannot be read for %v: %v", cause, err)
		}
	}
}
