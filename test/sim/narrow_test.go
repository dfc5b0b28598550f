package sim

import (
	"testing"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// narrow runs the worlds of some seeds after limit has changed their configurations.
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

// TestOnlyActorFindsNoLockHeld checks that the only actor never finds a lock held, also not by
// its own earlier acquires.
func TestOnlyActorFindsNoLockHeld(t *testing.T) {
	total := narrow(t, 10, func(cfg *Config) {
		cfg.Clients, cfg.Actors, cfg.OneActor, cfg.LockDelay, cfg.Think = 1, 1, true, 0, 100*time.Millisecond
		cfg.Operators = false
	})
	t.Logf("%d acquired, %d failed", total.Acquired, total.Failed)
}

// TestRepeatedDeleteSparesReusedName checks that no repeated delete deletes another client's
// entry. The names are reused: they have no GUID, and the sequence numbers start again when the
// server collects the container.
func TestRepeatedDeleteSparesReusedName(t *testing.T) {
	total := narrow(t, 30, func(cfg *Config) {
		cfg.Clients, cfg.Actors, cfg.Several, cfg.Operators = 3, 1, 0, false
		cfg.Persistent, cfg.Sweep, cfg.Faults = false, 100*time.Millisecond, 4*time.Minute
		cfg.Locks = []LockConfig{{Path: "/locks/p", Mutexes: 1, Names: queue.Names{
			Layout: queue.Custom, Prefix: "p", Exclusive: "_lock_", Shared: "_rlock_", Only: true}}}
	})
	t.Logf("%d acquired", total.Acquired)
}
