package wal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/internal/wal/memfs"
)

// model runs a log through lifetimes that end in crashes. It knows which records must survive,
// and which may.
type model struct {
	t      *testing.T
	seed   uint64
	rand   *rand.Rand
	fs     *memfs.FS
	opts   wal.Options
	states []state // after each record that is still possible
	acked  int     // the last record acknowledged
	tried  int     // the last record of a batch that Sync began to write

	crashes, lost, faults, snapshots int
}

func newModel(t *testing.T, seed uint64) *model {
	r := seeded(seed)
	opts := smallOptions(seed)
	opts.KeepSnapshots = 1 + r.IntN(3)
	opts.SegmentSize = int64(200 + r.IntN(3000))
	opts.Preallocate = [...]int64{-1, 256, 1000, 4096}[r.IntN(4)]
	return &model{t: t, seed: seed, rand: r, fs: memfs.New(seeded(seed + 1<<32)), opts: opts, states: []state{{}}}
}

// recover opens the log and checks its content: at least all acknowledged records,
// and of the last batch all or nothing.
func (m *model) recover() *wal.Log {
	l, rec, err := wal.Open(m.fs, dir, m.opts)
	if err != nil {
		m.t.Fatalf("seed %d: acknowledged %d, Open: %v", m.seed, m.acked, err)
	}
	s, err := load(rec)
	if err != nil {
		m.t.Fatalf("seed %d: Replay: %v", m.seed, err)
	}
	got := int(s.index)
	if got != m.acked && got != m.tried {
		m.t.Fatalf("seed %d: recovered %d records, acknowledged %d, last batch up to %d", m.seed, got, m.acked, m.tried)
	}
	if s != m.states[got] {
		m.t.Fatalf("seed %d: the state after %d records differs", m.seed, got)
	}
	m.lost += m.tried - got
	m.states = m.states[:got+1]
	m.acked, m.tried = got, got
	return l
}

// step performs one action on an open log, and reports whether the log still works.
func (m *model) step(l *wal.Log) bool {
	switch n := m.rand.IntN(10); {
	case n < 5:
		rec := make([]byte, m.rand.IntN(1+m.rand.IntN(900)))
		for i := range rec {
			rec[i] = byte(m.rand.Uint32())
		}
		if _, err := l.Append(rec); err != nil {
			return m.broken(err)
		}
		s := m.states[len(m.states)-1]
		s.apply(rec)
		m.states = append(m.states, s)
	case n < 9:
		m.tried = len(m.states) - 1
		if err := l.Sync(); err != nil {
			return m.broken(err)
		}
		m.acked = m.tried
	default:
		index := m.acked + m.rand.IntN(len(m.states)-m.acked)
		if index > m.acked {
			m.tried = len(m.states) - 1
		}
		err := l.Snapshot(uint64(index), nil, m.states[index].snapshot)
		if err == nil {
			m.snapshots++
			if durable := l.Stats().DurableIndex; durable < uint64(index) {
				m.t.Fatalf("seed %d: a snapshot of record %d, durable are %d", m.seed, index, durable)
			}
		} else if l.Err() != nil {
			return m.broken(err)
		} else if !errors.Is(err, wal.ErrSnapshotIndex) && !errors.Is(err, syscall.EIO) {
			m.t.Fatalf("seed %d: Snapshot(%d): %v", m.seed, index, err)
		}
		// A snapshot syncs the log if necessary, even a snapshot that failed later.
		m.acked = int(l.Stats().DurableIndex)
	}
	return true
}

// broken checks that the log is permanently poisoned.
func (m *model) broken(err error) bool {
	if !errors.Is(err, wal.ErrPoisoned) || !errors.Is(err, syscall.EIO) {
		m.t.Fatalf("seed %d: %v", m.seed, err)
	}
	return false
}

// lifetime opens the log, uses it, and ends it in a random way.
func (m *model) lifetime() {
	l := m.recover()
	if m.rand.IntN(3) == 0 {
		m.faults++
		m.fs.FailAt(m.rand.IntN(60), syscall.EIO, m.rand.IntN(900))
	}
	working := true
	for range m.rand.IntN(40) {
		if working = m.step(l); !working {
			break
		}
	}
	switch m.rand.IntN(4) {
	case 0:
		m.fs.SetFault(nil)
		if working {
			m.tried = len(m.states) - 1
		}
		if err := l.Close(); err == nil {
			m.acked = m.tried
		} else if working {
			m.t.Fatalf("seed %d: Close: %v", m.seed, err)
		}
		m.fs.Restart()
	case 1:
		m.fs.Restart()
	default:
		m.crashes++
		m.fs.Crash()
	}
	m.fs.SetFault(nil)
	// A crash during recovery, at any operation.
	for m.rand.IntN(4) == 0 {
		m.fs.FailAt(m.rand.IntN(25), syscall.EIO, m.rand.IntN(100))
		if l, _, err := wal.Open(m.fs, dir, m.opts); err == nil {
			_ = l.Err()
		} else if !errors.Is(err, syscall.EIO) {
			m.t.Fatalf("seed %d: Open after a crash: %v", m.seed, err)
		}
		m.fs.SetFault(nil)
		if m.crashes++; m.rand.IntN(2) == 0 {
			m.fs.Crash()
		} else {
			m.fs.Restart()
		}
	}
}

// TestRandomCrashes runs many logs through crashes, disk failures, and restarts.
func TestRandomCrashes(t *testing.T) {
	seeds := uint64(1500)
	if testing.Short() || raced {
		seeds = 150
	}
	var total model
	for seed := range seeds {
		m := newModel(t, seed)
		for range 8 {
			m.lifetime()
		}
		m.recover()
		total.crashes += m.crashes
		total.lost += m.lost
		total.faults += m.faults
		total.snapshots += m.snapshots
	}
	summary := fmt.Sprintf("%d seeds: %d crashes, %d faults, %d snapshots, %d unacknowledged records lost",
		seeds, total.crashes, total.faults, total.snapshots, total.lost)
	t.Log(summary)
	if total.crashes < int(seeds) || total.lost < int(seeds)/10 || total.faults < int(seeds) || total.snapshots < int(seeds)/2 {
		t.Fatal("too little happened: " + summary)
	}
}

// TestRandomCrashesReplay checks that a seed gives the same disk each time.
func TestRandomCrashesReplay(t *testing.T) {
	run := func() (names []string, ops int) {
		m := newModel(t, 77)
		for range 8 {
			m.lifetime()
		}
		names, err := m.fs.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return names, m.fs.Ops()
	}
	names, ops := run()
	for range 3 {
		if n, o := run(); fmt.Sprint(n) != fmt.Sprint(names) || o != ops {
			t.Fatalf("%v after %d operations, then %v after %d", names, ops, n, o)
		}
	}
}
