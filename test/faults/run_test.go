package faults

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/test/model"
	"github.com/zklock/zklock/zktest"
)

// mostTries is how often a run tries to inject a fault that does not happen.
const mostTries = 4

// Run is a run on one server, or on an ensemble.
type Run struct {
	Totals Totals

	tb       testing.TB
	server   *Server
	operator *operator
	relays   []*zktest.Relay
	script   *Script
	faults   []fault
	seed     uint64
	dir      string
	names    int
	tries    map[string]int
}

// NewRun returns a run with histories below dir.
func NewRun(tb testing.TB, server *Server, seed uint64, dir string) *Run {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), operatorWait)
	defer cancel()
	op, err := newOperator(ctx, server)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = op.client.Close() })
	r := &Run{tb: tb, server: server, operator: op, seed: seed, dir: dir, tries: map[string]int{}}
	for range server.Workers {
		if hasRelays(server) {
			r.relays = append(r.relays, &zktest.NewProxy(tb, "tcp", server.Addr).Relay)
		}
	}
	for _, f := range allFaults(server) {
		if *only == "" || *only == f.name {
			r.faults = append(r.faults, f)
		}
	}
	r.script = NewScript(seed, faultNames(r.faults))
	return r
}

// Go runs rounds until the end of the duration, and until every fault has happened and
// enough locks were acquired.
func (r *Run) Go(ctx context.Context) {
	r.tb.Helper()
	end := time.Now().Add(*duration)
	for n := 0; ctx.Err() == nil && !r.tb.Failed(); n++ {
		enough := len(r.Lacks()) == 0 || r.neverHappens() || n >= r.server.Rounds.max
		if n >= r.server.Rounds.min && enough && !time.Now().Before(end) {
			break
		}
		r.round(ctx, n)
	}
	if err := r.script.Write(filepath.Join(r.dir, "script.jsonl")); err != nil {
		r.tb.Error(err)
	}
	for _, lack := range r.Lacks() {
		r.tb.Errorf("%s: too little happened: %s", r.server.Name, lack)
	}
}

// Lacks returns a description of each count that is too low.
func (r *Run) Lacks() (lacks []string) {
	type sum struct {
		what      string
		have, min int
	}
	d, rounds := r.Totals.Done, max(1, r.Totals.Rounds)
	sums := []sum{
		{"locks acquired", d.Acquired, r.server.Rounds.acquired * rounds}, {"granted after another hold ended", d.Waited, 10 * rounds},
		{"tries refused", d.Refused, rounds}, {"holds lost", d.Lost, 1}, {"writes", d.Written, 10 * rounds},
		{"guarded writes", r.Totals.Guarded, rounds},
	}
	if r.server.Rounds.all {
		sums = append(sums, sum{"acquires cancelled", d.Cancelled, 1}, sum{"holds entered again", d.Reentered, 1}, sum{"holds downgraded", d.Downgraded, 1},
			sum{"stale writes, which a resource without a fence applies", d.Stale, 1}, sum{"waiting when all faults had ended", d.Waiting, 1})
	}
	for _, f := range r.faults {
		sums = append(sums, sum{f.name, r.Totals.Faults[f.name], 1})
	}
	for _, x := range sums {
		if x.have < x.min {
			lacks = append(lacks, fmt.Sprintf("%d %s, not %d", x.have, x.what, x.min))
		}
	}
	return lacks
}

// neverHappens reports whether a fault never happened in all its tries.
func (r *Run) neverHappens() bool {
	for name, n := range r.tries {
		if n >= mostTries && r.Totals.Faults[name] == 0 {
			return true
		}
	}
	return false
}

// kindsOf returns the kinds of locks of the n-th round.
func (r rounds) kindsOf(n int) []Kind {
	all := All()
	var some []Kind
	for i := range r.kinds {
		some = append(some, all[(n*r.kinds+i)%len(all)])
	}
	return some
}

