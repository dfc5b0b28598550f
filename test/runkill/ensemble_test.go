package runkill

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zklock/zklock/test/netns"
	"github.com/zklock/zklock/test/zkreal"
	"github.com/zklock/zklock/zktest"
)

// The ensemble of TestServerCutOff: a server that hears nothing of the others goes
// on answering its clients for aloneSync ticks, and sessions last longer than that.
const (
	aloneSync    = 6
	aloneTimeout = 10 * tick
)

// TestServerCutOff: the holder's server is cut off from the others of its ensemble,
// and answers on. The wrapper does not believe it: its command is dead before the
// next holder's starts, on a server on the other side.
func TestServerCutOff(t *testing.T) {
	t.Parallel()
	n := netns.New(t, 3)
	cluster := zkreal.EnsembleAt(t, n.Places(), zkreal.Config{TickTime: tick, SyncLimit: aloneSync})
	c := &Campaign{tb: t, rig: newRig(t), rng: rand.New(rand.NewPCG(1, 1)), seed: *seed}
	for _, alone := range []struct {
		name   string
		leader bool
	}{{"follower", false}, {"leader", true}} {
		t.Run(alone.name, func(t *testing.T) {
			struck := false
			for range attempts {
				struck = cutOff(t, c, n, cluster, alone.leader)
				if struck || t.Failed() {
					break
				}
			}
			if !struck {
				t.Error("no holder had its lock until its server was cut off: too little to show anything")
			}
		})
	}
	t.Logf("%v", c.Totals())
}

// cutOff is a trial whose holder's server is cut off, and reports whether it held
// until then.
func cutOff(t *testing.T, c *Campaign, n *netns.Network, cluster *zkreal.Cluster, leader bool) (struck bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := cluster.WaitServing(ctx); err != nil {
		t.Fatal(err)
	}
	victim, err := cluster.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	other := cluster.Followers(ctx)[0]
	if !leader {
		victim, other = other, victim
	}
	host := &Host{Addr: other.Addr()}
	host.dial(t)
	trial := c.newTrial(host, &Fault{
		Name: "server cut off from the others", Exit: exitLost, Silent: true,
		Strike: func(context.Context, *Trial) error { return n.Hosts[victim.ID()-1].CutQuorum() },
		Heal:   func(context.Context, *Trial) error { return n.Heal() },
	}, 0)
	trial.proxy.Close()
	trial.proxy = zktest.NewProxy(t, "tcp", victim.Addr())
	trial.Timeout = aloneTimeout
	return c.note(trial, trial.Run(t.Context(), trial.own()))
}
