package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// journal records the events of hooks, with the names in the contexts of the acquires.
type journal struct {
	t       *testing.T
	mu      sync.Mutex // guards what follows
	lines   []string
	events  []zklock.Event // the events of lines
	numbers map[string]uint64
}

type acquirer struct{}

// withName returns a context for an acquire with a name.
func withName(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, acquirer{}, name)
}

func newJournal(t *testing.T) *journal { return &journal{t: t, numbers: map[string]uint64{}} }

// hooks returns options with hooks that record their events.
func (j *journal) hooks() zklock.Options {
	return zklock.Options{
		OnWait: j.note("wait"), OnAcquire: j.note("acquire"), OnFail: j.note("fail"),
		OnRelease: j.note("release"), OnLost: j.note("lost"), OnJeopardy: j.note("jeopardy"),
	}
}

func (j *journal) note(what string) func(zklock.Event) {
	return func(e zklock.Event) {
		j.mu.Lock()
		defer j.mu.Unlock()
		who, _ := e.Context.Value(acquirer{}).(string)
		if e.Time.IsZero() || time.Since(e.Time) > time.Minute {
			j.t.Errorf("%s %s happened at %v", what, who, e.Time)
		}
		if n, known := j.numbers[who]; known && n != e.Attempt {
			j.t.Errorf("%s %s: attempt %d, before %d", what, who, e.Attempt, n)
		}
		for other, n := range j.numbers {
			if n == e.Attempt && other != who {
				j.t.Errorf("%s and %s are both attempt %d", who, other, n)
			}
		}
		j.numbers[who] = e.Attempt
		line := what + " " + who
		if what == "wait" {
			line += fmt.Sprintf(" after %d", e.Ahead)
		}
		if e.Held != 0 {
			line += fmt.Sprintf(" held %v", e.Held)
		}
		if e.Err != nil && what != "fail" && what != "lost" {
			line += ": " + e.Err.Error()
		}
		j.lines, j.events = append(j.lines, line), append(j.events, e)
	}
}

// want waits until all goroutines are blocked. It returns the events since the last call, and
// checks their lines.
func (j *journal) want(want ...string) []zklock.Event {
	j.t.Helper()
	synctest.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	if fmt.Sprintf("%q", j.lines) != fmt.Sprintf("%q", want) {
		j.t.Errorf("events %q\nwant %q", j.lines, want)
	}
	events := j.events
	j.lines, j.events = nil, nil
	if len(events) != len(want) {
		j.t.FailNow()
	}
	return events
}

