package command

import (
	"context"
	"flag"
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

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zktest"
)

// rig has the resources that the trials of a test share.
type rig struct {
	dir      string // for the output of the wrappers
	zklock   string // the command
	member   string // the program that it runs
	env      []string
	resource *Resource
}

// newRig builds the command, links this test binary as its member, and starts a resource.
func newRig(t testing.TB) *rig {
	t.Helper()
	// The path of a socket must be short, so it cannot contain the test's name.
	short, err := os.MkdirTemp("", "zkr")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(short) })
	r := &rig{
		dir: t.TempDir(), zklock: harness.Command(t), member: filepath.Join(short, memberName),
		env: []string{"ZKLOCK_HOME=/nonexistent/and/never/used", "GOMAXPROCS=2"},
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, r.member); err != nil {
		t.Fatal(err)
	}
	if r.resource, err = Listen(filepath.Join(short, "s")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.resource.Close)
	return r
}

// Campaign runs many trials on servers of one kind.
type Campaign struct {
	tb       testing.TB
	rig      *rig
	make     maker
	wanted   int // the number of trials; at least one of each fault
	parallel int
	seed     uint64

	mu       sync.Mutex // guards the fields below
	rng      *rand.Rand
	numbers  uint32
	outcomes []Outcome
}

// longest is the longest session timeout of a trial.
const longest = 3 * time.Second

// most is the longest session timeout that a server with this tick grants.
const most = 20 * tick

// newTrial returns the next trial of a fault, with the next variant. If earlier attempts
// failed because the machine was too busy, the session timeout is longer.
func (c *Campaign) newTrial(h *Host, f *Fault, before int) *Trial {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.numbers++
	variants := Variants()
	t := &Trial{
		Number: c.numbers, Fault: f, Variant: variants[(uint64(c.numbers)+c.seed)%uint64(len(variants))],
		Timeout: min([]time.Duration{2 * time.Second, longest}[c.rng.IntN(2)]<<min(before, 3), most),
		rig:     c.rig, host: h, rng: rand.New(rand.NewPCG(c.rng.Uint64(), c.rng.Uint64())),
		proxy: zktest.NewProxy(c.tb, "tcp", h.Addr()),
	}
	for f.SendsTerm && t.Variant.Stubborn { // the first process would ignore TERM
		t.Variant = variants[c.rng.IntN(len(variants))]
	}
	if f.BreaksLock {
		// The old wrapper learns of the loss within this delay: it sends a heartbeat every
		// eighth of the timeout.
		t.Delay = t.Timeout
	}
	return t
}

// note records the outcome of a trial, and reports whether its fault was injected.
func (c *Campaign) note(t *Trial, o Outcome) (injected bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcomes = append(c.outcomes, o)
	for _, v := range o.Violations {
		c.tb.Errorf("trial %d, %s, %s, session %v, margins %v: %s\nstderr of the old wrapper:\n%s", t.Number, o.Fault, t.Variant.Name, t.Timeout, o.Margins, v, t.old.text(".err"))
	}
	if o.Unknown != nil {
		c.tb.Errorf("trial %d, %s, %s, session %v: unknown: %v", t.Number, o.Fault, t.Variant.Name, t.Timeout, o.Unknown)
	}
	return !o.Early
}

// Run runs all trials, and returns when their processes have ended.
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

// attempts is how often a trial runs if its holder loses the lock before the fault. All these
// trials are checked.
const attempts = 10

// until runs trials until the fault of one was injected.
func (c *Campaign) until(injected func(before int) bool) {
	for before := range attempts {
		if injected(before) {
			return
		}
	}
}

// batchSize is the number of trials that share a server fault.
const batchSize = 4

// batches runs trials of each server fault, several at a time, on a separate server.
func (c *Campaign) batches(ctx context.Context, faults []*ServerFault, each int) {
	host := c.make(c.tb)
	for _, f := range faults {
		missed := 0
		for left := each; left > 0 && missed < attempts; {
			n := min(left, batchSize)
			injected := c.batch(ctx, host, f, n, missed)
			left -= injected
			if injected < n {
				missed++
			}
		}
	}
}

