package runkill

import (
	"flag"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock/test/zkreal"
)

var stormLength = flag.Duration("runkill.storm", 4*time.Second, "how long each server has a storm of wrappers")

// TestStormEmbedded: wrappers that contend on the embedded server, each struck at
// any moment of its life: no two commands are ever alive at a time.
func TestStormEmbedded(t *testing.T) { storm(t, embedded) }

// TestStormZooKeeper: the same on Apache ZooKeeper.
func TestStormZooKeeper(t *testing.T) {
	zkreal.Need(t)
	storm(t, zooKeeper)
}

func storm(t *testing.T, make maker) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = rand.Uint64()
	}
	s := &Storm{tb: t, rig: newRig(t), host: make(t), number: 1, rng: rand.New(rand.NewPCG(first, 2))}
	s.Rage(t.Context(), *stormLength)
	defer s.record.Sweep()
	j := s.record.Judge()
	for _, v := range j.Violations {
		t.Error(v)
	}
	faults, kinds := s.Faults()
	if len(j.Margins) > 0 {
		slices.Sort(j.Margins)
		t.Logf("margin smallest %v, median %v", ms(j.Margins[0]), ms(j.Margins[len(j.Margins)/2]))
	}
	t.Logf("seed %d: %v", first, s)
	t.Logf("total: %d acquisitions, %d faults of %d kinds, %d writes, %d stale writes refused, %d violations, %d killed but not yet gone",
		j.Runs, faults, kinds, j.Writes, j.Refused, len(j.Violations), j.Dying)
	if seconds := int(*stormLength / time.Second); j.Runs < max(seconds/4, 2) || faults < max(seconds/4, 2) {
		t.Errorf("%d acquisitions, %d faults: too few to show anything", j.Runs, faults)
	}
}
