package wal_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wal/memfs"
)

// withVersion returns a valid header of another version.
func withVersion(b []byte, segment bool) []byte {
	n := 20
	if segment {
		n = 28
	}
	b[8] = 2
	binary.LittleEndian.PutUint32(b[n:], crc32.Checksum(b[:n], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// TestFormat pins the bytes of version 1.
func TestFormat(t *testing.T) {
	fsys := memfs.New(seeded(1))
	opts := wal.Options{Preallocate: -1, Rand: bytes.NewReader([]byte("saltsalt"))}
	l, _, s := mustOpen(t, fsys, opts)
	appendAll(t, l, &s, "one", "")
	if err := l.Snapshot(1, nil, func(w io.Writer) error { _, err := io.WriteString(w, "state"); return err }); err != nil {
		t.Fatal(err)
	}
	must(t, l.Close())
	want := map[string]string{
		"log-00000000000000000001":      wantSegment,
		"snapshot-00000000000000000001": wantSnapshot,
	}
	for name, hexed := range want {
		if got := hex.EncodeToString(read(t, fsys, name)); got != hexed {
			t.Errorf("%s:\n got %s\nwant %s", name, got, hexed)
		}
	}
}

// TestFaultSweep makes every single operation of a scenario fail. Acknowledged
// records survive a restart and a crash. A permanent error names the path and the
// cause, and stays the same.
func TestFaultSweep(t *testing.T) {
	faults := []struct {
		err  error
		keep int
	}{{syscall.EIO, 0}, {syscall.ENOSPC, 100}}
	fired := 0
	for _, fault := range faults {
		for n := 0; ; n++ {
			fsys := memfs.New(seeded(uint64(n)))
			fsys.FailAt(n, fault.err, fault.keep)
			acked, err := scenario(t, fsys)
			if err == nil && fsys.Ops() <= n {
				break
			}
			fired++
			if err != nil && (!errors.Is(err, fault.err) || !strings.Contains(err.Error(), dir)) {
				t.Fatalf("operation %d: %v", n, err)
			}
			fsys.SetFault(nil)
			crashed := fsys.Clone(seeded(uint64(n)))
			crashed.Crash()
			fsys.Restart()
			for _, f := range []*memfs.FS{fsys, crashed} {
				if _, _, s := mustOpen(t, f, smallOptions(1)); s.index < acked {
					t.Fatalf("operation %d: %d records of %d acknowledged", n, s.index, acked)
				}
			}
		}
	}
	if fired < 150 {
		t.Fatalf("only %d faults", fired)
	}
}

// scenario uses all functions of a log and returns the last acknowledged record.
func scenario(t *testing.T, fsys *memfs.FS) (acked uint64, err error) {
	opts := smallOptions(1)
	opts.KeepSnapshots = 1
	for range 2 {
		l, rec, err := wal.Open(fsys, dir, opts)
		if err != nil {
			return acked, err
		}
		s, err := load(rec)
		if err != nil {
			return acked, err
		}
		for i := range 12 {
			record := bytes.Repeat([]byte{byte(i)}, 40*i)
			if _, err := l.Append(record); err != nil {
				return acked, err
			}
			s.apply(record)
			if err := l.Sync(); err != nil {
				checkPoisoned(t, l, err)
				return acked, errors.Join(err, l.Close())
			}
			acked = s.index
			if i%5 != 4 {
				continue
			}
			if err := l.Snapshot(s.index, nil, s.snapshot); err != nil {
				if l.Err() != nil {
					checkPoisoned(t, l, l.Err())
				}
				return acked, err
			}
		}
		if err := l.Close(); err != nil {
			return acked, err
		}
	}
	return acked, nil
}

// checkPoisoned checks that every call returns the permanent error.
func checkPoisoned(t *testing.T, l *wal.Log, first error) {
	t.Helper()
	if !errors.Is(first, wal.ErrPoisoned) || !strings.Contains(first.Error(), "restart") {
		t.Fatalf("not poisoned: %v", first)
	}
	_, aerr := l.Append(nil)
	serr := l.Sync()
	perr := l.Snapshot(0, nil, func(io.Writer) error { return nil })
	if aerr != first || serr != first || perr != first {
		t.Fatalf("other errors later: %v, %v, %v", aerr, serr, perr)
	}
}

// TestFullDiskLosesNothing fills the disk, and checks that the log is complete when
// there is space again.
func TestFullDiskLosesNothing(t *testing.T) {
	fsys := memfs.New(seeded(2))
	opts := smallOptions(2)
	l, _, s := mustOpen(t, fsys, opts)
	fsys.SetLimit(5000)
	var err error
	for err == nil {
		rec := []byte(strings.Repeat("x", 100))
		if _, err = l.Append(rec); err == nil {
			if err = l.Sync(); err == nil {
				s.apply(rec)
			}
		}
	}
	if !errors.Is(err, syscall.ENOSPC) || s.index < 20 {
		t.Fatalf("after %d records: %v", s.index, err)
	}
	checkPoisoned(t, l, err)
	fsys.Restart()
	fsys.SetLimit(0)
	if _, _, got := mustOpen(t, fsys, opts); got != s {
		t.Fatalf("%d records, %d acknowledged", got.index, s.index)
	}
}

// TestFileSizeLimitIsReported has a process whose limit of file sizes ends a write.
func TestFileSizeLimitIsReported(t *testing.T) {
	fsys := memfs.New(seeded(3))
	l, _, _ := mustOpen(t, fsys, smallOptions(3))
	fails(memfs.OpWrite, syscall.EFBIG)(t, fsys)
	_, err := l.Append([]byte("x"))
	if err == nil {
		err = l.Sync()
	}
	if !errors.Is(err, syscall.EFBIG) || !strings.Contains(err.Error(), "raise the limit of file sizes (ulimit -f") || strings.Contains(err.Error(), "disk") {
		t.Errorf("the error is %v", err)
	}
}

// TestPreallocationOnFullDiskKeepsAppending has a disk with space for records but not
// for preallocation: records that fit are accepted, and a start needs no more space.
func TestPreallocationOnFullDiskKeepsAppending(t *testing.T) {
	fsys := memfs.New(seeded(2))
	opts := smallOptions(2)
	opts.Preallocate, opts.SegmentSize = 1<<20, 1<<20
	fsys.SetLimit(20_000)
	l, _, s := mustOpen(t, fsys, opts)
	for range 3 {
		for range 10 {
			appendAll(t, l, &s, strings.Repeat("x", 100))
		}
		fsys.Restart()
		var got state
		if l, _, got = mustOpen(t, fsys, opts); got != s {
			t.Fatalf("%d records, %d acknowledged", got.index, s.index)
		}
	}
}

func TestFailedSnapshotLeavesLogUnchanged(t *testing.T) {
	fsys := memfs.New(seeded(2))
	l, _, s := mustOpen(t, fsys, smallOptions(2))
	appendAll(t, l, &s, "one")
	broken := errors.New("broken")
	if err := l.Snapshot(1, nil, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if left := names(t, fsys, "snapshot-"); len(left) > 0 {
		t.Fatalf("left over: %v", left)
	}
	appendAll(t, l, &s, "two")
	must(t, l.Snapshot(2, nil, s.snapshot))
}

// TestSnapshotLeavesSpaceForTheLog writes a snapshot that does not fit on the disk: it
// fails, and the log accepts records during and after it. A smaller one succeeds.
func TestSnapshotLeavesSpaceForTheLog(t *testing.T) {
	fsys := memfs.New(seeded(2))
	opts := smallOptions(2)
	opts.SegmentSize = 64 << 10
	l, _, s := mustOpen(t, fsys, opts)
	appendAll(t, l, &s, "one", "two")
	fsys.SetLimit(4 << 20)
	writeUntilFull := func(_ *wal.Recovered, w io.Writer) (err error) {
		for err == nil {
			_, err = w.Write(make([]byte, 10_000))
		}
		appendAll(t, l, &s, strings.Repeat("x", 20_000))
		return err
	}
	check := func(io.Reader, int64) error { return nil }
	if err := l.SnapshotFromFiles(2, nil, writeUntilFull, check); err == nil || l.Err() != nil {
		t.Fatalf("a snapshot without end: error %v, log %v", err, l.Err())
	}
	appendAll(t, l, &s, strings.Repeat("y", 20_000))
	then := s
	write := func(_ *wal.Recovered, w io.Writer) error { return then.snapshot(w) }
	if err := l.SnapshotFromFiles(then.index, nil, write, check); err != nil {
		t.Error(err)
	}
	must(t, l.Close())
	if _, rec, got := mustOpen(t, fsys, opts); got != s || rec.SnapshotIndex != then.index {
		t.Errorf("%+v after a snapshot of %d, want %+v", got, rec.SnapshotIndex, s)
	}
}

// TestSnapshotFitsOnSmallDisk: on a disk with less space than a segment, a snapshot from the files
// may use most of that space. Other snapshots may use all of it.
func TestSnapshotFitsOnSmallDisk(t *testing.T) {
	fsys := memfs.New(seeded(2))
	l, _, s := mustOpen(t, fsys, wal.Options{Preallocate: -1, Rand: saltReader{seeded(2)}})
	appendAll(t, l, &s, "one")
	fsys.SetLimit(1 << 20)
	check := func(io.Reader, int64) error { return nil }
	err := l.SnapshotFromFiles(1, nil, func(_ *wal.Recovered, w io.Writer) error {
		_, err := w.Write(make([]byte, 700<<10))
		return err
	}, check)
	if err != nil {
		t.Error(err)
	}
	appendAll(t, l, &s, "two")
	if err := l.Snapshot(2, nil, func(w io.Writer) error { _, err := w.Write(make([]byte, 300<<10)); return err }); err != nil {
		t.Error(err)
	}
}

func TestSnapshotIndexesOutOfRangeAreRefused(t *testing.T) {
	l, _, s := mustOpen(t, memfs.New(seeded(2)), smallOptions(2))
	appendAll(t, l, &s, "one", "two", "three")
	write := func(io.Writer) error { return nil }
	for _, c := range []struct {
		index uint64
		want  error
	}{{4, wal.ErrSnapshotIndex}, {0, nil}, {2, nil}, {2, nil}, {1, wal.ErrSnapshotIndex}, {3, nil}} {
		if err := l.Snapshot(c.index, nil, write); !errors.Is(err, c.want) {
			t.Errorf("Snapshot(%d): %v", c.index, err)
		}
	}
	if st := l.Stats(); st.Snapshots != 2 || st.SnapshotIndex != 3 {
		t.Errorf("%+v", st)
	}
}

// TestSnapshotSyncsItsRecords makes a snapshot of records that were not synced: they
// are durable with it.
func TestSnapshotSyncsItsRecords(t *testing.T) {
	fsys := memfs.New(seeded(2))
	l, _, s := mustOpen(t, fsys, smallOptions(2))
	if _, err := l.Append([]byte("x")); err != nil {
		t.Fatal(err)
	}
	s.apply([]byte("x"))
	must(t, l.Snapshot(1, nil, s.snapshot))
	fsys.Crash()
	if _, rec, got := mustOpen(t, fsys, smallOptions(2)); got != s || rec.SnapshotIndex != 1 {
		t.Fatalf("%+v %+v", got, rec)
	}
}

// TestSnapshotIsSyncedInPieces: at no time is much of a snapshot unsynced, so that the syncs
// of the log do not wait for it. Each piece is written and synced in full.
func TestSnapshotIsSyncedInPieces(t *testing.T) {
	const piece = 4 << 20
	for name, size := range map[string]int{"one write": 3*piece + 1, "many writes": 100_000} {
		fsys := memfs.New(seeded(2))
		l, _, s := mustOpen(t, fsys, smallOptions(2))
		appendAll(t, l, &s, "one")
		unsynced, syncs := 0, 0
		fsys.SetFault(func(op memfs.Op) memfs.Fault {
			switch {
			case !strings.Contains(op.Name, "snapshot-"):
			case op.Kind == memfs.OpSync:
				unsynced = 0
				syncs++
			case op.Kind == memfs.OpWrite:
				if unsynced += op.Len; unsynced > piece {
					t.Fatalf("%s: %d bytes are not synced", name, unsynced)
				}
			}
			return memfs.Fault{}
		})
		content := make([]byte, 3*piece+1)
		for i := range content {
			content[i] = byte(i % 251)
		}
		write := func(w io.Writer) error {
			for p := range slices.Chunk(content, size) {
				if _, err := w.Write(p); err != nil {
					return err
				}
			}
			return nil
		}
		must(t, l.Snapshot(1, nil, write))
		if syncs != 4 || unsynced != 0 {
			t.Errorf("%s: %d syncs, and %d bytes are not synced, want 4 and 0", name, syncs, unsynced)
		}
		fsys.Crash()
		_, rec, err := wal.Open(fsys, dir, smallOptions(2))
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		err = rec.Replay(func(r io.Reader, _ int64) (err error) { got, err = io.ReadAll(r); return err }, func(uint64, []byte) error { return nil })
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s: %d bytes of %d are left, %v", name, len(got), len(content), err)
		}
	}
}

// TestSnapshotDuringAppends appends and syncs while a snapshot is written,
// refuses a second one, and makes Close wait.
func TestSnapshotDuringAppends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fsys := memfs.New(seeded(2))
		l, _, s := mustOpen(t, fsys, smallOptions(2))
		appendAll(t, l, &s, "one")
		then := s
		proceed := make(chan struct{})
		done := make(chan error)
		go func() { // ends with the snapshot
			done <- l.Snapshot(1, nil, func(w io.Writer) error { <-proceed; return then.snapshot(w) })
		}()
		synctest.Wait()
		appendAll(t, l, &s, "two", "three")
		if err := l.Snapshot(3, nil, s.snapshot); !errors.Is(err, wal.ErrSnapshotIndex) {
			t.Error(err)
		}
		closed := make(chan error, 1)
		go func() { closed <- l.Close() }() // ends after the snapshot
		synctest.Wait()
		select {
		case err := <-closed:
			t.Errorf("Close did not wait: %v", err)
		default:
		}
		if _, err := l.Append(nil); !errors.Is(err, wal.ErrClosed) {
			t.Error(err)
		}
		close(proceed)
		if err := errors.Join(<-done, <-closed); err != nil {
			t.Error(err)
		}
		if _, rec, got := mustOpen(t, fsys, smallOptions(2)); got != s || rec.SnapshotIndex != 1 {
			t.Errorf("%+v %+v", got, rec)
		}
	})
}

