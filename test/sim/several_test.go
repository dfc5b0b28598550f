package sim

import (
	"testing"
	"time"
)

// severalLocks returns a world without faults and cancels, with acquires of several locks. A
// deadlock would last forever.
func severalLocks(seed uint64, locks int) Config {
	cfg := noFaults(seed)
	cfg.Clients, cfg.Actors, cfg.Faults = 4, 3, 24*time.Hour
	cfg.Several, cfg.NoCancel, cfg.Think = 100, true, 20*time.Millisecond
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

// rounds runs the world until n claims were granted, or none for 30 s. It returns the number
// of grants.
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

// TestNoDeadlock runs thousands of overlapping claims of several locks in any order.
func TestNoDeadlock(t *testing.T) {
	const n = manyRounds
	for locks := 3; locks <= 5; locks++ {
		t.Run(string(rune('0'+locks)), func(t *testing.T) {
			t.Parallel()
			w := startWorld(severalLocks(uint64(locks), locks))
			if got := w.rounds(n); got < n || w.err != nil {
				t.Errorf("stuck after %d rounds: %v\n%s", got, w.err, w.Tail())
			}
			if w.Stats.ByKind[anAll] < n {
				t.Errorf("only %d claims of several", w.Stats.ByKind[anAll])
			}
		})
	}
}

// TestNoDeadlockInOrder runs claims that take the locks one after another in the same order.
func TestNoDeadlockInOrder(t *testing.T) {
	const n = manyRounds
	cfg := severalLocks(1, 5)
	cfg.Ordered = true
	w := startWorld(cfg)
	if got := w.rounds(n); got < n || w.err != nil {
		t.Errorf("stuck after %d rounds: %v\n%s", got, w.err, w.Tail())
	}
}

// TestDeadlockInAnyOrder shows that clients deadlock if they take the locks one after
// another in different orders.
func TestDeadlockInAnyOrder(t *testing.T) {
	cfg := severalLocks(1, 5)
	cfg.Ordered, cfg.Unordered = true, true
	w := startWorld(cfg)
	const n = 25_000 // more than happen before the deadlock
	if got := w.rounds(n); got >= n || w.err != nil {
		t.Errorf("not stuck after %d rounds: %v", got, w.err)
	}
}
