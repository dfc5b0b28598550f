package storm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/kinds"
	"github.com/zklock/zklock/test/stall"
	"github.com/zklock/zklock/zktest"
)

// How a run is cut up: a round has some faults and some kinds of locks, all at
// once; after each all is healed and judged.
const (
	stepsOfRound = 14
	kindsOfRound = 4
	// triesOfFault bounds how often a fault that does not happen comes again.
	triesOfFault = 4
	// moreRounds is how many there may be for what is rare.
	moreRounds = 5
)

// Run is one server's run.
type Run struct {
	Totals Totals

	tb       testing.TB
	server   *Server
	operator *operator
	relays   []*zktest.Proxy
	script   *Script
	faults   []fault
	seed     uint64
	dir      string
	names    int
	tries    map[string]int
}

// NewRun prepares a run, whose histories go below dir.
func NewRun(tb testing.TB, server *Server, seed uint64, dir string) *Run {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), operatorWait)
	defer cancel()
	op, err := newOperator(ctx, server)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = op.client.Close() })
	r := &Run{tb: tb, server: server, operator: op, seed: seed, dir: dir, faults: faults(server), tries: map[string]int{}}
	for range workerCount {
		r.relays = append(r.relays, zktest.NewProxy(tb, "tcp", server.Addr))
	}
	var deck []string
	for _, f := range r.faults {
		deck = append(deck, f.name)
	}
	r.script = NewScript(seed, deck)
	return r
}

// Go has one round after the other until every fault has happened, and until end.
// There are some more if what is rare has not happened by then.
func (r *Run) Go(ctx context.Context, end time.Time) {
	r.tb.Helper()
	more := moreRounds
	for n := 0; ctx.Err() == nil && !r.tb.Failed(); n++ {
		if !time.Now().Before(end) && (len(r.Totals.Faults) == len(r.faults) || r.hopeless()) && !r.everyKind(n) {
			if more--; more < 0 || len(r.Lacks()) == 0 {
				break
			}
		}
		r.round(ctx, n)
	}
	if err := r.script.Write(filepath.Join(r.dir, "script.jsonl")); err != nil {
		r.tb.Error(err)
	}
	for _, f := range r.faults {
		if r.Totals.Faults[f.name] == 0 {
			r.tb.Errorf("%s: it never happened: %s", r.server.Name, f.name)
		}
	}
}

// Lacks names what a run did too little of to show something.
func (r *Run) Lacks() (lacks []string) {
	d, rounds := r.Totals.Done, r.Totals.Rounds
	for _, x := range []struct {
		what      string
		have, min int
	}{
		{"locks taken", d.Acquired, 50 * rounds}, {"granted after another's end", d.Waited, 10 * rounds},
		{"tries refused", d.Refused, rounds}, {"given up", d.Cancelled, 1}, {"holds lost", d.Lost, 1},
		{"entered again", d.Reentered, 1}, {"downgraded", d.Lowered, 1}, {"writes", d.Written, 10 * rounds},
		{"stale writes, which a resource without a fence takes", d.Stale, 1}, {"waiting when all was healed", d.Waiting, 1},
		{"kinds of fault", len(r.Totals.Faults), 20},
	} {
		if x.have < x.min {
			lacks = append(lacks, fmt.Sprintf("%d %s, not %d", x.have, x.what, x.min))
		}
	}
	return lacks
}

// everyKind reports whether some kind of lock has not had its turn in n rounds.
func (r *Run) everyKind(n int) bool { return n*kindsOfRound < len(kinds.All()) }

// hopeless reports whether some fault never happens.
func (r *Run) hopeless() bool {
	for name, n := range r.tries {
		if n >= triesOfFault && r.Totals.Faults[name] == 0 {
			return true
		}
	}
	return false
}

// turnOf are the kinds of lock of the n-th round.
func turnOf(n int) []kinds.Kind {
	all := kinds.All()
	var some []kinds.Kind
	for i := range kindsOfRound {
		some = append(some, all[(n*kindsOfRound+i)%len(all)])
	}
	return some
}