// TestEventsOfLocalHandoff checks that the hooks report each acquire of a local handoff like any
// other: its wait, also in the queue of its own client; its hold, although another acquire
// created the znode; and its end.
func TestEventsOfLocalHandoff(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		j := newJournal(t)
		o := j.hooks()
		o.Owner = &zklock.Owner{Host: "mine", PID: 7}
		c := dialWith(t, srv, o)
		l := c.Mutex("local").LocalHandoff(2)
		strange := acquire(t, dial(t, srv).Mutex("local"))

		// first is in the queue of the lock. The next acquires are in the client's own queue.
		ctx, cancel := context.WithCancel(withName(t.Context(), "first"))
		defer cancel()
		waiting(t, ctx, l)
		e := j.want("wait first after 1")[0]
		if e.Blocker.Node != strange.Node() {
			t.Errorf("first waits for %+v", e.Blocker)
		}
		time.Sleep(time.Second)
		second := waiting(t, withName(t.Context(), "second"), l)
		third := waiting(t, withName(t.Context(), "third"), l)
		for _, e := range j.want("wait second after 2", "wait third after 3") {
			if b := e.Blocker; b.Path != l.Path() || b.Owner.String() != "mine:7" || b.Owner.Since.IsZero() || b.Node != "" || b.Mode != zklock.Exclusive || e.Duration != 0 || e.Mode != zklock.Exclusive {
				t.Errorf("in the queue: %+v", e)
			}
		}
		if h := c.Health(); h.Waiting != 3 || h.Holds != 0 {
			t.Errorf("three wait: %+v", h)
		}

		// second gets the entry of first.
		cancel()
		e = j.want("fail first", "wait second after 1")[1]
		if e.Blocker.Node != strange.Node() || e.Duration != 0 {
			t.Errorf("second waits for %+v since %v", e.Blocker, e.Duration)
		}
		time.Sleep(time.Second)
		release(t, strange)
		h := got(t, "second", second)
		if e := j.want("acquire second")[0]; e.Token != h.Token() || e.Duration != time.Second {
			t.Errorf("second holds: %+v", e)
		}

		// A try fails, and fourth waits for the hold of its client.
		if _, err := l.TryAcquire(withName(t.Context(), "try")); !errors.Is(err, zklock.ErrLocked) {
			t.Error(err)
		}
		fourth := waiting(t, withName(t.Context(), "fourth"), l)
		events := j.want("fail try", "wait fourth after 2")
		if !errors.Is(events[0].Err, zklock.ErrLocked) {
			t.Errorf("the try: %v", events[0].Err)
		}
		if b := events[1].Blocker; b.Node != h.Node() || b.Name == "" || b.Owner.String() != "mine:7" {
			t.Errorf("fourth waits for %+v", b)
		}
		if got := c.Health(); got.Waiting != 2 || got.Holds != 1 {
			t.Errorf("one holds, and two wait: %+v", got)
		}

		// The hold is handed off. Then its znode is deleted, while two holds use it.
		time.Sleep(2 * time.Second)
		srv.Delay(10 * time.Millisecond)
		release(t, h)
		next := got(t, "third", third)
		events = j.want("release second held 2s", "acquire third")
		if e := events[1]; e.Token != h.Token() || e.Duration != 3*time.Second {
			t.Errorf("third holds: %+v", e)
		}
		time.Sleep(3 * time.Second)
		if err := next.ReleaseAsync(); err != nil {
			t.Error(err)
		}
		j.want()
		last := <-fourth
		events = j.want("release third held 3s", "acquire fourth")
		if e := events[1]; e.Token != last.Token() || e.Token <= next.Token() || e.Duration != 5*time.Second+20*time.Millisecond {
			t.Errorf("fourth holds: %+v", e)
		}
		if e := events[0]; e.Token != next.Token() || e.Err != nil {
			t.Errorf("third is released: %+v", e)
		}
		srv.Delay(0)

		// A loss ends one hold, and the next acquire creates a new entry.
		last.Revoked() // the watch reports a deletion at once
		fifth := waiting(t, withName(t.Context(), "fifth"), l)
		j.want("wait fifth after 1")
		time.Sleep(time.Second)
		remove(t, srv.Dial(t), last.Node())
		<-last.Done()
		release(t, <-fifth)
		events = j.want("lost fourth held 1s", "acquire fifth", "release fifth")
		if !errors.Is(events[0].Err, zklock.ErrDeleted) {
			t.Errorf("fourth was lost: %v", events[0].Err)
		}
		if got := c.Health(); got.Waiting != 0 || got.Holds != 0 {
			t.Errorf("the lock is free: %+v", got)
		}
	})
}

