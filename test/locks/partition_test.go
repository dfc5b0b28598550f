package locks

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/netns"
	"github.com/zklock/zklock/test/zkreal"
)

// TestFollowerCutOff: a holder's follower is cut off from its leader and goes on
// answering pings, while the leader expires the session and the lock is granted
// to a client of the others. The holder must have said lost before that.
func TestFollowerCutOff(t *testing.T) {
	n := netns.New(t, 3)
	const timeout = 4 * time.Second
	c := zkreal.EnsembleAt(t, n.Places(), zkreal.Config{TickTime: 500 * time.Millisecond, SyncLimit: 20})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	follower := c.Nodes[leader.ID()%len(c.Nodes)]

	opts := &zklock.Options{SessionTimeout: timeout}
	victim, next := dial(t, ctx, follower.Addr(), opts), dial(t, ctx, leader.Addr(), opts)
	hold, err := victim.Mutex("partition").Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// The control: a session of the same timeout, on the same follower, that only
	// pings. It would take itself for a holder as long as pings are answered.
	control, err := zkreal.DialRaw(ctx, follower.Addr(), timeout)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = control.Close() }()

	granted := make(chan *zklock.Hold, 1)
	go func() { // ends with the grant, or with ctx
		h, err := next.Mutex("partition").Acquire(ctx)
		if err != nil {
			t.Errorf("the next acquire: %v", err)
		}
		granted <- h
	}()
	waitForQueue(t, ctx, next, 2)
	cut := time.Now()
	if err := n.Hosts[follower.ID()-1].CutQuorum(); err != nil {
		t.Fatal(err)
	}

	var lostAt time.Time
	pings := time.NewTicker(50 * time.Millisecond)
	defer pings.Stop()
	lost := hold.Done()
	for {
		select {
		case <-lost:
			lostAt, lost = time.Now(), nil
		case <-pings.C:
			if err := control.Ping(); err != nil {
				t.Fatalf("the follower stopped answering pings before the grant, so the trial shows nothing: %v", err)
			}
		case h := <-granted:
			if h == nil {
				t.FailNow()
			}
			now := time.Now()
			if lostAt.IsZero() {
				t.Fatalf("two hold: granted %v after the cut, and the old holder says %v", now.Sub(cut), hold.Err())
			}
			if !errors.Is(hold.Err(), zklock.ErrLost) || h.Token() <= hold.Token() {
				t.Errorf("%v, tokens %d and then %d", hold.Err(), hold.Token(), h.Token())
			}
			t.Logf("after the cut: lost at %v, the next granted at %v, pings answered all the while", lostAt.Sub(cut), now.Sub(cut))
			return
		}
	}
}

func dial(t *testing.T, ctx context.Context, servers string, opts *zklock.Options) *zklock.Client {
	t.Helper()
	c, err := zklock.Dial(ctx, servers, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// waitForQueue waits until so many are in the queue.
func waitForQueue(t *testing.T, ctx context.Context, c *zklock.Client, want int) {
	t.Helper()
	for {
		entries, err := c.Mutex("partition").Inspect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == want {
			return
		}
	}
}
