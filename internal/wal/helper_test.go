package wal_test

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wal/memfs"
)

const dir = "/data"

// state is a state machine whose state depends on every record and their order.
type state struct {
	index uint64
	hash  uint64
}

func (s *state) apply(rec []byte) {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, s.hash)
	_, _ = h.Write(rec)
	s.index++
	s.hash = h.Sum64()
}

func (s *state) snapshot(w io.Writer) error {
	if err := binary.Write(w, binary.LittleEndian, [2]uint64{s.index, s.hash}); err != nil {
		return err
	}
	_, err := w.Write(make([]byte, s.index%97)) // differing lengths
	return err
}

func (s *state) restore(r io.Reader, _ int64) error {
	var v [2]uint64
	if err := binary.Read(r, binary.LittleEndian, &v); err != nil {
		return err
	}
	s.index, s.hash = v[0], v[1]
	_, err := io.Copy(io.Discard, r)
	return err
}

// load replays what was recovered.
func load(rec *wal.Recovered) (state, error) {
	var s state
	err := rec.Replay(s.restore, func(index uint64, b []byte) error {
		if index != s.index+1 {
			return fmt.Errorf("record %d after %d", index, s.index)
		}
		s.apply(b)
		return nil
	})
	if err == nil && s.index != rec.LastIndex {
		err = fmt.Errorf("replay ended at %d, not %d", s.index, rec.LastIndex)
	}
	return s, err
}

// must fails the test for an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func seeded(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// saltReader returns reproducible salts.
type saltReader struct{ r *rand.Rand }

func (s saltReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.r.Uint32())
	}
	return len(p), nil
}

func smallOptions(seed uint64) wal.Options {
	return wal.Options{SegmentSize: 600, Preallocate: 256, Rand: saltReader{seeded(seed)}}
}

func mustOpen(t testing.TB, fsys wal.FS, opts wal.Options) (*wal.Log, *wal.Recovered, state) {
	t.Helper()
	l, rec, err := wal.Open(fsys, dir, opts)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	s, err := load(rec)
	if err != nil {
		t.Fatalf("Replay: %v", err)
	}
	return l, rec, s
}

// appendAll appends records, syncs, and applies them.
func appendAll(t testing.TB, l *wal.Log, s *state, recs ...string) {
	t.Helper()
	for _, rec := range recs {
		index, err := l.Append([]byte(rec))
		if err != nil || index != s.index+1 {
			t.Fatalf("Append: index %d after %d, error %v", index, s.index, err)
		}
		s.apply([]byte(rec))
	}
	if err := l.Sync(); err != nil {
		t.Fatalf("Sync: %v", err)
	}
}

// newMem returns a file system with an open log of some batches, segments, and
// snapshots. states[i] is the state after record i.
func newMem(t testing.TB, seed uint64, opts wal.Options, batches int, snapshotEvery int) (*memfs.FS, *wal.Log, []state) {
	t.Helper()
	fsys := memfs.New(seeded(seed))
	l, _, s := mustOpen(t, fsys, opts)
	states := []state{s}
	for b := range batches {
		for i := range b%3 + 1 {
			rec := fmt.Sprintf("batch %d record %d of the log that is damaged", b, i)
			if _, err := l.Append([]byte(rec)); err != nil {
				t.Fatal(err)
			}
			s.apply([]byte(rec))
			states = append(states, s)
		}
		must(t, l.Sync())
		if snapshotEvery > 0 && b%snapshotEvery == snapshotEvery-1 {
			must(t, l.Snapshot(s.index, nil, s.snapshot))
		}
	}
	return fsys, l, states
}