// round runs one round.
func (r *Run) round(ctx context.Context, n int) {
	r.tb.Helper()
	dir := filepath.Join(r.dir, fmt.Sprintf("round-%d", n))
	s := newRound(r, r.server.Rounds.kindsOf(n), dir, r.seed+uint64(n))
	s.start(ctx)
	for i := 0; i < r.server.Rounds.steps && ctx.Err() == nil && !r.tb.Failed(); i++ {
		if i > 0 && r.script.Dealt() && len(r.Lacks()) == 0 && *duration == 0 {
			break
		}
		r.step(ctx, s)
	}
	s.finish(ctx, &r.Totals)
	if !r.tb.Failed() {
		if err := os.RemoveAll(dir); err != nil {
			r.tb.Error(err)
		}
	}
}

// step injects one fault.
func (r *Run) step(ctx context.Context, s *round) {
	r.tb.Helper()
	step := r.script.Next()
	harness.Sleep(ctx, r.server.Rounds.pause+step.Pause)
	f, err := find(r.faults, step.Fault)
	if err != nil {
		r.tb.Fatal(err)
	}
	begun := time.Now()
	happened, err := f.inject(ctx, s, step)
	r.tb.Logf("%v: %s: %s, %v, %v", begun.Format("15:04:05.000"), r.server.Name, f.name, happened, time.Since(begun).Round(time.Millisecond))
	if err != nil {
		r.tb.Errorf("%s: %s: %v; the server's log ends:\n%s", r.server.Name, f.name, err, r.server.Log())
	}
	if happened {
		r.Totals.count(f.name, 1)
		return
	}
	if r.tries[f.name]++; r.tries[f.name] < mostTries && r.Totals.Faults[f.name] == 0 {
		r.script.Repeat(f.name)
	}
}

// runOn runs a run on a server, and prints its totals.
func runOn(t *testing.T, server *Server, seed uint64) *Totals {
	t.Helper()
	r := NewRun(t, server, seed, keptDir(t))
	r.Go(t.Context())
	t.Logf("seed %d: %s\n%s\n%s", seed, &r.Totals, model.Distribution(r.Totals.Margins), r.Totals.Table())
	return &r.Totals
}

// conclude prints the totals of a test, and appends them to the file of totals.
func conclude(t *testing.T, sum *Totals, seed uint64) {
	t.Helper()
	fmt.Printf("totals of %s: seed=%d %s\n", t.Name(), seed, sum)
	if *totals == "" || sum.Rounds == 0 {
		return
	}
	command := fmt.Sprintf("go test ./faults -run %s -faults.seed=%d -faults.duration=%v", t.Name(), seed, *duration)
	if err := AppendRow(*totals, sum.Row(time.Now(), commit(), command)); err != nil {
		t.Error(err)
	}
}

// TestSingleServer checks locks of every kind under every fault of a single server, on
// the embedded server and on Apache ZooKeeper.
func TestSingleServer(t *testing.T) {
	if *kept != "" {
		judgeAgain(t)
		return
	}
	t.Parallel()
	seed := pickSeed(t)
	var mu sync.Mutex // guards sum
	var sum Totals
	t.Run("on", func(t *testing.T) {
		for _, server := range []struct {
			name  string
			start func(testing.TB) *Server
		}{{"embedded", startEmbedded}, {"java", startJava}} {
			t.Run(server.name, func(t *testing.T) {
				t.Parallel()
				one := runOn(t, server.start(t), seed)
				mu.Lock()
				defer mu.Unlock()
				sum.Join(one)
			})
		}
	})
	conclude(t, &sum, seed)
}

// TestEnsemble checks locks of every kind under every fault of three Apache ZooKeeper
// servers and of the network between them.
func TestEnsemble(t *testing.T) {
	t.Parallel()
	seed := pickSeed(t)
	conclude(t, runOn(t, startEnsemble(t), seed), seed)
}

