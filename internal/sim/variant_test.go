package sim

import (
	"testing"
	"time"
)

// TestVariants shows that each broken variant is refuted by some seed.
func TestVariants(t *testing.T) {
	const most = 60
	for _, v := range Variants() {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			for s := uint64(1); s <= most; s++ {
				cfg, _ := draw(s)
				cfg.Variant = v
				focus(&cfg)
				if _, err := run(cfg); err != nil {
					t.Logf("after %d seeds: %v", s, err)
					return
				}
			}
			t.Errorf("not refuted by %d seeds", most)
		})
	}
}

// focus gives a variant a world in which what it breaks happens often.
func focus(cfg *Config) {
	switch v := cfg.Variant; v {
	case DeafHeartbeat:
		cfg.Operators = true // who delete znodes
	case EagerGrant, TimerGrant, Adoption, StandingClock:
		cfg.Operators = v == EagerGrant || v == TimerGrant
		cfg.Locks, cfg.Several = []LockConfig{{Path: "/locks/a", Mutexes: 1}}, 0
	case NextInLine, CancelHandsOver:
		cfg.Actors, cfg.Patient = 3, false
		cfg.Locks, cfg.Several = []LockConfig{{Path: "/locks/a", Mutexes: 1}}, 0
	case RenewInTwoSteps:
		cfg.Persistent, cfg.Sweep, cfg.Think = false, 100*time.Millisecond, cfg.Timeout/4
		cfg.Locks, cfg.Several = []LockConfig{{Path: "/locks/a", Mutexes: 1}}, 0
	case BargingReader, UnlistedReader, GapDowngrade, DowngradedToken:
		cfg.Locks, cfg.Several = []LockConfig{{Path: "/locks/a", Writers: 1, Readers: 2}}, 0
	case UncountedLeases, OwnUncounted, OpenGate, LeaseByLease, Quarrel:
		cfg.Locks, cfg.Several = []LockConfig{{Path: "/locks/a", Family: semaphores, Of: 3, Quarrel: v == Quarrel}}, 0
	case FirstClear, SplitCreate, SplitJoin, LastToken, RandomOrder:
		cfg.Locks = []LockConfig{{Path: "/locks/a", Mutexes: 1}, {Path: "/locks/b", Mutexes: 1}, {Path: "/locks/c", Mutexes: 1}}
		cfg.Several, cfg.Ordered = 80, v == LastToken || v == RandomOrder
	case AdoptedNode, BlindDelete, GuardedNode:
		cfg.Operators = v == GuardedNode
		cfg.Locks, cfg.Several = []LockConfig{{Path: "/locks/a", Family: nodeLocks}}, 0
	case UndoneIsDone:
		cfg.Operators, cfg.JoinWindow, cfg.Several = true, 1, 0
	case DelayIgnored, LateRecord:
		cfg.Locks, cfg.LockDelay = []LockConfig{{Path: "/locks/a", Mutexes: 1}}, cfg.Timeout/4
	}
}
