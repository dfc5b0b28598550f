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

// The ensemble's ticks, and the sessions of TestCrashHandsOver.
const (
	crashTick    = 500 * time.Millisecond
	crashTimeout = 4 * time.Second
)

// TestCrashHandsOver checks that the lock of a holder that crashes is granted to the next
// waiter within the negotiated timeout and two ticks, whichever servers they are connected
// to. The leader learns of the followers' sessions by its pings, one every half tick
// (assumption A4).
func TestCrashHandsOver(t *testing.T) {
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
				took := pair.play(t, ctx, fmt.Sprintf("crash/%d", i))
				if limit := crashTimeout + crashTick + expiryTime + late(); took > limit {
					t.Errorf("handed over after %v, more than %v", took, limit)
				}
				mu.Lock()
				defer mu.Unlock()
				longest = max(longest, took)
			})
		}
	})
	fmt.Printf("hand-over totals: crashes=4 timeout=%v tick=%v longest=%v\n", crashTimeout, crashTick, longest.Round(time.Millisecond))
}

// crash is a holder that crashes at one server while another client waits at another one.
type crash struct {
	name         string
	holds, waits *harness.Server
}

// play returns how long after the crash the next client holds the lock.
func (c crash) play(t *testing.T, ctx context.Context, path string) (took time.Duration) {
	t.Helper()
	link := &cable{}
	h := &holder{path: path}
	h.take(t, ctx, dial(t, ctx, c.holds.Addr(), &zklock.Options{SessionTimeout: crashTimeout, DialContext: link.dial}),
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
