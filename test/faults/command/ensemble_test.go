package command

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zktest"
)

// The ensemble of TestCommandDiesIfServerIsCutOff. A server that receives nothing from the
// others answers its clients for aloneSync more ticks. The session timeout is longer than that.
const (
	aloneSync    = 6
	aloneTimeout = 10 * tick
)

// TestCommandDiesIfServerIsCutOff checks that a holder's command is dead before the next
// holder's command starts on another server. The holder's server is cut off from the other
// servers and still answers the holder.
func TestCommandDiesIfServerIsCutOff(t *testing.T) {
	t.Parallel()
	n := harness.NewNetwork(t, 3)
	servers := harness.StartEnsembleAt(t, n.Placements(), harness.ServerConfig{TickTime: tick, SyncLimit: aloneSync})
	c := &Campaign{tb: t, rig: newRig(t), rng: rand.New(rand.NewPCG(1, 1)), seed: *seed}
	for _, alone := range []struct {
		name   string
		leader bool
	}{{"follower", false}, {"leader", true}} {
		t.Run(alone.name, func(t *testing.T) {
			injected := false
			for range attempts {
				injected = cutOff(t, c, n, servers, alone.leader)
				if injected || t.Failed() {
					break
				}
			}
			if !injected {
				t.Error("every holder lost its lock before its server was cut off")
			}
		})
	}
	t.Logf("%v", c.Totals())
}

// cutOff runs a trial in which the holder's server is cut off, and reports whether the holder
// had the lock until then.
func cutOff(t *testing.T, c *Campaign, n *harness.Network, servers *harness.Ensemble, leader bool) (injected bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := servers.WaitServing(ctx); err != nil {
		t.Fatal(err)
	}
	victim, err := servers.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	followers, err := servers.WaitFollowers(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	other := followers[0]
	if !leader {
		victim, other = other, victim
	}
	trial := c.newTrial(newHost(t, other), &Fault{
		Name: "server cut off from the others", Exit: exitLost, Silent: true,
		Inject: func(context.Context, *Trial) error { return n.Hosts[victim.ID()-1].CutQuorum() },
		Heal:   func(context.Context, *Trial) error { return n.Heal() },
	}, 0)
	trial.proxy.Close()
	trial.proxy = zktest.NewProxy(t, "tcp", victim.Addr())
	trial.Timeout = aloneTimeout
	return c.note(trial, trial.Run(t.Context(), trial.own()))
}