// TestCloseFailsWaitersOfLocalHandoff checks the events of waiters when the client is closed.
func TestCloseFailsWaitersOfLocalHandoff(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		j := newJournal(t)
		o := j.hooks()
		o.Anonymous = true
		c := dialWith(t, srv, o)
		l := c.Mutex("local").LocalHandoff(5)
		acquireIn(t, withName(t.Context(), "holder"), l)
		var all sync.WaitGroup
		for i := range 2 {
			all.Go(func() {
				if _, err := l.Acquire(withName(t.Context(), fmt.Sprint("waiter", i))); !errors.Is(err, zklock.ErrClosed) {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for _, e := range j.want("acquire holder", "wait waiter0 after 1", "wait waiter1 after 2") {
			if e.Blocker.Owner != (zklock.Owner{}) {
				t.Errorf("an anonymous client says %+v", e.Blocker)
			}
		}
		time.Sleep(time.Second)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		all.Wait()
		for _, e := range j.want("lost holder held 1s", "fail waiter0", "fail waiter1") {
			if !errors.Is(e.Err, zklock.ErrClosed) {
				t.Errorf("closed: %v", e.Err)
			}
		}
	})
}

// TestEventsOfHandOver checks that a hold that its client hands over in memory begins at once.
// The previous hold ends with its ReleaseAsync, and is reported as released when the servers have
// confirmed it.
func TestEventsOfHandOver(t *testing.T) {
	const latency = 10 * time.Millisecond
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		j := newJournal(t)
		c := dialWith(t, srv, j.hooks())
		l := c.Mutex("memory")
		first := acquireIn(t, withName(t.Context(), "first"), l)
		second := waiting(t, withName(t.Context(), "second"), l)
		third := waiting(t, withName(t.Context(), "third"), l)
		events := j.want("acquire first", "wait second after 1", "wait third after 2")
		if e := events[1]; e.Blocker.Node != first.Node() || e.Blocker.Owner.PID == 0 {
			t.Errorf("second waits for %+v", e.Blocker)
		}
		time.Sleep(time.Minute)
		srv.Delay(latency)
		if err := first.ReleaseAsync(); err != nil {
			t.Error(err)
		}
		h := got(t, "second", second)
		if e := j.want("acquire second")[0]; e.Token != h.Token() || e.Token <= first.Token() || e.Duration != time.Minute {
			t.Errorf("second holds: %+v", e)
		}
		time.Sleep(2 * latency)
		if e := j.want("release first held 1m0s")[0]; e.Token != first.Token() || e.Duration != time.Minute+2*latency {
			t.Errorf("first is released: %+v", e)
		}
		time.Sleep(time.Second)
		release(t, h)
		j.want("acquire third", "release second held 1.02s")
		release(t, <-third)
		j.want("release third held 20ms")
		srv.Delay(0)
	})
}

// TestEventsOfReleaseAsync checks that a release that is sent with the next acquire is reported
// at its grant, and that a release without a next acquire is reported too.
func TestEventsOfReleaseAsync(t *testing.T) {
	const latency = 10 * time.Millisecond
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		j := newJournal(t)
		c := dialWith(t, srv, j.hooks())
		l := c.Mutex("async")
		srv.Delay(latency)
		for i, who := range []string{"a", "b", "c"} {
			h := acquireIn(t, withName(t.Context(), who), l)
			if i > 0 {
				before := string(rune('a' + i - 1))
				j.want("release "+before+" held 1s", "acquire "+who)
			} else {
				j.want("acquire a")
			}
			time.Sleep(time.Second)
			if err := h.ReleaseAsync(); err != nil {
				t.Error(err)
			}
		}
		j.want()
		time.Sleep(time.Minute)
		if e := j.want("release c held 1s")[0]; e.Duration < time.Second+2*latency || e.Duration > time.Second+5*latency || e.Err != nil {
			t.Errorf("the last one is released: %+v", e)
		}
		srv.Delay(0)
	})
}

// TestHooksOfAbandonedGrants checks that each OnAcquire is followed by an OnRelease,
// also if the context ended at the moment of the grant.
func TestHooksOfAbandonedGrants(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		var mu sync.Mutex // guards held and most
		held, grants := 0, 0
		c := dialWith(t, srv, zklock.Options{
			OnAcquire: func(zklock.Event) { mu.Lock(); held++; grants++; mu.Unlock() },
			OnRelease: func(zklock.Event) { mu.Lock(); held--; mu.Unlock() },
		})
		l := c.Mutex("abandoned")
		release(t, acquire(t, l))
		// The delay makes the grant and the end of the context simultaneous. The client may see
		// either first.
		srv.Delay(10 * time.Millisecond)
		abandoned := 0
		for range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			h, err := l.Acquire(ctx)
			cancel()
			if err == nil {
				release(t, h)
			} else {
				abandoned++
			}
		}
		srv.Delay(0)
		time.Sleep(timeout)
		mu.Lock()
		defer mu.Unlock()
		t.Logf("%d grants, %d of 200 acquires abandoned", grants, abandoned)
		if held != 0 {
			t.Errorf("%d of %d grants were not followed by a release", held, grants)
		}
	})
}