// TestGroupCommit lets many goroutines call Sync: there are fewer syncs than callers,
// and each record is durable when its Sync returns.
func TestGroupCommit(t *testing.T) {
	fsys := memfs.New(seeded(2))
	l, _, _ := mustOpen(t, fsys, wal.Options{})
	before := l.Stats()
	const goroutines, each = 16, 50
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() { // each ends after its records
			for range each {
				index, err := l.Append([]byte("record"))
				if err == nil {
					err = l.Sync()
				}
				if err != nil || l.Stats().DurableIndex < index {
					t.Errorf("record %d not durable: %v", index, err)
				}
			}
		})
	}
	wg.Wait()
	st := l.Stats()
	if st.LastIndex != goroutines*each || st.Records != goroutines*each || st.Syncs-before.Syncs > goroutines*each {
		t.Errorf("%+v", st)
	}
}

// TestEachBatchIsSyncedOnce counts the operations of a batch.
func TestEachBatchIsSyncedOnce(t *testing.T) {
	fsys := memfs.New(seeded(2))
	l, _, s := mustOpen(t, fsys, wal.Options{})
	syncs, ops := fsys.Syncs(), fsys.Ops()
	appendAll(t, l, &s, "one", "two", "three")
	if n := fsys.Syncs() - syncs; n != 1 {
		t.Errorf("%d syncs for a batch", n)
	}
	if n := fsys.Ops() - ops; n != 3 { // a write, a sync, and a check of the lock
		t.Errorf("%d operations for a batch", n)
	}
	appendAll(t, l, &s)
	if n := fsys.Ops() - ops; n != 3 {
		t.Errorf("a sync of nothing did something")
	}
}

