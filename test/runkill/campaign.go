package runkill

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/zklock/zktest"
)

// rig is what the trials of a test share.
type rig struct {
	dir      string // for what wrappers write
	zklock   string // the command
	member   string // what it runs
	env      []string
	resource *Resource
}

// newRig builds the programs, once for all tests, and starts a resource.
func newRig(t testing.TB) *rig {
	t.Helper()
	bin, err := programs.get()
	if err != nil {
		t.Fatal(err)
	}
	// A socket's path has to be short, whatever the test is called.
	short, err := os.MkdirTemp("", "zkr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	r := &rig{
		dir: t.TempDir(), zklock: filepath.Join(bin, "zklock"), member: filepath.Join(bin, "member"),
		env: []string{"ZKLOCK_HOME=/nonexistent/and/never/used", "GOMAXPROCS=2"},
	}
	if r.resource, err = Listen(filepath.Join(short, "s")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.resource.Close)
	return r
}

// Campaign is many trials on hosts of one make.
type Campaign struct {
	tb       testing.TB
	rig      *rig
	make     maker
	wanted   int // trials in all; each fault has one at least
	parallel int
	seed     uint64

	mu       sync.Mutex // guards what follows
	rng      *rand.Rand
	numbers  uint32
	outcomes []Outcome
}

// longest is the longest session timeout of a trial.
const longest = 3 * time.Second

// most is the longest session that a server with these ticks gives.
const most = 20 * tick

// newTrial is the next trial of a fault, with the next variant. Where the machine
// has had no time for it before, its sessions last longer.
func (c *Campaign) newTrial(h *Host, f *Fault, before int) *Trial {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.numbers++
	variants := Variants()
	t := &Trial{
		Number: c.numbers, Fault: f, Variant: variants[(uint64(c.numbers)+c.seed)%uint64(len(variants))],
		Timeout: min([]time.Duration{2 * time.Second, longest}[c.rng.IntN(2)]<<min(before, 3), most),
		rig:     c.rig, host: h, rng: rand.New(rand.NewPCG(c.rng.Uint64(), c.rng.Uint64())),
		proxy: zktest.NewProxy(c.tb, "tcp", h.Addr),
	}
	for f.Asks && t.Variant.Stubborn { // its first process would not end
		t.Variant = variants[c.rng.IntN(len(variants))]
	}
	if f.Taken {
		// By then the old wrapper has heard of it: a heartbeat comes every eighth of
		// the timeout, and without an answer the deadline is past half of it.
		t.Delay = t.Timeout
	}
	return t
}

// note takes in what came of a trial, and reports whether it was struck.
func (c *Campaign) note(t *Trial, o Outcome) (struck bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcomes = append(c.outcomes, o)
	for _, v := range o.Violations {
		c.tb.Errorf("trial %d, %s, %s, session %v, margins %v: %s\nthe old wrapper says:\n%s", t.Number, o.Fault, t.Variant.Name, t.Timeout, o.Margins, v, t.old.text(".err"))
	}
	if o.Unknown != nil {
		c.tb.Errorf("trial %d, %s, %s, session %v: unknown: %v", t.Number, o.Fault, t.Variant.Name, t.Timeout, o.Unknown)
	}
	return !o.Unprovoked
}

// Run makes all trials, and returns when their processes are gone.
func (c *Campaign) Run(ctx context.Context) {
	c.rng = rand.New(rand.NewPCG(c.seed, 1))
	faults, serverFaults := Faults(), ServerFaults()
	kinds := len(faults) + len(serverFaults)
	each := max((c.wanted+kinds-1)/kinds, 1)
	var all sync.WaitGroup
	all.Go(func() { c.batches(ctx, serverFaults, each) }) // ends with its last trial
	host := c.make(c.tb)
	slots := make(chan struct{}, c.parallel)
	for range each {
		for _, f := range faults {
			slots <- struct{}{}
			all.Go(func() { // ends with its trials
				defer func() { <-slots }()
				c.until(func(before int) bool {
					t := c.newTrial(host, f, before)
					return c.note(t, t.Run(ctx, t.own()))
				})
			})
		}
	}
	all.Wait()
}

