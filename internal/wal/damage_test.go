package wal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wal/memfs"
)

func names(t testing.TB, fsys *memfs.FS, prefix string) []string {
	t.Helper()
	all, err := fsys.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(n string) bool { return !strings.HasPrefix(n, prefix) })
}

func read(t testing.TB, fsys *memfs.FS, name string) []byte {
	t.Helper()
	b, err := fsys.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// outcome is the result of opening a damaged log.
type outcome struct {
	state state
	torn  *wal.Torn
	bad   int
}

// reopen opens a damaged copy. The error is nil or a refusal.
func reopen(t *testing.T, fsys *memfs.FS, opts wal.Options) (outcome, error) {
	t.Helper()
	l, rec, err := wal.Open(fsys, dir, opts)
	if err != nil {
		if !errors.Is(err, wal.ErrCorrupt) && !errors.Is(err, wal.ErrVersion) {
			t.Fatalf("neither damage nor version: %v", err)
		}
		if !strings.Contains(err.Error(), dir) {
			t.Fatalf("the error does not name the file: %v", err)
		}
		return outcome{}, err
	}
	s, err := load(rec)
	if err != nil {
		t.Fatal(err)
	}
	must(t, l.Close())
	return outcome{state: s, torn: rec.Torn, bad: len(rec.BadSnapshots)}, nil
}

// TestFlippedBitsAreDetected inverts every bit of every file. A log that was closed
// is refused or loses nothing. After a crash only the very last batch may look torn;
// then it is dropped as a whole and reported.
func TestFlippedBitsAreDetected(t *testing.T) {
	for _, closed := range []bool{true, false} {
		t.Run(fmt.Sprintf("closed=%v", closed), func(t *testing.T) {
			opts := smallOptions(3)
			opts.KeepSnapshots = 2
			fsys, l, states := newMem(t, 3, opts, 9, 4)
			if closed {
				must(t, l.Close())
			}
			fsys.Restart()
			last := states[len(states)-1]
			beforeLast := states[len(states)-1-3] // the last batch has 3 records
			refused, same, dropped := 0, 0, 0
			for _, name := range append(names(t, fsys, "log-"), names(t, fsys, "snapshot-")...) {
				for bit := range int64(len(read(t, fsys, name))) * 8 {
					if (testing.Short() || raced) && bit%7 != 0 {
						continue
					}
					c := fsys.Clone(seeded(1))
					c.FlipBit(filepath.Join(dir, name), bit)
					out, err := reopen(t, c, opts)
					switch {
					case err != nil:
						refused++
					case out.state == last:
						same++
					case !closed && out.state == beforeLast && out.torn != nil:
						dropped++
					default:
						t.Fatalf("%s bit %d: opened with %d records, torn %v", name, bit, out.state.index, out.torn)
					}
				}
			}
			t.Logf("%d refused, %d without effect, %d dropped the last batch", refused, same, dropped)
			if refused == 0 || same == 0 || (dropped > 0) == closed {
				t.Fatal("an outcome that must happen did not, or the other way round")
			}
		})
	}
}

// TestTruncationLosesOnlyLastBatches truncates every segment at every length: only
// the last one may lose batches, at its end and completely.
func TestTruncationLosesOnlyLastBatches(t *testing.T) {
	opts := smallOptions(4)
	fsys, _, states := newMem(t, 4, opts, 18, 0)
	fsys.Restart()
	valid := map[state]bool{{}: true}
	for _, s := range states {
		valid[s] = true
	}
	segments := names(t, fsys, "log-")
	if len(segments) < 3 {
		t.Fatalf("only %d segments", len(segments))
	}
	for i, name := range segments {
		b := read(t, fsys, name)
		opened := 0
		for n := range b {
			c := fsys.Clone(seeded(1))
			c.WriteFile(filepath.Join(dir, name), b[:n])
			out, err := reopen(t, c, opts)
			if err != nil {
				continue
			}
			opened++
			complete := out.state == states[len(states)-1]
			if i < len(segments)-1 && !complete {
				t.Fatalf("%s cut to %d: opened with %d records", name, n, out.state.index)
			}
			if !valid[out.state] {
				t.Fatalf("%s cut to %d: a state that never was", name, n)
			}
		}
		if i == len(segments)-1 && opened < len(b)-40 {
			t.Fatalf("%s: only %d of %d cuts opened", name, opened, len(b))
		}
	}
}

// TestTruncationBelowSnapshotIsRefused truncates the log below a snapshot. It is
// refused, because the log must contain the records that the snapshot contains.
func TestTruncationBelowSnapshotIsRefused(t *testing.T) {
	opts := smallOptions(5)
	fsys, _, _ := newMem(t, 5, opts, 4, 4)
	fsys.Restart()
	name := names(t, fsys, "log-")
	last := name[len(name)-1]
	b := read(t, fsys, last)
	for n := range 40 {
		c := fsys.Clone(seeded(1))
		c.WriteFile(filepath.Join(dir, last), b[:n])
		if _, err := reopen(t, c, opts); err == nil {
			t.Fatalf("cut to %d: opened", n)
		}
	}
}

// TestDamagedFilesAreRefused covers damage of whole files.
func TestDamagedFilesAreRefused(t *testing.T) {
	at := func(kind string, i int) func(*testing.T, *memfs.FS) string {
		return func(t *testing.T, f *memfs.FS) string {
			n := names(t, f, kind)
			return filepath.Join(dir, n[(i+len(n))%len(n)])
		}
	}
	flip := func(file func(*testing.T, *memfs.FS) string, bit int64) func(*testing.T, *memfs.FS) {
		return func(t *testing.T, f *memfs.FS) { f.FlipBit(file(t, f), bit) }
	}
	del := func(file func(*testing.T, *memfs.FS) string) func(*testing.T, *memfs.FS) {
		return func(t *testing.T, f *memfs.FS) { f.Delete(file(t, f)) }
	}
	all := func(do ...func(*testing.T, *memfs.FS)) func(*testing.T, *memfs.FS) {
		return func(t *testing.T, f *memfs.FS) {
			for _, d := range do {
				d(t, f)
			}
		}
	}
	move := func(from, to func(*testing.T, *memfs.FS) string) func(*testing.T, *memfs.FS) {
		return func(t *testing.T, f *memfs.FS) { f.WriteFile(to(t, f), read(t, f, filepath.Base(from(t, f)))) }
	}
	cases := []struct {
		name   string
		keep   int
		every  int
		damage func(*testing.T, *memfs.FS)
		want   error // nil: the same state
		says   string
	}{
		{"nothing", 3, 4, func(*testing.T, *memfs.FS) {}, nil, ""},
		{"newest snapshot", 3, 4, flip(at("snapshot-", -1), 300), nil, ""},
		{"all snapshots, log complete", 3, 9, all(flip(at("snapshot-", -1), 300), flip(at("snapshot-", -2), 300)), nil, ""},
		{"all snapshots, log cut", 2, 4, all(flip(at("snapshot-", -1), 300), flip(at("snapshot-", -2), 300)), wal.ErrCorrupt, "recovery needs it from 1"},
		{"snapshots gone, log cut", 2, 4, all(del(at("snapshot-", -1)), del(at("snapshot-", -1))), wal.ErrCorrupt, "recovery needs it from 1"},
		{"snapshot under another name", 3, 4, move(at("snapshot-", 0), at("snapshot-", -1)), nil, ""},
		{"first segment gone", 9, 0, del(at("log-", 0)), wal.ErrCorrupt, "begins with record"},
		{"middle segment gone", 9, 0, del(at("log-", 2)), wal.ErrCorrupt, "missing"},
		{"last segment gone", 9, 0, del(at("log-", -1)), wal.ErrCorrupt, "log-00000000000000000028: damaged at offset"},
		{"last segments gone", 9, 0, all(del(at("log-", -1)), del(at("log-", -1))), wal.ErrCorrupt, "follows this one is missing"},
		{"last segments gone, snapshot there", 9, 18, all(del(at("log-", -1)), del(at("log-", -1))), wal.ErrCorrupt, "there is a snapshot"},
		{"all segments gone, snapshot there", 1, 18, func(t *testing.T, f *memfs.FS) {
			for _, name := range names(t, f, "log-") {
				f.Delete(filepath.Join(dir, name))
			}
		}, wal.ErrCorrupt, "no log segment"},
		{"segment under another name", 9, 0, move(at("log-", 0), at("log-", 1)), wal.ErrCorrupt, "unlike its name"},
		{"segment emptied", 9, 0, func(t *testing.T, f *memfs.FS) { f.WriteFile(at("log-", 1)(t, f), nil) }, wal.ErrCorrupt, "does not begin"},
		{"segment header", 9, 0, flip(at("log-", 1), 100), wal.ErrCorrupt, "header"},
		{"first batch", 9, 0, flip(at("log-", 0), 8*70), wal.ErrCorrupt, "record 1"},
		{"file of no concern", 9, 0, func(_ *testing.T, f *memfs.FS) { f.WriteFile(dir+"/log-12", []byte("?")) }, nil, ""},
		{"unfinished files", 9, 4, func(_ *testing.T, f *memfs.FS) {
			f.WriteFile(dir+"/log-00000000000000000999.tmp", []byte("?"))
			f.WriteFile(dir+"/snapshot-00000000000000000999.tmp", []byte("?"))
		}, nil, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			opts := smallOptions(6)
			opts.KeepSnapshots = c.keep
			fsys, l, states := newMem(t, 6, opts, 18, c.every)
			must(t, l.Close())
			c.damage(t, fsys)
			before := fsys.Clone(seeded(1))
			out, err := reopen(t, fsys, opts)
			if !errors.Is(err, c.want) || (err != nil && !strings.Contains(err.Error(), c.says)) {
				t.Fatalf("got %v, want %v that says %q", err, c.want, c.says)
			}
			if err == nil && out.state != states[len(states)-1] {
				t.Fatalf("opened with %d records of %d", out.state.index, len(states)-1)
			}
			if temp := names(t, fsys, ""); err == nil && slices.ContainsFunc(temp, func(n string) bool { return strings.HasSuffix(n, ".tmp") }) {
				t.Fatalf("unfinished files are left: %v", temp)
			}
			for _, name := range names(t, before, "") {
				if err != nil && string(read(t, before, name)) != string(read(t, fsys, name)) {
					t.Fatalf("refused, but %s was changed", name)
				}
			}
		})
	}
}

