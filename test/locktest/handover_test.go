package locktest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
)

// The tick and the session timeout of TestNextClientIsGrantedAfterCrash.
const (
	crashTick    = 500 * time.Millisecond
	crashTimeout = 4 * time.Second
)

// TestNextClientIsGrantedAfterCrash checks that after a crash of the holder, the next waiter is
// granted within the negotiated timeout and two ticks, for any servers of holder and waiter.
// The leader learns of the followers' sessions by its pings, one every half tick (assumption
// A4).
func TestNextClientIsGrantedAfterCrash(t *testing.T) {
	c := harness.StartEnsemble(t, 3, harness.ServerConfig{TickTime: crashTick})
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	leader, err := c.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	followers, err := c.WaitFollowers(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // guards longest
	var longest time.Duration
	t.Run("crash", func(t *testing.T) {
		for i, pair := range []crash{
			{"from the leader", leader, followers[0]},
			{"from a follower to the leader", followers[0], leader},
			{"from a follower to the other", followers[0], followers[1]},
			{"on one follower", followers[1], followers[1]},
		} {
			t.Run(pair.name, func(t *testing.T) {
				t.Parallel()
				late := harness.WatchStalls(ctx)
				took := pair.run(t, ctx, fmt.Sprintf("crash/%d", i))
				if limit := crashTimeout + crashTick + expiryTime + late(); took > limit {
					t.Errorf("handed over after %v, more than %v", took, limit)
				}
				mu.Lock()
				defer mu.Unlock()
				longest = max(longest, took)
			})
		}
	})
	fmt.Printf("handover totals: crashes=4 timeout=%v tick=%v longest=%v\n", crashTimeout, crashTick, longest.Round(time.Millisecond))
}

// crash is a crash of a holder connected to one server while a client connected to another
// server waits.
type crash struct {
	name         string
	holds, waits *harness.Server
}

// run returns the time from the crash to the next grant.
func (c crash) run(t *testing.T, ctx context.Context, path string) (took time.Duration) {
	t.Helper()
	link := &clientNetwork{}
	h := &holder{path: path}
	h.acquireAndQueue(t, ctx, dial(t, ctx, c.holds.Addr(), &zklock.Options{SessionTimeout: crashTimeout, DialContext: link.dial}),
		dial(t, ctx, c.waits.Addr(), &zklock.Options{SessionTimeout: crashTimeout}))
	link.refuse(true)
	link.cut()
	begun := time.Now()
	g := h.next(t, ctx)
	if g.err == nil {
		t.Error("two hold")
	}
	took = g.at.Sub(begun)
	t.Logf("handed over %v after the crash", took)
	return took
}