// attempts bounds how often a trial is made whose holder loses the lock before
// anything was done to it. All of them are judged.
const attempts = 5

// until makes trials until one was struck by its fault.
func (c *Campaign) until(struck func(before int) bool) {
	for before := range attempts {
		if struck(before) {
			return
		}
	}
}

// batchSize is how many trials a server's fault befalls at once.
const batchSize = 4

// batches makes so many trials of each server fault, several at a time on a
// server of their own.
func (c *Campaign) batches(ctx context.Context, faults []*ServerFault, each int) {
	host := c.make(c.tb)
	for _, f := range faults {
		missed := 0
		for left := each; left > 0 && missed < attempts; {
			n := min(left, batchSize)
			struck := c.batch(ctx, host, f, n, missed)
			left -= struck
			if struck < n {
				missed++
			}
		}
	}
}

// batch has one fault befall n trials once all of them are prepared, and returns
// how many were struck.
func (c *Campaign) batch(ctx context.Context, host *Host, f *ServerFault, n, before int) int {
	var all, prepared sync.WaitGroup
	var hit atomic.Int64
	struck := make(chan struct{})
	last := time.Duration(0) // the longest session
	prepared.Add(n)
	for range n {
		t := c.newTrial(host, &Fault{Name: f.Name, Exit: exitLost, Silent: true, Strike: func(ctx context.Context, _ *Trial) error {
			select {
			case <-struck:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}, before)
		last = max(last, t.Timeout)
		steps := t.own()
		steps.Prepared = prepared.Done
		all.Go(func() { // ends with the trial
			if c.note(t, t.Run(ctx, steps)) {
				hit.Add(1)
			}
		})
	}
	prepared.Wait()
	err := f.Strike(ctx, host)
	close(struck)
	if err == nil {
		// Past every deadline, by up to as much again.
		c.mu.Lock()
		away := time.Duration(float64(last) * (1.1 + c.rng.Float64()))
		c.mu.Unlock()
		rest(ctx, away)
		err = f.Heal(ctx, host)
	}
	if err != nil {
		c.tb.Errorf("%s: %v", f.Name, err)
	}
	all.Wait()
	return int(hit.Load())
}

// Totals are the figures of a campaign.
type Totals struct {
	Trials, Unprovoked, Violations, Unknown, Acquisitions, Writes, Refused, Dying int
	Kinds                                                                         map[string][]time.Duration // margins, sorted
}

// Totals adds up the outcomes so far.
func (c *Campaign) Totals() Totals {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := Totals{Kinds: map[string][]time.Duration{}}
	for _, o := range c.outcomes {
		t.Violations += len(o.Violations)
		t.Writes += o.Writes
		t.Refused += o.Refused
		t.Dying += o.Dying
		t.Acquisitions += o.Runs
		switch {
		case o.Unknown != nil:
			t.Unknown++
		case o.Unprovoked:
			t.Unprovoked++
		default:
			t.Trials++
			t.Kinds[o.Fault] = append(t.Kinds[o.Fault], o.Margins...)
		}
	}
	for _, margins := range t.Kinds {
		slices.Sort(margins)
	}
	return t
}

// String gives a line for each fault, and one for all.
func (t Totals) String() string {
	var b strings.Builder
	var least time.Duration
	for i, name := range slices.Sorted(maps.Keys(t.Kinds)) {
		m := t.Kinds[name]
		if i == 0 || m[0] < least {
			least = m[0]
		}
		fmt.Fprintf(&b, "%s: %d hand-overs, margin smallest %v, median %v, largest %v\n", name, len(m), ms(m[0]), ms(m[len(m)/2]), ms(m[len(m)-1]))
	}
	fmt.Fprintf(&b, "total: %d faulted trials of %d kinds, %d acquisitions, %d writes, smallest margin %v, %d stale writes refused, %d violations, %d unknown, %d lost before the fault, %d killed but not yet gone",
		t.Trials, len(t.Kinds), t.Acquisitions, t.Writes, ms(least), t.Refused, t.Violations, t.Unknown, t.Unprovoked, t.Dying)
	return b.String()
}

// ms rounds to a tenth of a millisecond.
func ms(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }
