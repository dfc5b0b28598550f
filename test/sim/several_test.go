package sim

import (
	"testing"
	"time"
)

// several is a calm world of acquires of several locks at once, none of which ever gives
// up: a deadlock lasts forever.
func several(seed uint64, locks int) Config {
	cfg := calm(seed)
	cfg.Clients, cfg.Actors, cfg.Faults = 4, 3, 24*time.Hour
	cfg.Several, cfg.Patient, cfg.Think = 100, true, 20*time.Millisecond
	cfg.Locks = nil
	for _, l := range []LockConfig{
		{Path: "/locks/a", Mutexes: 1}, {Path: "/locks/b", Writers: 1, Readers: 2}, {Path: "/locks/c", Mutexes: 1, Writers: 1, Readers: 1},
		{Path: "/locks/d", Family: semaphores, Of: 2}, {Path: "/locks/e", Family: semaphores, Of: 1},
	} {
		if len(cfg.Locks) < locks {
			cfg.Locks = append(cfg.Locks, l)
		}
	}
	return cfg
}

// rounds lives until so many claims were granted, or none for some time. It
// returns how many were.
func (w *World) rounds(n int) int {
	last, before := w.now, -1
	w.runUntil(func() bool {
		if w.Stats.Acquired != before {
			last, before = w.now, w.Stats.Acquired
		}
		return w.Stats.Acquired >= n || w.now > last+30*time.Second
	})
	return w.Stats.Acquired
}

// TestNoDeadlock has many claims of several locks each, in any order, overlap
// for thousands of rounds: there is always one that goes on.
func TestNoDeadlock(t *testing.T) {
	const n = manyRounds
	for locks := 3; locks <= 5; locks++ {
		t.Run(string(rune('0'+locks)), func(t *testing.T) {
			t.Parallel()
			w := begin(several(uint64(locks), locks))
			if got := w.rounds(n); got < n || w.err != nil {
				t.Errorf("stuck after %d rounds: %v\n%s", got, w.err, w.Tail())
			}
			if w.Stats.ByKind[anAll] < n {
				t.Errorf("only %d claims of several", w.Stats.ByKind[anAll])
			}
		})
	}
}

// TestNoDeadlockInOrder has them take the locks one after another, all in one
// order.
func TestNoDeadlockInOrder(t *testing.T) {
	const n = manyRounds
	cfg := several(1, 5)
	cfg.Ordered = true
	w := begin(cfg)
	if got := w.rounds(n); got < n || w.err != nil {
		t.Errorf("stuck after %d rounds: %v\n%s", got, w.err, w.Tail())
	}
}

// TestDeadlockInAnyOrder shows that the order is needed: clients that take one
// lock after another, each in its own order, wait for each other for good.
func TestDeadlockInAnyOrder(t *testing.T) {
	cfg := several(1, 5)
	cfg.Ordered, cfg.Unordered = true, true
	w := begin(cfg)
	const n = 25_000 // of which few happen
	if got := w.rounds(n); got >= n || w.err != nil {
		t.Errorf("not stuck after %d rounds: %v", got, w.err)
	}
}
