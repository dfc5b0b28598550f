package sim

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"
)

// How many histories TestSeeds lives, or which one.
var (
	seeds = flag.Int("seeds", defaultSeeds, "how many seeds TestSeeds runs, from -from on")
	from  = flag.Uint64("from", 1, "the first of -seeds seeds")
	show  = flag.Bool("show", false, "with -seed: print every request, answer and event")
	seed  = flag.Uint64("seed", 0, "the one seed that TestSeeds runs; 0: see -seeds")
)

// TestMain lets garbage lie longer: a world is small, and makes much of it.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// run lives one history.
func run(cfg Config) (*World, error) {
	w := New(cfg)
	if *show {
		w.Trace = os.Stdout
	}
	return w, w.Run()
}

// TestSeeds lives histories under all faults; none may break a promise.
func TestSeeds(t *testing.T) {
	first, n := *from, *seeds
	if *seed != 0 {
		first, n = *seed, 1
	}
	begun := time.Now()
	total := live(t, first, n)
	t.Logf("%d seeds, %v simulated in %v: %d acquired, %d lost, %d failed, %d verified, %d faults, %d server restarts, %d snapshots, %d sessions expired, %d records, %d events",
		total.Seeds, total.Simulated.Round(time.Second), time.Since(begun).Round(time.Millisecond), total.Acquired, total.Lost, total.Failed,
		total.Verified, total.Faults, total.Restarts, total.Snapshots, total.Expired, total.Records, total.Events)
	t.Logf("%d guarded, %d downgraded, %d revoked, %d times kept off %d grants later, %d quarrels, %d foreign",
		total.Guarded, total.Downgraded, total.Revoked, total.KeptOff, total.Delayed, total.Quarrels, total.Foreign)
	for k, count := range total.ByKind {
		t.Logf("%8d x %v acquired", count, claimKind(k))
	}
	for k, count := range total.ByFault {
		t.Logf("%8d x %v", count, faultKind(k))
	}
}

// live runs n seeds, on all processors, and reports the first few that fail.
func live(t *testing.T, first uint64, n int) (total Stats) {
	var (
		mu     sync.Mutex
		next   = first
		failed int
		wg     sync.WaitGroup
	)
	one := func() bool {
		mu.Lock()
		s := next
		next++
		over := s >= first+uint64(n) || failed >= 3
		mu.Unlock()
		if over {
			return false
		}
		w, err := run(NewConfig(s))
		mu.Lock()
		defer mu.Unlock()
		total.Add(&w.Stats)
		if err != nil {
			failed++
			t.Errorf("%v\nagain: go test ./internal/sim -run TestSeeds -seed=%d\nthe end of the history:\n%s", err, s, w.Tail())
		}
		return true
	}
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for one() {
			}
		})
	}
	wg.Wait()
	return total
}
