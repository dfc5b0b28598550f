package locks

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/zkreal"
)

// errCrashed is what a client gets that has no network any more.
var errCrashed = errors.New("the client has crashed")

// TestCrashHandsOver: the lock of a holder that vanishes without a word is granted
// to the next within the negotiated timeout and two ticks, whichever servers they
// are on. That the leader learns of the sessions at the followers in time takes
// its pings, one every half tick (assumption A4).
func TestCrashHandsOver(t *testing.T) {
	const tick, timeout = 500 * time.Millisecond, 2 * time.Second
	c := zkreal.Ensemble(t, 3, zkreal.Config{TickTime: tick})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	followers := c.Followers(ctx)
	if len(followers) != 2 {
		t.Fatalf("%d followers", len(followers))
	}
	var longest time.Duration
	for _, pair := range []struct {
		name         string
		holds, waits *zkreal.Node
	}{
		{"from the leader", leader, followers[0]},
		{"from a follower to the leader", followers[0], leader},
		{"from a follower to the other", followers[0], followers[1]},
		{"on one follower", followers[1], followers[1]},
	} {
		link := &cable{}
		crashed := make(chan struct{})
		holder := dial(t, ctx, pair.holds.Addr(), &zklock.Options{SessionTimeout: timeout,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				select {
				case <-crashed:
					return nil, errCrashed
				default:
					return link.dial(ctx, network, address)
				}
			}})
		waiter := dial(t, ctx, pair.waits.Addr(), &zklock.Options{SessionTimeout: timeout})
		hold, err := holder.Mutex("crash").Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		granted := make(chan *zklock.Hold, 1)
		go func() { // ends with the grant, or with ctx
			h, err := waiter.Mutex("crash").Acquire(ctx)
			if err != nil {
				t.Errorf("%s: %v", pair.name, err)
			}
			granted <- h
		}()
		waitForQueue(t, ctx, waiter, "crash", 2)
		close(crashed)
		late := stalls(ctx)
		link.cut()
		begun := time.Now()
		next := <-granted
		took := time.Since(begun)
		limit := timeout + 2*tick + late()
		longest = max(longest, took)
		if next == nil {
			t.FailNow()
		}
		if hold.Err() == nil {
			t.Errorf("%s: two hold", pair.name)
		}
		t.Logf("%s: handed over %v after the crash", pair.name, took)
		if took > limit {
			t.Errorf("%s: handed over after %v, more than %v", pair.name, took, limit)
		}
		if err := next.Release(ctx); err != nil {
			t.Error(err)
		}
	}
	fmt.Printf("hand-over totals: crashes=4 timeout=%v tick=%v longest=%v\n", timeout, tick, longest.Round(time.Millisecond))
}
