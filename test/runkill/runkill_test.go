package runkill

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/zklock/zklock/test/durable"
	"github.com/zklock/zklock/test/zkreal"
)

var (
	trials   = flag.Int("trials", 0, "faulted trials in all, half of them on each server; 0 makes one of each fault on each")
	parallel = flag.Int("parallel-trials", 8, "trials at a time on each server")
	seed     = flag.Uint64("runkill.seed", 0, "seed of the choices; 0 picks one")
)

func TestMain(m *testing.M) {
	if code, is := durable.Child(); is {
		os.Exit(code)
	}
	code := zkreal.Main(m)
	programs.remove()
	os.Exit(code)
}

// TestEmbedded: whatever happens to a holder on the embedded server, its command
// is dead before the next one starts.
func TestEmbedded(t *testing.T) { campaign(t, embedded) }

// TestZooKeeper: the same on Apache ZooKeeper.
func TestZooKeeper(t *testing.T) {
	zkreal.Need(t)
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
		t.Errorf("%d faulted trials of %d kinds, want %d of %d: too few to show anything", totals.Trials, len(totals.Kinds), max(c.wanted, kinds), kinds)
	}
}

// one is a single trial of a fault on the embedded server.
func one(t *testing.T, f *Fault, v Variant) (*Trial, Outcome) {
	t.Helper()
	c := &Campaign{tb: t, rig: newRig(t), rng: rand.New(rand.NewPCG(1, 1))}
	trial := c.newTrial(embedded(t), f, 0)
	trial.Delay, trial.Variant = 0, v
	steps := trial.own()
	heal := steps.Heal
	steps.Heal = func(ctx context.Context) error {
		// The old command goes on for a while beside the new one.
		if err := trial.await(ctx, trial.new.proc.Done(), trial.new); err != nil {
			return err
		}
		return heal(ctx)
	}
	o := trial.Run(t.Context(), steps)
	if o.Unknown != nil || o.Unprovoked {
		t.Fatalf("no outcome: %v, unprovoked %v", o.Unknown, o.Unprovoked)
	}
	return trial, o
}
