package sim

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"
)

// The flags of TestSeeds.
var (
	seeds  = flag.Int("seeds", defaultSeeds, "how many seeds TestSeeds runs, from -from on")
	from   = flag.Uint64("from", 1, "the first of -seeds seeds; 0: the one after the last in -record")
	totals = flag.String("record", "", "a file of totals, to which TestSeeds adds a line")
	show   = flag.Bool("show", false, "with -seed: print every request, answer and event")
	seed   = flag.Uint64("seed", 0, "the one seed that TestSeeds runs; 0: see -seeds")
	faults = flag.String("faults", "all", "with -seed: which faults of its script happen: all, none, or numbers with commas")
	until  = flag.Duration("until", 0, "with -seed: when the faults end; 0: as the seed says")
	salt   = flag.Uint64("salt", 0, "with -seed: another seed for all that is not a fault")
)

// TestMain makes garbage collection rarer, because a world is small and allocates much.
func TestMain(m *testing.M) {
	debug.SetGCPercent(1600)
	os.Exit(m.Run())
}

// run runs a history. It returns a panic as an error.
func run(cfg Config) (w *World, err error) {
	w = New(cfg)
	if *show {
		w.Trace = os.Stdout
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("sim: seed %d at %.6f s: panic: %v\n%s", cfg.Seed, w.now.Seconds(), r, debug.Stack())
		}
	}()
	return w, w.Run()
}

// TestSeeds runs histories with all faults. None may break a rule.
func TestSeeds(t *testing.T) {
	if *seed != 0 {
		testSeed(t)
		return
	}
	r := &Run{From: *from}
	if r.From == 0 {
		r.From = next(t, *totals)
	}
	r.To = r.From + uint64(*seeds) - 1
	begun := time.Now()
	runSeeds(t, r)
	r.Date, r.Commit = time.Now().UTC().Format("2006-01-02 15:04"), commit()
	t.Logf("%d seeds, %v simulated in %v: %d operations, %d acquired, %d lost, %d failed, %d verified, %d faults, %d server restarts, %d snapshots, %d sessions expired, %d records, %d events",
		r.Seeds, r.Simulated.Round(time.Second), time.Since(begun).Round(time.Millisecond), r.Requests, r.Acquired, r.Lost, r.Failed,
		r.Verified, r.Faults, r.Restarts, r.Snapshots, r.Expired, r.Records, r.Events)
	t.Logf("%d given up, %d renewed, %d used alone, %d marked, %d events of marks, %d guarded, %d downgraded, %d revoked, %d waits for a lock delay, %d grants after a crash, %d sizes in conflict, %d foreign, %d without numbers, %d without permission, %d batched, %d undone",
		r.GivenUp, r.Renewed, r.Alone, r.Marked, r.MarkEvents, r.Guarded, r.Downgraded, r.Revoked, r.DelayWaits, r.Delayed, r.SizeConflicts, r.Foreign, r.Exhausted, r.Forbidden, r.Batched, r.Undone)
	var kinds []string
	for k, n := range r.ByKind {
		kinds = append(kinds, fmt.Sprintf("%v %d", claimKind(k), n))
	}
	t.Logf("acquired: %s", strings.Join(kinds, ", "))
	t.Logf("%s\n%s", columns, r)
	if little := r.tooLittle(); little != "" && !t.Failed() {
		t.Errorf("too little happened: %s", little)
	}
	if *totals != "" {
		write(t, r)
	}
}

// testSeed runs one history, possibly with a part of its faults.
func testSeed(t *testing.T) {
	cfg := NewConfig(*seed)
	only, err := ParseNumbers(*faults)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Only, cfg.Salt = only, *salt
	if *until > 0 {
		cfg.Faults = *until
	}
	w, err := run(cfg)
	t.Logf("%+v\n%s", w.Stats, w.Script())
	if err != nil {
		t.Errorf("%v\nthe end of the history:\n%s", err, w.Tail())
	}
}

// runSeeds runs many seeds on all processors, and reports the first few failures.
func runSeeds(t *testing.T, r *Run) {
	const most = 3 // the number of failures after which no seed starts
	var (
		mu   sync.Mutex // guards next and r
		next = r.From
		wg   sync.WaitGroup
	)
	one := func() bool {
		mu.Lock()
		s := next
		next++
		over := s > r.To || r.Violations+r.Unknown >= most
		mu.Unlock()
		if over {
			return false
		}
		w, err := run(NewConfig(s))
		mu.Lock()
		defer mu.Unlock()
		r.Add(&w.Stats)
		switch {
		case errors.Is(err, ErrEndless):
			r.Unknown++
		case err != nil:
			r.Violations++
		default:
			return true
		}
		t.Errorf("%v\nagain: go test ./test/sim -run 'TestSeeds$' -v -seed=%d\nthe end of the history:\n%s", err, s, w.Tail())
		if r.Violations == 1 && r.Unknown == 0 {
			shrink(t, w)
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
}

// shrink reports a shorter script that breaks the same rule.
func shrink(t *testing.T, w *World) {
	if w.Failure() == "" {
		return // a panic, which Shrink does not catch
	}
	if least := Shrink(w.cfg, shrinkRuns); least != nil {
		t.Errorf("few faults that break the same rule, found in %d histories: %v\n%sagain: go test ./test/sim -run 'TestSeeds$' -v %s",
			least.Runs, least.Err, least.Script, least.Flags())
	}
}

// commit returns the commit of the code, with "+" if the tested code has changes.
func commit() string {
	out, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "unknown"
	}
	name := strings.TrimSpace(string(out))
	core := []string{"status", "--porcelain", "--", ".", "../../internal/jute", "../../internal/queue", "../../internal/session", "../../internal/tree", "../../internal/wal", "../../internal/wire"}
	if changes, err := exec.Command("git", core...).Output(); err != nil || len(changes) > 0 {
		name += "+"
	}
	return name
}

// next returns the seed after the last recorded one.
func next(t *testing.T, file string) uint64 {
	return readTotals(t, file).Next
}

// write appends a run to the file of totals.
func write(t *testing.T, r *Run) {
	f, err := os.OpenFile(*totals, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintln(f, r); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
