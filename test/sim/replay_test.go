package sim

import "testing"

// TestReplay lives each seed twice: byte for byte the same history, and seeds
// of which no two are alike.
func TestReplay(t *testing.T) {
	seen := map[string]uint64{}
	for s := uint64(1); s <= 6; s++ {
		cfg, _ := draw(s)
		cfg.Faults /= 4
		a, errA := run(cfg)
		b, errB := run(cfg)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if a.Hash() != b.Hash() || a.Stats != b.Stats || a.Tail() != b.Tail() {
			t.Errorf("seed %d gave two histories:\n%+v\n%+v", s, a.Stats, b.Stats)
		}
		if other, ok := seen[a.Hash()]; ok {
			t.Errorf("seeds %d and %d gave one history", other, s)
		}
		seen[a.Hash()] = s
	}
}

// TestFailureReplays shows that a failure comes again at the same moment.
func TestFailureReplays(t *testing.T) {
	cfg, _ := draw(1)
	cfg.StandingClock = true
	_, first := run(cfg)
	_, second := run(cfg)
	if first == nil || second == nil || first.Error() != second.Error() {
		t.Errorf("one seed, two ends: %v and %v", first, second)
	}
}

// TestFloors shows that a history in which nothing happens is no success.
func TestFloors(t *testing.T) {
	cfg, _ := draw(1)
	cfg.Between, cfg.Think = 1000*cfg.Faults, 1000*cfg.Faults
	if _, err := run(cfg); err == nil {
		t.Error("a history without acquires and faults passed")
	}
}
