package ensemble

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/test/kinds"
	"github.com/zklock/zklock/test/storm"
	"github.com/zklock/zklock/test/zkreal"
)

var (
	duration = flag.Duration("ensemble.duration", 0, "how long the storm goes on; 0 ends it when every fault has happened")
	seedFlag = flag.Uint64("ensemble.seed", 0, "seed of the storm; 0 picks one")
	totals   = flag.String("ensemble.totals", "", "file to which a row with the totals is appended")
	only     = flag.String("ensemble.only", "", "the only fault that happens, for looking at it")
)

func TestMain(m *testing.M) {
	if code, is := storm.Child(); is {
		os.Exit(code)
	}
	os.Exit(zkreal.Main(m))
}

// How a run is cut up.
const (
	stepsOfRound = 26
	kindsOfRound = 3
	// triesOfFault bounds how often a fault that does not happen comes again.
	triesOfFault = 4
	// mostRounds bounds the rounds for what is rare, where no duration is given.
	mostRounds = 4
)

// run is the whole storm.
type run struct {
	t        *testing.T
	ensemble *Ensemble
	faults   []fault
	script   *storm.Script
	seed     uint64
	dir      string
	names    int
	tries    map[string]int
	totals   storm.Totals
}

// TestStorm: every fault, and the locks of every kind, on three servers.
func TestStorm(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64() >> 16
	}
	t.Logf("seed %d", seed)
	r := &run{t: t, seed: seed, faults: faults(), tries: map[string]int{}, ensemble: start(t)}
	r.dir = keeping(t)
	var deck []string
	for _, f := range r.faults {
		if *only == "" || *only == f.name {
			deck = append(deck, f.name)
		}
	}
	r.script = storm.NewScript(seed, deck)
	end := time.Now().Add(*duration)
	for n := 0; n == 0 || !t.Failed() && (time.Now().Before(end) || n < mostRounds && len(r.lacks(deck)) > 0 && !r.hopeless()); n++ {
		r.round(t.Context(), n, deck)
	}
	if err := r.script.Write(filepath.Join(r.dir, "script.jsonl")); err != nil {
		t.Error(err)
	}
	t.Logf("%s\n%s", history.Distribution(r.totals.Margins), r.totals.Table())
	fmt.Printf("ensemble totals: seed=%d %s\n", seed, &r.totals)
	for _, lack := range r.lacks(deck) {
		t.Errorf("too little happened: %s", lack)
	}
	if *totals == "" {
		return
	}
	command := fmt.Sprintf("go test ./ensemble -run TestStorm -ensemble.seed=%d -ensemble.duration=%v", seed, *duration)
	if err := r.totals.Append(*totals, command); err != nil {
		t.Error(err)
	}
}

// keeping is a directory that stays if the test fails.
func keeping(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "zklock-ensemble-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the histories and the script are in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// hopeless reports whether some fault never happens.
func (r *run) hopeless() bool {
	for name, n := range r.tries {
		if n >= triesOfFault && r.totals.Faults[name] == 0 {
			return true
		}
	}
	return false
}

// round lets some faults happen, and has what came of it judged.
func (r *run) round(ctx context.Context, n int, deck []string) {
	r.t.Helper()
	dir := filepath.Join(r.dir, fmt.Sprintf("round-%d", n))
	all := kinds.All()
	var some []kinds.Kind
	for i := range kindsOfRound {
		some = append(some, all[(n*kindsOfRound+i)%len(all)])
	}
	round := begin(r.t, r.ensemble, some, dir, r.seed+uint64(n), &r.names)
	for i := 0; i < stepsOfRound && !r.t.Failed() && (i == 0 || !r.script.Dealt() || len(r.lacks(deck)) > 0 || *duration > 0); i++ {
		r.step(ctx, round)
	}
	round.finish(ctx, &r.totals)
	if !r.t.Failed() {
		if err := os.RemoveAll(dir); err != nil {
			r.t.Error(err)
		}
	}
}

// step lets one fault happen, to those who have had time to take a lock.
func (r *run) step(ctx context.Context, round *round) {
	r.t.Helper()
	step := r.script.Next()
	rest(ctx, timeout/8+step.Pause)
	f, err := find(r.faults, step.Fault)
	if err != nil {
		r.t.Fatal(err)
	}
	begun := time.Now()
	happened, err := f.inject(ctx, round, step)
	r.t.Logf("%v: %s, %v, %v", begun.Format("15:04:05.000"), f.name, happened, time.Since(begun).Round(time.Millisecond))
	if err != nil {
		r.t.Errorf("%s: %v", f.name, err)
	}
	if happened {
		r.totals.Happened(f.name)
		return
	}
	if r.tries[f.name]++; r.tries[f.name] < triesOfFault && r.totals.Faults[f.name] == 0 {
		r.script.Again(f.name)
	}
}

// lacks names what the run did too little of to show something.
func (r *run) lacks(deck []string) (lacks []string) {
	for _, name := range deck {
		if r.totals.Faults[name] == 0 {
			lacks = append(lacks, "it never happened: "+name)
		}
	}
	d, rounds := r.totals.Done, r.totals.Rounds
	for _, x := range []struct {
		what      string
		have, min int
	}{
		{"locks taken", d.Acquired, 30 * rounds}, {"granted after another's end", d.Waited, 10 * rounds},
		{"tries refused", d.Refused, rounds}, {"holds lost", d.Lost, 1}, {"writes", d.Written, 10 * rounds},
	} {
		if x.have < x.min {
			lacks = append(lacks, fmt.Sprintf("%d %s, not %d", x.have, x.what, x.min))
		}
	}
	return lacks
}

// TestFillLeavesNothing: a small file system takes no byte after it.
func TestFillLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		zkreal.Skip(t, "mounting a file system needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"); err != nil {
		zkreal.Skip(t, "root, but may not mount: "+err.Error())
	}
	defer func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	if err := fill(filepath.Join(dir, "ballast")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "more"), []byte("x"), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a byte more: %v", err)
	}
}

// TestFindFault: a script's names are those of faults, each of one.
func TestFindFault(t *testing.T) {
	all := faults()
	seen := map[string]bool{}
	for _, f := range all {
		if seen[f.name] || f.inject == nil {
			t.Errorf("%q is there twice, or does nothing", f.name)
		}
		seen[f.name] = true
		if found, err := find(all, f.name); err != nil || found.name != f.name {
			t.Errorf("find(%q) = %q, %v", f.name, found.name, err)
		}
	}
	if len(all) < 20 {
		t.Errorf("%d kinds of faults", len(all))
	}
	if _, err := find(all, "none"); err == nil {
		t.Error("a fault that there is not was found")
	}
}