// batch injects one fault into n trials when all of them are prepared, and returns how many
// holders still had the lock.
func (c *Campaign) batch(ctx context.Context, host *Host, f *ServerFault, n, before int) int {
	var all, prepared sync.WaitGroup
	var hit atomic.Int64
	injected := make(chan struct{})
	last := time.Duration(0) // the longest session
	prepared.Add(n)
	for range n {
		t := c.newTrial(host, &Fault{Name: f.Name, Exit: exitLost, Silent: true, Inject: func(ctx context.Context, _ *Trial) error {
			select {
			case <-injected:
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
	err := f.Inject(ctx, host)
	close(injected)
	if err == nil {
		// Down for longer than every deadline.
		c.mu.Lock()
		away := time.Duration(float64(last) * (1.1 + c.rng.Float64()))
		c.mu.Unlock()
		harness.Sleep(ctx, away)
		err = f.Heal(ctx, host)
	}
	if err != nil {
		c.tb.Errorf("%s: %v", f.Name, err)
	}
	all.Wait()
	return int(hit.Load())
}

// Totals are the sums of a campaign.
type Totals struct {
	Trials, Early, Violations, Unknown, Acquisitions, Writes, Refused, Dying int
	Kinds                                                                    map[string][]time.Duration // margins, sorted
}

// Totals returns the sums of the outcomes so far.
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
		case o.Early:
			t.Early++
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

// String returns a line for each fault, and one for all of them.
func (t Totals) String() string {
	var b strings.Builder
	var least time.Duration
	for i, name := range slices.Sorted(maps.Keys(t.Kinds)) {
		m := t.Kinds[name]
		if i == 0 || m[0] < least {
			least = m[0]
		}
		fmt.Fprintf(&b, "%s: %d handovers, margin smallest %v, median %v, largest %v\n", name, len(m), ms(m[0]), ms(m[len(m)/2]), ms(m[len(m)-1]))
	}
	fmt.Fprintf(&b, "total: %d faulted trials of %d kinds, %d acquisitions, %d writes, smallest margin %v, %d stale writes refused, %d violations, %d unknown, %d lost before the fault, %d killed and still exiting",
		t.Trials, len(t.Kinds), t.Acquisitions, t.Writes, ms(least), t.Refused, t.Violations, t.Unknown, t.Early, t.Dying)
	return b.String()
}

// ms rounds to 0.1 ms.
func ms(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

var (
	trials   = flag.Int("trials", 0, "number of faulted trials, half of them on each server; 0 runs one of each fault on each")
	parallel = flag.Int("parallel-trials", 8, "trials at a time on each server")
	seed     = flag.Uint64("command.seed", 0, "seed of the choices; 0 picks one")
)

func TestMain(m *testing.M) {
	if code, is := runMember(); is {
		os.Exit(code)
	}
	os.Exit(harness.Main(m))
}

// TestFaultsOnEmbedded checks under each fault, on the embedded server, that the old command
// is dead before the next one starts.
func TestFaultsOnEmbedded(t *testing.T) { campaign(t, embedded) }

// TestFaultsOnZooKeeper checks the same on Apache ZooKeeper.
func TestFaultsOnZooKeeper(t *testing.T) {
	harness.NeedZooKeeper(t)
	campaign(t, zooKeeper)
}

func campaign(t *testing.T, make maker) {
	t.Parallel()
	c := &Campaign{tb: t, rig: newRig(t), make: make, wanted: (*trials + 1) / 2, parallel: *parallel, seed: *seed}
	if c.seed == 0 {
		c.seed = rand.Uint64()
	}
	c.Run(t.Context())
	totals := c.Totals()
	t.Logf("seed %d\n%v", c.seed, totals)
	kinds := len(Faults()) + len(ServerFaults())
	if totals.Trials < max(c.wanted, kinds) || len(totals.Kinds) < kinds {
		t.Errorf("only %d faulted trials of %d kinds, want %d of %d", totals.Trials, len(totals.Kinds), max(c.wanted, kinds), kinds)
	}
}

// one runs a trial of a fault on the embedded server. It repeats the trial if the holder lost
// the lock before the fault.
func one(t *testing.T, f *Fault, v Variant) (*Trial, Outcome) {
	t.Helper()
	c := &Campaign{tb: t, rig: newRig(t), rng: rand.New(rand.NewPCG(1, 1))}
	host := embedded(t)
	for attempt := range attempts {
		trial := c.newTrial(host, f, attempt)
		trial.Delay, trial.Variant = 0, v
		steps := trial.own()
		heal := steps.Heal
		steps.Heal = func(ctx context.Context) error {
			// The old command continues until the new one has ended.
			if err := trial.await(ctx, trial.new.proc.Done(), trial.new); err != nil {
				return err
			}
			return heal(ctx)
		}
		o := trial.Run(t.Context(), steps)
		if o.Unknown != nil {
			t.Fatal(o.Unknown)
		}
		if !o.Early {
			return trial, o
		}
		t.Log("the lock was lost before the fault: again")
	}
	t.Fatalf("the lock was lost before the fault, %d times", attempts)
	return nil, Outcome{}
}
