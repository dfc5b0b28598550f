package sim

import (
	"testing"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// narrow runs worlds of some seeds that are made narrower than those drawn.
func narrow(t *testing.T, n uint64, limit func(cfg *Config)) (total Stats) {
	t.Helper()
	for s := uint64(1); s <= n; s++ {
		cfg, _ := draw(s)
		limit(&cfg)
		w, err := run(cfg)
		total.Add(&w.Stats)
		if err != nil {
			t.Fatalf("%v\nthe end of the history:\n%s", err, w.Tail())
		}
	}
	return total
}

// TestTriesWithoutContention has one actor that tries locks that no other client wants: no
// try finds a lock held, whatever happened to the znodes of the actor's earlier acquires.
func TestTriesWithoutContention(t *testing.T) {
	total := narrow(t, 10, func(cfg *Config) {
		cfg.Clients, cfg.Actors, cfg.Alone, cfg.LockDelay, cfg.Think = 1, 1, true, 0, 100*time.Millisecond
		cfg.Operators = false
	})
	t.Logf("%d acquired, %d failed", total.Acquired, total.Failed)
}

// TestReusedNames has entries whose names are used again and again, because they have no
// GUID and their numbers start again whenever the container was collected: no repeated
// delete may delete another client's entry.
func TestReusedNames(t *testing.T) {
	total := narrow(t, 30, func(cfg *Config) {
		cfg.Clients, cfg.Actors, cfg.Several, cfg.Operators = 3, 1, 0, false
		cfg.Persistent, cfg.Sweep, cfg.Faults = false, 100*time.Millisecond, 4*time.Minute
		cfg.Locks = []LockConfig{{Path: "/locks/p", Mutexes: 1, Names: queue.Names{
			Layout: queue.Custom, Prefix: "p", Exclusive: "_lock_", Shared: "_rlock_", Only: true}}}
	})
	t.Logf("%d acquired", total.Acquired)
}