// TestMissingSegmentAfterFailedRotateIsDetected fails each operation that starts a segment.
// After a restart the log gets another record, and then its last segment is removed.
func TestMissingSegmentAfterFailedRotateIsDetected(t *testing.T) {
	opts := smallOptions(8)
	opts.SegmentSize = 1 << 20
	gone := 0
	for n := range 100 {
		done := true
		for seed := range uint64(20) {
			fsys := memfs.New(seeded(seed))
			l, _, s := mustOpen(t, fsys, opts)
			appendAll(t, l, &s, "first", "second")
			if seed%2 == 0 {
				must(t, l.Snapshot(s.index, nil, s.snapshot))
			}
			fsys.FailAt(n, syscall.EIO, int(seed)*3)
			if err := l.Rotate(); err != nil {
				done = false
			}
			fsys.SetFault(nil)
			if seed%4 < 2 {
				fsys.Crash()
			} else {
				fsys.Restart()
			}
			l, _, s = mustOpen(t, fsys, opts)
			appendAll(t, l, &s, "third")
			fsys.Restart()
			segments := names(t, fsys, "log-")
			if len(segments) == 1 {
				continue
			}
			gone++
			fsys.Delete(filepath.Join(dir, segments[1]))
			if _, err := reopen(t, fsys, opts); !errors.Is(err, wal.ErrCorrupt) {
				t.Errorf("operation %d, seed %d: the last segment is missing: %v", n, seed, err)
			}
		}
		if done {
			break
		}
	}
	if gone == 0 {
		t.Error("no segment was started")
	}
}

