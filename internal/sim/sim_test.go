package sim

import (
	"flag"
	"testing"
	"time"
)

// How many histories TestSeeds lives, or which one.
var (
	seeds = flag.Int("seeds", 40, "how many seeds TestSeeds runs, from -from on")
	from  = flag.Uint64("from", 1, "the first of -seeds seeds")
	seed  = flag.Uint64("seed", 0, "the one seed that TestSeeds runs; 0: see -seeds")
)

// run lives one history.
func run(cfg Config) (*World, error) {
	w := New(cfg)
	return w, w.Run()
}

// TestSeeds lives histories under all faults; none may break a promise.
func TestSeeds(t *testing.T) {
	first, n := *from, *seeds
	if *seed != 0 {
		first, n = *seed, 1
	}
	var total Stats
	begun := time.Now()
	failed := 0
	for s := first; s < first+uint64(n); s++ {
		w, err := run(NewConfig(s))
		total.Add(&w.Stats)
		if err == nil {
			continue
		}
		failed++
		t.Errorf("%v\nagain: go test ./internal/sim -run TestSeeds -seed=%d\nthe end of the history:\n%s", err, s, w.Tail())
		if failed == 3 {
			break
		}
	}
	t.Logf("%d seeds, %v simulated in %v: %d acquired, %d lost, %d failed, %d verified, %d faults, %d server restarts, %d sessions expired, %d records",
		total.Seeds, total.Simulated.Round(time.Second), time.Since(begun).Round(time.Millisecond), total.Acquired, total.Lost,
		total.Failed, total.Verified, total.Faults, total.Restarts, total.Expired, total.Records)
	for k, count := range total.ByFault {
		t.Logf("%6d x %v", count, faultKind(k))
	}
}
