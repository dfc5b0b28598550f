package locktest

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
)

var leaderTrials = flag.Int("locks.leaders", 1, "how often TestLeaderKilled kills the leader")

// leaderTimeout is the session timeout of TestLeaderKilled.
const leaderTimeout = 20 * time.Second

// quickElection is the duration of an election that every hold survives.
const quickElection = leaderTimeout / 4

// TestLeaderKilled checks that holders with a session of 20 s, one on each server at first,
// keep their holds when the leader is killed repeatedly, if another is elected within a
// quarter of that, and that the waiter is granted each lock after the release.
func TestLeaderKilled(t *testing.T) {
	c := harness.StartEnsemble(t, 3, harness.ServerConfig{TickTime: leaderTimeout / 20})
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+*leaderTrials)*limit)
	defer cancel()
	reign := &dynasty{cluster: c}
	reign.found(t, ctx)
	for reign.quick < *leaderTrials {
		reign.kill(t, ctx)
		if reign.slow > 3**leaderTrials+3 { // a busy machine may have some
			t.Fatalf("%d of %d elections took longer than %v, so the trials show nothing", reign.slow, reign.slow+reign.quick, quickElection)
		}
	}
	// A new leader gives the sessions their full timeout: for longer than what was
	// left of the old one the holds must live on.
	reign.outlive(t, leaderTimeout+2*time.Second)
	fmt.Printf("leader-kill totals: trials=%d holds=%d spurious-losses=0 longest-election=%v slower-elections=%d losses-in-those=%d\n",
		reign.quick, len(reign.holds), reign.longest.Round(time.Millisecond), reign.slow, reign.lost)
	for _, h := range reign.holds {
		h.pass(t, ctx)
	}
}

// dynasty is an ensemble that loses its leaders, and the holds that survive that.
type dynasty struct {
	cluster *harness.Ensemble
	holds   []*holder
	reigns  int           // how often holds had to be made
	quick   int           // elections that were quick
	slow    int           // and others,
	lost    int           // in which this many holds were lost
	longest time.Duration // of the quick ones
}

// found acquires a lock by a client on each of the servers.
func (d *dynasty) found(t *testing.T, ctx context.Context) {
	t.Helper()
	d.reigns++
	d.holds = nil
	for i := range d.cluster.Servers {
		d.keep(t, ctx, i)
	}
}

// keep acquires a lock by a client on the i-th server.
func (d *dynasty) keep(t *testing.T, ctx context.Context, i int) {
	t.Helper()
	servers, opts := d.cluster.ConnectStringFrom(i), &zklock.Options{SessionTimeout: leaderTimeout}
	h := &holder{path: fmt.Sprintf("dynasty/%d/%d", d.reigns, i)}
	h.take(t, ctx, dial(t, ctx, servers, opts), dial(t, ctx, servers, opts))
	d.holds = append(d.holds, h)
}

// awaitHeartbeats waits until every hold has the deadline that heartbeats give it without
// faults: a server that starts may have delayed them.
func (d *dynasty) awaitHeartbeats(t *testing.T, ctx context.Context) {
	t.Helper()
	for i, h := range d.holds {
		for h.hold.Remaining() < leaderTimeout*7/20 {
			if h.hold.Err() != nil || !harness.Sleep(ctx, 10*time.Millisecond) {
				t.Fatalf("hold %d, while all servers serve: %v", i, h.hold.Err())
			}
		}
	}
}

// kill kills the leader, waits for the next one, has a quorum confirm every hold,
// and starts the server that was killed again.
func (d *dynasty) kill(t *testing.T, ctx context.Context) {
	t.Helper()
	leader, err := d.cluster.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	d.awaitHeartbeats(t, ctx)
	late := harness.WatchStalls(ctx)
	killed := time.Now()
	leader.Kill()
	if _, err := d.cluster.WaitLeader(ctx, leader); err != nil {
		t.Fatal(err)
	}
	elected := time.Since(killed)
	lost, lastErr := 0, error(nil)
	for i, h := range d.holds {
		if err := h.hold.Verify(ctx); err != nil {
			lost, lastErr = lost+1, fmt.Errorf("hold %d, %v after the leader was killed: %w", i, time.Since(killed), err)
		}
	}
	// While the machine stands still, clients cannot connect to the new leader either.
	elected += late()
	if lost > 0 && elected < quickElection {
		t.Fatalf("%d holds lost, %v without a leader: %v", lost, elected, lastErr)
	}
	t.Logf("a new leader after %v, the holds verified after %v", elected, time.Since(killed))
	if elected < quickElection {
		d.quick++
		d.longest = max(d.longest, elected)
	} else {
		d.slow++
		d.lost += lost
	}
	if err := leader.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if lost > 0 {
		d.found(t, ctx)
	}
}

// outlive watches all holds for a time.
func (d *dynasty) outlive(t *testing.T, how time.Duration) {
	t.Helper()
	timer := time.NewTimer(how)
	defer timer.Stop()
	var lost [3]<-chan struct{}
	for i, h := range d.holds {
		lost[i] = h.hold.Done()
		if len(h.granted) > 0 {
			t.Fatalf("hold %d is granted to another while %v", i, h.hold.Err())
		}
	}
	select {
	case <-lost[0]:
	case <-lost[1]:
	case <-lost[2]:
	case <-timer.C:
		return
	}
	for i, h := range d.holds {
		t.Errorf("hold %d: %v", i, h.hold.Err())
	}
}