func TestTooLargeRecordsAndBatchesAreRefused(t *testing.T) {
	l, _, s := mustOpen(t, memfs.New(seeded(2)), wal.Options{MaxRecord: 10})
	if _, err := l.Append(make([]byte, 11)); !errors.Is(err, wal.ErrTooLarge) {
		t.Error(err)
	}
	appendAll(t, l, &s, "0123456789", "")
	if st := l.Stats(); st.LastIndex != 2 {
		t.Errorf("%+v", st)
	}
}

func TestCallsAfterCloseFail(t *testing.T) {
	fsys := memfs.New(seeded(2))
	l, _, s := mustOpen(t, fsys, smallOptions(2))
	appendAll(t, l, &s, "one")
	if _, err := l.Append([]byte("pending")); err != nil {
		t.Fatal(err)
	}
	s.apply([]byte("pending"))
	must(t, l.Close())
	_, aerr := l.Append(nil)
	for _, err := range []error{aerr, l.Sync(), l.Close(), l.Err(), l.Snapshot(1, nil, s.snapshot)} {
		if !errors.Is(err, wal.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	if _, _, got := mustOpen(t, fsys, smallOptions(2)); got != s {
		t.Error("Close lost what was pending")
	}
}

// TestDirectoryIsLocked opens a directory twice.
func TestDirectoryIsLocked(t *testing.T) {
	fsys := memfs.New(seeded(2))
	l, _, _ := mustOpen(t, fsys, smallOptions(2))
	if _, _, err := wal.Open(fsys, dir, smallOptions(2)); !errors.Is(err, wal.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Fatal(err)
	}
	must(t, l.Close())
	mustOpen(t, fsys, smallOptions(2))
}

func TestReplayReturnsCallbackError(t *testing.T) {
	fsys, l, _ := newMem(t, 2, smallOptions(2), 6, 4)
	must(t, l.Close())
	_, rec, _ := mustOpen(t, fsys, smallOptions(2))
	broken := errors.New("broken")
	if err := rec.Replay(func(io.Reader, int64) error { return broken }, nil); !errors.Is(err, broken) {
		t.Error(err)
	}
	if rec.SnapshotIndex == 0 {
		t.Error("no snapshot")
	}
	var s state
	if err := rec.Replay(s.restore, func(uint64, []byte) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
}

// TestReplayVerifiesSnapshot: each bit of a snapshot that changes after Open is detected, also if
// restore accepts the content, and even if restore does not read all of it.
func TestReplayVerifiesSnapshot(t *testing.T) {
	fsys, l, _ := newMem(t, 2, smallOptions(2), 6, 4)
	must(t, l.Close())
	_, rec, _ := mustOpen(t, fsys, smallOptions(2))
	path := filepath.Join(dir, fmt.Sprintf("snapshot-%020d", rec.SnapshotIndex))
	content, err := fsys.ReadFile(path)
	must(t, err)
	skip := func(uint64, []byte) error { return nil }
	all := func(r io.Reader, _ int64) error { _, err := io.Copy(io.Discard, r); return err }
	for bit := range 8 * int64(len(content)) {
		fsys.FlipBit(path, bit)
		for name, restore := range map[string]func(io.Reader, int64) error{
			"all":     all,
			"nothing": func(io.Reader, int64) error { return nil },
			"refused": func(io.Reader, int64) error { return errors.New("invalid content") },
		} {
			err := rec.Replay(restore, skip)
			if !errors.Is(err, wal.ErrCorrupt) || !strings.Contains(err.Error(), path) {
				t.Fatalf("bit %d, restore reads %s: %v", bit, name, err)
			}
		}
		fsys.FlipBit(path, bit)
	}
	must(t, rec.Replay(all, skip))
}

// TestSnapshotsRemoveOldFiles counts the files that snapshots leave.
func TestSnapshotsRemoveOldFiles(t *testing.T) {
	opts := smallOptions(2)
	opts.KeepSnapshots = 2
	fsys, l, states := newMem(t, 2, opts, 60, 5)
	st := l.Stats()
	if st.Snapshots != 2 || len(names(t, fsys, "snapshot-")) != 2 {
		t.Errorf("snapshots: %d, files %v", st.Snapshots, names(t, fsys, "snapshot-"))
	}
	segments := names(t, fsys, "log-")
	if st.Segments != len(segments) || st.Segments > 6 || st.Bytes == 0 {
		t.Errorf("segments: %+v, files %v", st, segments)
	}
	var first uint64
	if _, err := fmt.Sscanf(segments[0], "log-%d", &first); err != nil || first == 1 {
		t.Errorf("the log still begins with %d, %v", first, err)
	}
	if st.LastIndex != uint64(len(states)-1) || st.DurableIndex != st.LastIndex {
		t.Errorf("%+v of %d", st, len(states)-1)
	}
}

// TestSnapshotsRemoveOldFilesAfterOneIsGone removes old files, as an operator can do to free
// space. A network file system that repeats a removal gives the same error.
func TestSnapshotsRemoveOldFilesAfterOneIsGone(t *testing.T) {
	opts := smallOptions(2)
	opts.KeepSnapshots = 2
	fsys, l, states := newMem(t, 2, opts, 60, 5)
	fsys.Delete(filepath.Join(dir, names(t, fsys, "snapshot-")[0]))
	fsys.Delete(filepath.Join(dir, names(t, fsys, "log-")[0]))
	s := states[len(states)-1]
	for range 3 {
		appendAll(t, l, &s, strings.Repeat("a record that fills a segment", 25))
		must(t, l.Snapshot(s.index, nil, s.snapshot))
	}
	if got := names(t, fsys, "snapshot-"); len(got) != 2 {
		t.Errorf("snapshots: %v", got)
	}
}