// TestGapAmongOldFilesIsDetected makes snapshots while some old files cannot be removed, so
// that records are missing between old segments. Then it damages the newest snapshots. Recovery
// needs the old files only if all snapshots are damaged that were to be kept. In this case, it
// finds all records or refuses the directory.
func TestGapAmongOldFilesIsDetected(t *testing.T) {
	opts := smallOptions(9)
	opts.KeepSnapshots = 2
	gaps, complete := 0, 0
	for seed := range uint64(40) {
		stuck := make(map[string]bool)
		random := seeded(seed)
		fsys := memfs.New(seeded(seed))
		l, _, s := mustOpen(t, fsys, opts)
		fsys.SetFault(func(op memfs.Op) memfs.Fault {
			if op.Kind != memfs.OpRemove {
				return memfs.Fault{}
			}
			if _, known := stuck[op.Name]; !known {
				stuck[op.Name] = random.IntN(3) == 0
			}
			if !stuck[op.Name] {
				return memfs.Fault{}
			}
			return memfs.Fault{Err: fmt.Errorf("remove %s: %w", op.Name, syscall.EIO)}
		})
		for i := range 60 {
			appendAll(t, l, &s, fmt.Sprintf("record %d of a log with short segments", i))
			if i%6 != 5 {
				continue
			}
			err := l.Snapshot(s.index, nil, s.snapshot)
			if err != nil && (!errors.Is(err, wal.ErrNotRemoved) || !errors.Is(err, syscall.EIO)) {
				t.Fatal(err)
			}
		}
		if seed%2 == 0 {
			must(t, l.Close())
			fsys.Restart()
		} else {
			fsys.Crash()
		}
		fsys.SetFault(nil)
		snapshots := names(t, fsys, "snapshot-")
		for damaged := range len(snapshots) + 1 {
			c := fsys.Clone(seeded(1))
			for _, name := range snapshots[len(snapshots)-damaged:] {
				c.FlipBit(filepath.Join(dir, name), 300)
			}
			out, err := reopen(t, c, opts)
			switch {
			case err == nil && out.state != s:
				t.Fatalf("seed %d, %d damaged snapshots: opened with %d records of %d",
					seed, damaged, out.state.index, s.index)
			case err != nil && damaged < opts.KeepSnapshots:
				t.Fatalf("seed %d, %d damaged snapshots: %v", seed, damaged, err)
			case err == nil:
				complete++
			case strings.Contains(err.Error(), "before this segment are missing"):
				gaps++
				if !strings.Contains(err.Error(), snapshots[len(snapshots)-1]) {
					t.Errorf("the error does not say why the records are needed: %v", err)
				}
			}
		}
		// A start needs no old file, and the next snapshot removes all of them.
		fsys.SetFault(func(op memfs.Op) memfs.Fault {
			if op.Kind == memfs.OpOpen && stuck[op.Name] {
				return memfs.Fault{Err: fmt.Errorf("open %s: %w", op.Name, syscall.EIO)}
			}
			return memfs.Fault{}
		})
		l, rec, got := mustOpen(t, fsys, opts)
		ignored := 0
		for name, left := range stuck {
			if left && strings.Contains(name, "log-") {
				ignored++
			}
		}
		if got != s || len(rec.Ignored) != ignored {
			t.Errorf("seed %d: %d records of %d, ignored %v, want %d files",
				seed, got.index, s.index, rec.Ignored, ignored)
		}
		appendAll(t, l, &got, "last")
		must(t, l.Snapshot(got.index, nil, got.snapshot))
		must(t, l.Close())
		for name, left := range stuck {
			if left && slices.Contains(names(t, fsys, ""), filepath.Base(name)) {
				t.Errorf("seed %d: %s is left", seed, name)
			}
		}
	}
	if gaps < 20 || complete < 80 {
		t.Errorf("%d gaps were found, and %d logs were complete", gaps, complete)
	}
}