// TestEventsOfOneAttempt checks that all events of an acquire and its hold have one number,
// and the mode and the context of the acquire.
func TestEventsOfOneAttempt(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		j := newJournal(t)
		c := dialWith(t, srv, j.hooks())
		first := acquireIn(t, withName(t.Context(), "first"), c.RWMutex("a").Reader())
		if _, err := c.Mutex("a").TryAcquire(withName(t.Context(), "second")); !errors.Is(err, zklock.ErrLocked) {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		ctx, cancel := context.WithTimeout(withName(t.Context(), "third"), time.Second)
		defer cancel()
		if _, err := c.Mutex("a").Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		release(t, first)
		events := j.want("acquire first", "fail second", "wait third after 1", "fail third", "release first held 1m1s")
		for i, want := range []zklock.Mode{zklock.Shared, zklock.Exclusive, zklock.Exclusive, zklock.Exclusive, zklock.Shared} {
			if e := events[i]; e.Mode != want {
				t.Errorf("event %d: %+v, want %s", i, e, want)
			}
		}
	})
}

// TestHooksMayUseClient checks that a hook may use the client, and close it.
func TestHooksMayUseClient(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		var c *zklock.Client
		closed := make(chan error)
		c = dialWith(t, srv, zklock.Options{
			OnAcquire: func(e zklock.Event) {
				if e.Path == "/zklock/first" {
					h, err := c.Mutex("second").Acquire(t.Context())
					if err == nil {
						err = h.Release(t.Context())
					}
					if err != nil {
						t.Error(err)
					}
				}
			},
			OnLost: func(zklock.Event) { t.Error("lost") },
			OnRelease: func(e zklock.Event) {
				if e.Path == "/zklock/first" {
					closed <- c.Close()
				}
			},
		})
		release(t, acquire(t, c.Mutex("first")))
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// TestHookMayEndItsGoroutine checks that the client calls the other hooks if a hook ends its
// goroutine, as t.FailNow does, whether it was the last queued one or not.
func TestHookMayEndItsGoroutine(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		var called atomic.Int32
		c := dialWith(t, srv, zklock.Options{
			OnAcquire: func(zklock.Event) { called.Add(1); runtime.Goexit() },
			OnRelease: func(zklock.Event) { called.Add(1); runtime.Goexit() },
		})
		for i := range 3 {
			release(t, acquire(t, c.Mutex("first")))
			if i > 0 {
				release(t, acquire(t, c.Mutex("second")))
			}
			synctest.Wait()
		}
		if n := called.Load(); n != 10 {
			t.Errorf("%d calls, want 10", n)
		}
	})
}

// TestOnWaitReportsNewPosition checks that OnWait is called again when a waiter has another
// predecessor.
func TestOnWaitReportsNewPosition(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		hold := acquire(t, dial(t, srv).Mutex("a"))
		ctx, leave := context.WithCancel(t.Context())
		gone := waiting(t, ctx, dial(t, srv).Mutex("a"))
		told := make(chan int, 4)
		next := waiting(t, t.Context(), dialWith(t, srv, zklock.Options{OnWait: func(e zklock.Event) { told <- e.Ahead }}).Mutex("a"))
		if ahead := <-told; ahead != 2 {
			t.Errorf("%d ahead, want 2", ahead)
		}
		leave()
		if ahead := <-told; ahead != 1 {
			t.Errorf("%d ahead after one left, want 1", ahead)
		}
		<-gone
		release(t, hold)
		release(t, <-next)
	})
}
