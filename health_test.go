package zklock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestHealth follows a client from its first session into its second.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		lost := make(chan zklock.Event, 1)
		c := dialWith(t, srv, zklock.Options{SessionTimeout: 24 * time.Second, OnLost: func(e zklock.Event) { lost <- e }})
		h, err := c.Mutex("a").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() { // ends with ctx
			_, err := c.Mutex("a").Acquire(ctx)
			failed <- err
		}()
		synctest.Wait()
		got := c.Health()
		if got.State != zk.Connected || got.Session != h.Session() || got.Timeout != 24*time.Second || got.Sessions != 1 || got.Holds != 1 || got.Waiting != 1 {
			t.Errorf("one hold and one waiter: %+v", got)
		}
		if got.Remaining != h.Remaining() {
			t.Errorf("the client says %v remain, its hold %v", got.Remaining, h.Remaining())
		}
		time.Sleep(time.Minute)
		if got := c.Health(); got.Heartbeat > 3*time.Second+10*time.Millisecond {
			t.Errorf("no heartbeat was answered for %v, while one goes out every three seconds", got.Heartbeat)
		}
		srv.Pause()
		time.Sleep(3 * time.Second)
		if got := c.Health(); got.Heartbeat < 3*time.Second || got.Heartbeat > 6*time.Second+10*time.Millisecond {
			t.Errorf("the server has said nothing for 3 s, and the last heartbeat was answered %v ago", got.Heartbeat)
		}
		srv.Resume()
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := srv.ExpireSession(h.Session()); err != nil {
			t.Fatal(err)
		}
		if e := <-lost; !errors.Is(e.Err, zk.ErrSessionExpired) || e.Held < 63*time.Second {
			t.Errorf("lost: %+v", e)
		}
		time.Sleep(time.Minute)
		if got := c.Health(); got.Sessions != 2 || got.Holds != 0 || got.Waiting != 0 || got.State != zk.Connected {
			t.Errorf("in the second session: %+v", got)
		}
	})
}

// TestEventsOfOneAttempt: what is told of an acquire and its hold has one number,
// and the context of the acquire.
func TestEventsOfOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		type key struct{}
		var events []string
		told := func(name string) func(zklock.Event) {
			return func(e zklock.Event) { // one at a time
				who, _ := e.Context.Value(key{}).(string)
				events = append(events, name+" "+who+" "+string(e.Mode)+" "+e.Held.String())
				if e.Time.IsZero() || time.Since(e.Time) > time.Minute {
					t.Errorf("%s happened at %v", name, e.Time)
				}
			}
		}
		numbers := map[string]uint64{}
		c := dialWith(t, srv, zklock.Options{
			OnWait: told("wait"), OnRelease: told("release"), OnLost: told("lost"),
			OnAcquire: func(e zklock.Event) { told("acquire")(e); numbers[e.Context.Value(key{}).(string)] = e.Attempt },
			OnFail:    func(e zklock.Event) { told("fail")(e); numbers[e.Context.Value(key{}).(string)] = e.Attempt },
		})
		as := func(who string) context.Context { return context.WithValue(t.Context(), key{}, who) }
		first, err := c.RWMutex("a").Reader().Acquire(as("first"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Mutex("a").TryAcquire(as("second")); !errors.Is(err, zklock.ErrLocked) {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(as("third"), time.Second)
		defer cancel()
		if _, err := c.Mutex("a").Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := first.Release(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		want := []string{"acquire first shared 0s", "fail second exclusive 0s", "wait third exclusive 0s", "fail third exclusive 0s", "release first shared 1m1s"}
		if len(events) != len(want) {
			t.Fatalf("told %q", events)
		}
		for i, w := range want {
			if events[i] != w {
				t.Errorf("told %q, want %q", events[i], w)
			}
		}
		if numbers["first"] == numbers["second"] || numbers["second"] == numbers["third"] {
			t.Errorf("attempts share numbers: %v", numbers)
		}
	})
}

// TestReasonsOfLosses: what ended a hold is found by errors.Is.
func TestReasonsOfLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		lost := make(chan error, 1)
		c := dialWith(t, srv, zklock.Options{SessionTimeout: 8 * time.Second, OnLost: func(e zklock.Event) { lost <- e.Err }})
		h, err := c.Mutex("a").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		other := srv.Dial(t)
		if err := other.Delete(t.Context(), h.Node(), -1); err != nil {
			t.Fatal(err)
		}
		if err := <-lost; !errors.Is(err, zklock.ErrDeleted) || !errors.Is(err, zklock.ErrLost) || errors.Is(err, zklock.ErrNoQuorum) {
			t.Errorf("deleted: %v", err)
		}
		if _, err := c.Mutex("a").Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		srv.Pause()
		if err := <-lost; !errors.Is(err, zklock.ErrNoQuorum) || errors.Is(err, zklock.ErrDeleted) {
			t.Errorf("silence: %v", err)
		}
		srv.Resume()
	})
}