// judgeAgain checks the kept histories of an earlier round.
func judgeAgain(t *testing.T) {
	for _, k := range All() {
		if _, err := os.Stat(filepath.Join(*kept, k.Name)); err != nil {
			continue
		}
		begun := time.Now()
		v, err := judgeFiles(k, *kept, 0, sessionTimeout, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %+v; %v; %s", k.Name, v.Done, time.Since(begun), model.Distribution(v.Margins))
		v.report(t, k.Name)
	}
}

// TestPausedHolder stops a holder by SIGSTOP after it has checked its hold and before its
// write arrives. A resource with a fence refuses the late write. A resource without a fence
// applies it after the write of the next holder, and judge reports that.
func TestPausedHolder(t *testing.T) {
	t.Parallel()
	for _, unfenced := range []bool{false, true} {
		t.Run(fmt.Sprintf("unfenced %v", unfenced), func(t *testing.T) {
			ctx := t.Context()
			r := NewRun(t, startEmbedded(t), 1, t.TempDir())
			s := newRound(r, All()[:1], filepath.Join(r.dir, "round"), 1)
			s.resource.Unfenced = unfenced
			s.start(ctx)
			i, c := 0, (*Caught)(nil)
			for c == nil && harness.Sleep(ctx, 0) {
				i, c = s.catch()
			}
			// The holder's session ends, and other clients write.
			if !s.stop(ctx, i, 0, func() {
				for !s.resource.Passed(c) && harness.Sleep(ctx, time.Millisecond) {
				}
				c.Free()
				for _, _, stale := s.resource.Counts(); stale == 0 && harness.Sleep(ctx, time.Millisecond); {
					_, _, stale = s.resource.Counts()
				}
			}) {
				t.Fatal("the holder cannot be stopped")
			}
			v := s.verdicts(ctx)[0]
			all := strings.Join(v.Violations, "\n")
			if (all != "") != unfenced || !strings.Contains(all, map[bool]string{true: "the resource took the write"}[unfenced]) {
				t.Errorf("violations: %s", all)
			}
			if v.Done.Stale == 0 != unfenced {
				t.Errorf("%d stale writes were refused", v.Done.Stale)
			}
		})
	}
}

// verdicts ends a round, and returns the result for each kind without reporting it.
func (s *round) verdicts(ctx context.Context) (all []*Verdict) {
	s.tb.Helper()
	s.heal(ctx)
	s.rest(ctx)
	s.end(ctx)
	for _, k := range s.kinds {
		v, err := judgeFiles(k, s.dir, s.seed, s.server.Timeout, time.Minute)
		if err != nil {
			s.tb.Fatal(err)
		}
		all = append(all, v)
	}
	return all
}

// TestWorkersWithoutLockAreFound checks that judge and the resource detect workers that each
// lock another path than their histories say. In one round, the holds of a kind may not
// overlap, so the test runs rounds until each kind was detected.
func TestWorkersWithoutLockAreFound(t *testing.T) {
	t.Parallel()
	const most = 20
	r := NewRun(t, startEmbedded(t), 1, t.TempDir())
	kinds := r.server.Rounds.kindsOf(0)
	found := map[string]bool{}
	for n := 0; n < most && len(found) < len(kinds); n++ {
		s := newRound(r, kinds, filepath.Join(r.dir, fmt.Sprintf("round-%d", n)), uint64(n+1))
		s.change = func(o *Orders) { o.WrongPath = true }
		s.start(t.Context())
		for _, _, stale := s.resource.Counts(); stale < 10 && harness.Sleep(t.Context(), time.Millisecond); {
			_, _, stale = s.resource.Counts()
		}
		for i, v := range s.verdicts(t.Context()) {
			if len(v.Violations) > 0 {
				found[kinds[i].Name] = true
			}
		}
	}
	for _, k := range kinds {
		if !found[k.Name] {
			t.Errorf("%s: no violation is found in %d rounds", k.Name, most)
		}
	}
}

// TestEveryKindHasARound checks that the rounds of a run have every kind of lock.
func TestEveryKindHasARound(t *testing.T) {
	size := singleRounds
	seen := map[string]bool{}
	for n := range size.min {
		some := size.kindsOf(n)
		if len(some) != size.kinds {
			t.Errorf("%d kinds", len(some))
		}
		for _, k := range some {
			seen[k.Name] = true
		}
	}
	if len(seen) != len(All()) {
		t.Errorf("%v", seen)
	}
}