// round lets some faults happen, heals, and judges.
func (r *Run) round(ctx context.Context, n int) {
	r.tb.Helper()
	dir := filepath.Join(r.dir, fmt.Sprintf("round-%d", n))
	s := newStorm(r.tb, r.server, r.operator, r.relays, turnOf(n), dir, r.seed+uint64(n), &r.names)
	s.stale = r.Totals.Done.Stale
	s.start()
	for i := 0; i < stepsOfRound && ctx.Err() == nil && (i == 0 || !r.done()); i++ {
		r.step(ctx, s)
	}
	s.heal()
	stalls := stall.Watch(ctx)
	// Who waits now has to be granted while the others go on, and then without them.
	rest(ctx, r.server.Timeout/2)
	s.restAll(ctx)
	late := stalls()
	r.calm(ctx, s)
	s.end(ctx)
	r.judge(s, late)
	r.Totals.Rounds++
	if !r.tb.Failed() {
		if err := os.RemoveAll(dir); err != nil {
			r.tb.Error(err)
		}
	}
}

// done reports whether a deck is dealt, every fault has happened, and as much as is
// to happen had by the end of the last round.
func (r *Run) done() bool {
	return r.script.Dealt() && len(r.Totals.Faults) == len(r.faults) && len(r.Lacks()) == 0
}

// step lets one fault happen.
func (r *Run) step(ctx context.Context, s *Storm) {
	r.tb.Helper()
	step := r.script.Next()
	rest(ctx, step.Pause)
	f, err := find(r.faults, step.Fault)
	if err != nil {
		r.tb.Error(err)
		return
	}
	happened, err := f.inject(ctx, s, step)
	if err != nil {
		r.tb.Errorf("%s: %s: %v; the server says:\n%s", r.server.Name, f.name, err, r.server.Log())
	}
	if happened {
		r.Totals.count(f.name, 1)
		return
	}
	if r.tries[f.name]++; r.tries[f.name] < triesOfFault && r.Totals.Faults[f.name] == 0 {
		r.script.Again(f.name)
	}
}

// calm looks, while all clients rest, for what they have left behind.
func (r *Run) calm(ctx context.Context, s *Storm) {
	r.tb.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var roots []string
	for _, k := range s.kinds {
		roots = append(roots, "/"+k.Name)
		if k.Delayed {
			// The records of lost holds stay until somebody comes.
			if err := tidy(ctx, r.server, k); err != nil {
				r.tb.Errorf("%s: %s: after the storm: %v", r.server.Name, k.Name, err)
			}
		}
	}
	// Sessions of those who were killed, and those whose end was not confirmed, last
	// for a timeout and two ticks.
	if err := r.operator.emptied(ctx, roots, 2*r.server.Timeout+4*tick); err != nil {
		r.tb.Errorf("%s: %v", r.server.Name, err)
		if errors.Is(err, errLeft) {
			r.Totals.Violations++
		}
	}
}

// tidy takes a kind's lock and gives it back.
func tidy(ctx context.Context, server *Server, kind kinds.Kind) error {
	o := zklock.Options{SessionTimeout: server.Timeout}
	if kind.Options != nil {
		kind.Options(&o)
	}
	c, err := zklock.Dial(ctx, server.Addr, &o)
	if err != nil {
		return err
	}
	l, _ := kind.Ask(c, lockPath(kind.Name), 0)
	err = zklock.Do(ctx, l, func(context.Context, *zklock.Hold) error { return nil })
	return errors.Join(err, c.Close())
}

// judge judges what was written down in a round.
func (r *Run) judge(s *Storm, late time.Duration) {
	r.tb.Helper()
	for _, k := range s.kinds {
		v, err := Judge(k, s.dir, s.seed, r.server.Timeout, late)
		if err != nil {
			r.tb.Errorf("%s: %s: %v", r.server.Name, k.Name, err)
			continue
		}
		r.Totals.Add(v)
		for i, text := range v.Violations {
			if i == 10 {
				r.tb.Errorf("... and %d more", len(v.Violations)-i)
				break
			}
			r.tb.Errorf("%s: %s, seed %d, in %s: %s", r.server.Name, k.Name, s.seed, s.dir, text)
		}
	}
	if took, refused, stale := s.resource.Counts(); refused != stale {
		r.tb.Errorf("%s: the resource took %d, refused %d of %d stale writes", r.server.Name, took, refused, stale)
	}
}
