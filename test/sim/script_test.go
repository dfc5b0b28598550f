package sim

import (
	"slices"
	"testing"
	"time"
)

// TestScriptIsIndependentOfRemovedFaults checks that the script does not depend on which of its
// faults happen, and that no other faults happen.
func TestScriptIsIndependentOfRemovedFaults(t *testing.T) {
	cfg, _ := draw(5)
	all := New(cfg)
	if err := all.Run(); err != nil {
		t.Fatal(err)
	}
	if len(all.script) < 40 {
		t.Fatalf("a script of %d faults", len(all.script))
	}
	cfg.Only = []int{3, 17, 40}
	few := New(cfg)
	if err := few.Run(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(few.script, all.script) {
		t.Error("the script of one seed is not the same with fewer faults of it")
	}
	if n := few.Stats.Faults; n > 3 || all.Stats.Faults < 20 {
		t.Errorf("%d faults of 3, %d of all %d", n, all.Stats.Faults, len(all.script))
	}
	cfg.Only = []int{}
	none := New(cfg)
	if err := none.Run(); err != nil {
		t.Fatal(err)
	}
	if none.Stats.Faults != 0 || none.Script() != "" || none.Stats.Restarts != 0 {
		t.Errorf("without faults: %+v", none.Stats)
	}
}

func TestParseNumbers(t *testing.T) {
	for s, want := range map[string][]int{"": nil, "all": nil, "none": {}, "7": {7}, "3,17,40": {3, 17, 40}} {
		got, err := ParseNumbers(s)
		if err != nil || !slices.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%q: %v, %v", s, got, err)
		}
		if got != nil && Numbers(got) != s {
			t.Errorf("%q is written as %q", s, Numbers(got))
		}
	}
	for _, s := range []string{"x", "0", "-1", "1,,2", "1, 2"} {
		if got, err := ParseNumbers(s); err == nil {
			t.Errorf("%q: %v", s, got)
		}
	}
}

// TestShrunkScriptFailsAgain checks that the short script fails in the same way. The failure
// comes from clocks that stop.
func TestShrunkScriptFailsAgain(t *testing.T) {
	cfg, all := failing(t, "mutex")
	least := Shrink(cfg, shrinkRuns)
	if least == nil {
		t.Fatal("it does not fail again")
	}
	left := len(least.Config.Only)
	t.Logf("%d of %d faults are left after %d histories: %v\n%s%s", left, all, least.Runs, least.Err, least.Script, least.Flags())
	if left > all/8 || least.Runs > 1+shrinkRuns {
		t.Errorf("%d of %d faults are left after %d histories", left, all, least.Runs)
	}
	w, again := run(least.Config)
	if again == nil || again.Error() != least.Err.Error() || w.Tail() != least.Tail {
		t.Errorf("the short script gave %v\n%s\n%s", again, w.Tail(), least.Tail)
	}
}

// failing finds a world of a scenario in which stopped clocks break a rule.
func failing(t *testing.T, scenario string) (cfg Config, faults int) {
	t.Helper()
	for s := uint64(1); s < 60; s++ {
		cfg, _ = draw(s)
		cfg.StoppedClock = true
		cfg.Faults = min(cfg.Faults, time.Minute)
		scenarios[scenario](&cfg)
		if w, err := run(cfg); err != nil {
			return cfg, len(w.script)
		}
	}
	t.Fatal("no rule was broken")
	return cfg, 0
}

func TestShrinkWithoutFailureReturnsNil(t *testing.T) {
	cfg, _ := draw(2)
	cfg.Faults /= 4
	if got := Shrink(cfg, 10); got != nil {
		t.Errorf("%+v", got)
	}
}
