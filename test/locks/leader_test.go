package locks

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/zkreal"
)

var leaderTrials = flag.Int("locks.leaders", 1, "how often TestLeaderKilled kills the leader")

// TestLeaderKilled: a holder with a session of 10 s keeps its hold when the
// leader is killed, whichever server it is connected to, and who waits gets it
// after the release.
func TestLeaderKilled(t *testing.T) {
	c := zkreal.Ensemble(t, 3, zkreal.Config{})
	for range *leaderTrials {
		killLeader(t, c)
	}
}

func killLeader(t *testing.T, c *zkreal.Cluster) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	opts := &zklock.Options{SessionTimeout: 10 * time.Second}
	holder, waiter := dial(t, ctx, c.ConnectString(), opts), dial(t, ctx, c.ConnectString(), opts)
	defer func() { _ = holder.Close() }()
	defer func() { _ = waiter.Close() }()
	hold, err := holder.Mutex("partition").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	granted := make(chan *zklock.Hold, 1)
	go func() { // ends with the grant, or with ctx
		h, err := waiter.Mutex("partition").Acquire(ctx)
		if err != nil {
			t.Errorf("the waiter: %v", err)
		}
		granted <- h
	}()
	waitForQueue(t, ctx, holder, "partition", 2)

	killed := time.Now()
	leader.Kill()
	if _, err := c.WaitLeader(ctx, leader); err != nil {
		t.Fatal(err)
	}
	elected := time.Since(killed)
	if err := hold.Verify(ctx); err != nil {
		t.Fatalf("%v after the leader was killed: %v", time.Since(killed), err)
	}
	verified := time.Since(killed)
	// The new leader has given the session its full timeout: for longer than what
	// was left of the old one the hold must live on.
	beyond := time.NewTimer(12*time.Second - verified)
	defer beyond.Stop()
	select {
	case <-hold.Done():
		t.Fatalf("lost %v after the leader was killed: %v", time.Since(killed), hold.Err())
	case h := <-granted:
		t.Fatalf("granted to another (%v) while %v", h, hold.Err())
	case <-beyond.C:
	}
	if err := hold.Release(ctx); err != nil {
		t.Fatal(err)
	}
	next := <-granted
	if next == nil {
		t.FailNow()
	}
	if next.Token() <= hold.Token() {
		t.Errorf("token %#x after %#x", next.Token(), hold.Token())
	}
	if err := next.Release(ctx); err != nil {
		t.Error(err)
	}
	if err := leader.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("a new leader after %v, the hold verified after %v", elected, verified)
}
