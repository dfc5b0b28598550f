package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
)

// downTime is the longest time for which a server is down in a rolling restart.
const downTime = 8 * time.Second

// leaderPause is how long a leader is paused. It is too short for an election.
const leaderPause = 5 * time.Second

// killLeader kills the leader, and restarts it after the election.
func killLeader(ctx context.Context, e *harness.Ensemble) error {
	leader, err := e.WaitLeader(ctx)
	if err != nil {
		return err
	}
	leader.Kill()
	if _, err := e.WaitLeader(ctx, leader); err != nil {
		return err
	}
	return leader.Restart(ctx)
}

// pauseLeader stops the leader for a while.
func pauseLeader(ctx context.Context, e *harness.Ensemble) error {
	leader, err := e.WaitLeader(ctx)
	if err != nil {
		return err
	}
	if err := leader.Stop(); err != nil {
		return err
	}
	harness.Sleep(ctx, leaderPause)
	return leader.Cont()
}

// measureLeader injects a fault of the leader repeatedly, and counts the lost holds.
func measureLeader(t *testing.T, e *harness.Ensemble, do func(context.Context, *harness.Ensemble) error) {
	n, most := size(8, 20), size(1, 10)
	clients := dialMany(t, n, func(i int) string { return e.ConnectStringFrom(i) }, zklock.Options{SessionTimeout: usualTimeout})
	lost, least := 0, usualTimeout
	stalls := harness.WatchStalls(t.Context())
	for trial := range most {
		holds := holdMany(t, clients, fmt.Sprintf("leader-%d", trial))
		for _, h := range holds {
			if !waitForHeartbeat(t.Context(), h) {
				t.Fatalf("trial %d: a hold without any fault: %v", trial, h.Err())
			}
		}
		harness.Sleep(t.Context(), rand.N(usualTimeout/8)) // any phase of the heartbeats
		done := make(chan error, 1)
		go func() { done <- do(t.Context(), e) }() // ends with the fault, or with the test
		watch := time.NewTicker(20 * time.Millisecond)
		for running := true; running; {
			select {
			case err := <-done:
				if running = false; err != nil {
					t.Fatal(err)
				}
			case <-watch.C:
				for _, h := range holds {
					least = min(least, h.Remaining())
				}
			}
		}
		watch.Stop()
		for _, h := range holds {
			if err := h.Verify(t.Context()); err != nil || !waitForHeartbeat(t.Context(), h) {
				lost++
				t.Logf("trial %d: %v, %v", trial, err, h.Err())
				continue
			}
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	t.Logf("%d of %d holds lost, sessions of %v; a hold had %v left at least", lost, n*most, usualTimeout, least.Round(10*time.Millisecond))
	if lost > 0 {
		skipIfStalled(t, stalls())
		t.Errorf("%d holds lost", lost)
	}
}

// waitForHeartbeat waits until the servers have answered a recent heartbeat of a hold, and reports
// whether it is held.
func waitForHeartbeat(ctx context.Context, h *zklock.Hold) bool {
	for h.Err() == nil && h.Remaining() < usualTimeout*13/20 {
		if !harness.Sleep(ctx, 10*time.Millisecond) {
			return false
		}
	}
	return h.Err() == nil
}

// measureRollingRestart restarts the servers one after another while zklock run holds locks,
// and counts the commands that end.
func measureRollingRestart(t *testing.T, e *harness.Ensemble) {
	n, rounds := size(6, 50), size(1, 20)
	bin := harness.Command(t)
	commands := make([]*lockedCommand, n)
	eachOf(t, n, func(i int) (err error) {
		commands[i], err = startCommand(t, bin, e.ConnectStringFrom(i), fmt.Sprintf("restart-%d", i))
		return err
	})
	t.Cleanup(func() {
		for _, c := range commands {
			c.kill()
		}
	})
	harness.Sleep(t.Context(), usualTimeout*5/4) // until the clients know the servers' tick
	var longest time.Duration
	stalls := harness.WatchStalls(t.Context())
	for range rounds {
		for _, i := range rand.Perm(len(e.Servers)) {
			s := e.Servers[i]
			began := time.Now()
			if err := s.Terminate(t.Context()); err != nil {
				t.Fatal(err)
			}
			harness.Sleep(t.Context(), rand.N(downTime))
			if err := s.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			longest = max(longest, time.Since(began))
		}
	}
	ended := 0
	for _, c := range commands {
		if c.ended() {
			ended++
			t.Logf("ended: %s", c.errorText())
		}
	}
	t.Logf("%d of %d commands ended in %d rolling restarts; a server served again after %v at most", ended, n, rounds, longest.Round(10*time.Millisecond))
	if ended > 0 {
		skipIfStalled(t, stalls())
		t.Errorf("%d commands ended", ended)
	}
}

// skipIfStalled skips a measurement if the machine stalled for a quarter of the session
// timeout.
func skipIfStalled(t *testing.T, stalled time.Duration) {
	t.Helper()
	if stalled > usualTimeout/4 {
		t.Skipf("not checked: the machine stalled for %v, more than a quarter of the session timeout", stalled)
	}
}