// TestForgedBatchInRecordIsIgnored stores the bytes of a later batch as a record and
// tears the batch that contains it: a client must not be able to prevent recovery.
func TestForgedBatchInRecordIsIgnored(t *testing.T) {
	opts := smallOptions(7)
	opts.SegmentSize = 1 << 20
	fsys := memfs.New(seeded(7))
	l, _, s := mustOpen(t, fsys, opts)
	appendAll(t, l, &s, "first")
	kept := s
	at := l.Stats().Bytes
	appendAll(t, l, &s, "second")
	forged := read(t, fsys, names(t, fsys, "log-")[0])[at:]
	appendAll(t, l, &s, strings.Repeat(string(forged[:64]), 9))
	fsys.Restart()
	name := filepath.Join(dir, names(t, fsys, "log-")[0])
	b := read(t, fsys, names(t, fsys, "log-")[0])
	clear(b[at : at+64]) // the second batch and the head of the third
	fsys.WriteFile(name, b)
	out, err := reopen(t, fsys, opts)
	if err != nil || out.state != kept || out.torn == nil {
		t.Fatalf("state after %d records, torn %v, error %v", out.state.index, out.torn, err)
	}
}

// TestSnapshotOfAnotherLogIsSkipped: the file is sound and has the right name, but its
// state is that of another directory.
func TestSnapshotOfAnotherLogIsSkipped(t *testing.T) {
	const name = "snapshot-00000000000000000002"
	logs := func(seed uint64, rec string) (*memfs.FS, []byte) {
		fsys := memfs.New(seeded(seed))
		l, _, s := mustOpen(t, fsys, smallOptions(seed))
		appendAll(t, l, &s, rec, rec)
		must(t, l.Snapshot(2, nil, s.snapshot))
		appendAll(t, l, &s, "last")
		must(t, l.Close())
		return fsys, read(t, fsys, name)
	}
	fsys, mine := logs(1, "mine")
	_, other := logs(2, "other")
	early := slices.Clone(mine) // early builds wrote zeros in place of the log's number
	clear(early[len(early)-8 : len(early)-4])
	binary.LittleEndian.PutUint32(early[len(early)-4:], crc32.Checksum(early[:len(early)-4], crc32.MakeTable(crc32.Castagnoli)))
	var want state
	for what, snapshot := range map[string][]byte{"mine": mine, "of an early build": early, "of another log": other} {
		fsys.WriteFile(filepath.Join(dir, name), snapshot)
		l, rec, s := mustOpen(t, fsys, smallOptions(1))
		must(t, l.Close())
		if want == (state{}) {
			want = s
		}
		if bad := what == "of another log"; s != want || bad != (len(rec.BadSnapshots) == 1) || bad != (rec.SnapshotIndex == 0) {
			t.Errorf("%s: %+v, want %+v; snapshot %d, %v", what, s, want, rec.SnapshotIndex, rec.BadSnapshots)
		}
	}
}

