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

// quickElection is the longest election that every hold survives.
const quickElection = leaderTimeout / 4

// TestLeaderKilled kills the leader repeatedly, and checks that holders keep their locks if
// another leader is elected within a quarter of the session timeout. At first, one holder is
// connected to each server. After the release, the waiter is granted each lock.
func TestLeaderKilled(t *testing.T) {
	c := harness.StartEnsemble(t, 3, harness.ServerConfig{TickTime: leaderTimeout / 20})
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+*leaderTrials)*limit)
	defer cancel()
	test := &leaderTest{cluster: c}
	test.acquireAll(t, ctx)
	for test.quick < *leaderTrials {
		test.kill(t, ctx)
		if test.slow > 3**leaderTrials+3 { // some elections on a busy machine are slow
			t.Fatalf("%d of %d elections took longer than %v", test.slow, test.slow+test.quick, quickElection)
		}
	}
	// A new leader gives each session its full timeout. The holds must last longer than that.
	test.outlive(t, leaderTimeout+2*time.Second)
	fmt.Printf("leader-kill totals: trials=%d holds=%d spurious-losses=0 longest-election=%v slower-elections=%d losses-in-those=%d\n",
		test.quick, len(test.holds), test.longest.Round(time.Millisecond), test.slow, test.lost)
	for _, h := range test.holds {
		h.handOver(t, ctx)
	}
}

// leaderTest is an ensemble whose leaders are killed, and the holds that must survive that.
type leaderTest struct {
	cluster  *harness.Ensemble
	holds    []*holder
	acquires int           // how often holds were acquired
	quick    int           // quick elections
	slow     int           // slow elections
	lost     int           // holds lost in slow elections
	longest  time.Duration // the longest quick election
}

// acquireAll acquires a lock by a client on each server.
func (d *leaderTest) acquireAll(t *testing.T, ctx context.Context) {
	t.Helper()
	d.acquires++
	d.holds = nil
	for i := range d.cluster.Servers {
		d.acquireAt(t, ctx, i)
	}
}

// acquireAt acquires a lock by a client on the i-th server.
func (d *leaderTest) acquireAt(t *testing.T, ctx context.Context, i int) {
	t.Helper()
	servers, opts := d.cluster.ConnectStringFrom(i), &zklock.Options{SessionTimeout: leaderTimeout}
	h := &holder{path: fmt.Sprintf("leader/%d/%d", d.acquires, i)}
	h.acquireAndQueue(t, ctx, dial(t, ctx, servers, opts), dial(t, ctx, servers, opts))
	d.holds = append(d.holds, h)
}

// awaitHeartbeats waits until heartbeats have extended the deadline of every hold. The start
// of a server may have delayed them.
func (d *leaderTest) awaitHeartbeats(t *testing.T, ctx context.Context) {
	t.Helper()
	for i, h := range d.holds {
		for h.hold.Remaining() < leaderTimeout*7/20 {
			if h.hold.Err() != nil || !harness.Sleep(ctx, 10*time.Millisecond) {
				t.Fatalf("hold %d, while all servers serve: %v", i, h.hold.Err())
			}
		}
	}
}

// kill kills the leader, waits for the next one, verifies every hold, and restarts the killed
// server.
func (d *leaderTest) kill(t *testing.T, ctx context.Context) {
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
	// While the machine stalls, clients cannot connect to the new leader.
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
		d.acquireAll(t, ctx)
	}
}

// outlive checks that all holds last for a time.
func (d *leaderTest) outlive(t *testing.T, how time.Duration) {
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
