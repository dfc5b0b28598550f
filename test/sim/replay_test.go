package sim

import "testing"

// TestSameSeedGivesSameHistory checks that two runs of a seed give the same history byte for
// byte, and that different seeds give different histories.
func TestSameSeedGivesSameHistory(t *testing.T) {
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

// TestSameSeedGivesSameFailure checks that a second run fails at the same moment.
func TestSameSeedGivesSameFailure(t *testing.T) {
	cfg, _ := draw(1)
	cfg.StoppedClock = true
	_, first := run(cfg)
	_, second := run(cfg)
	if first == nil || second == nil || first.Error() != second.Error() {
		t.Errorf("one seed, two ends: %v and %v", first, second)
	}
}

func TestHistoryWithoutEventsFails(t *testing.T) {
	cfg, _ := draw(1)
	cfg.Between, cfg.Think = 1000*cfg.Faults, 1000*cfg.Faults
	if _, err := run(cfg); err == nil {
		t.Error("a history without acquires and faults passed")
	}
}