// TestNewerVersionIsRefused opens a log and a snapshot of a future format.
func TestNewerVersionIsRefused(t *testing.T) {
	for _, prefix := range []string{"log-", "snapshot-"} {
		opts := smallOptions(8)
		fsys, l, _ := newMem(t, 8, opts, 4, 4)
		must(t, l.Close())
		found := names(t, fsys, prefix)
		name := found[len(found)-1]
		fsys.WriteFile(filepath.Join(dir, name), withVersion(read(t, fsys, name), prefix == "log-"))
		_, err := reopen(t, fsys, opts)
		if !errors.Is(err, wal.ErrVersion) || !strings.Contains(err.Error(), "newer") {
			t.Errorf("%s: %v", prefix, err)
		}
	}
}

// TestOpenAsksBeforeItChangesAnything: what the last process left is a torn batch and an unfinished
// file. If the caller does not accept the log, both are still there afterwards. If it accepts the
// log, and Open fails later, the caller knows of the torn batch.
func TestOpenAsksBeforeItChangesAnything(t *testing.T) {
	const name, temp = dir + "/log-00000000000000000001", dir + "/snapshot-00000000000000000001.tmp"
	fsys := memfs.New(seeded(1))
	opts := wal.Options{Preallocate: -1}
	l, _, s := mustOpen(t, fsys, opts)
	appendAll(t, l, &s, "one")
	kept := s
	appendAll(t, l, &s, "two")
	fsys.Restart() // the process was killed
	fsys.WriteFile(temp, []byte("unfinished"))
	b, err := fsys.ReadFile(name)
	must(t, err)
	fsys.FlipBit(name, int64(len(b))*8-1)
	want, err := fsys.ReadFile(name)
	must(t, err)

	refusal := errors.New("refused")
	var torn *wal.Torn
	opts.Accept = func(found *wal.Recovered) error {
		got, err := load(found)
		if err != nil || got != kept {
			t.Errorf("found %d records, %v", got.index, err)
		}
		torn = found.Torn
		return refusal
	}
	if _, _, err := wal.Open(fsys, dir, opts); !errors.Is(err, refusal) || torn == nil {
		t.Errorf("%v, torn %v", err, torn)
	}
	got, err := fsys.ReadFile(name)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("the segment of %d bytes was changed to %d bytes, %v", len(want), len(got), err)
	}
	if _, err := fsys.ReadFile(temp); err != nil {
		t.Error(err)
	}

	torn = nil
	opts.Accept = func(found *wal.Recovered) error { torn = found.Torn; return nil }
	fsys.SetFault(func(op memfs.Op) memfs.Fault {
		if op.Kind == memfs.OpSync && op.Name == name {
			return memfs.Fault{Err: syscall.EIO}
		}
		return memfs.Fault{}
	})
	_, _, err = wal.Open(fsys, dir, opts)
	if !errors.Is(err, syscall.EIO) || torn == nil || !strings.Contains(err.Error(), torn.String()) {
		t.Errorf("%v, torn %v", err, torn)
	}
}
