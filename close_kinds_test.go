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

// TestCloseOfKinds: a close ends holds of every kind and those below them, fails
// whoever waits, tells each possession's end once, and leaves nothing, whether the
// session is the client's own or shared.
func TestCloseOfKinds(t *testing.T) {
	for _, own := range []bool{true, false} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			told := &ends{begun: map[string]int{}, ended: map[string]int{}}
			o := told.options(0)
			c := zklock.New(srv.Dial(t, func(o *zk.Options) { o.SessionTimeout = timeout }), &o)
			if own {
				c = dialWith(t, srv, o)
			}
			other := dial(t, srv)
			blocker := acquire(t, other.Mutex("blocked"))
			var holds []*zklock.Hold
			for _, l := range []*zklock.Lock{
				c.Mutex("a").Reentrant(), c.RWMutex("b").Reader(), c.RWMutex("w").Writer(), c.Semaphore("s", 3).Permits(2), c.NodeLock("n"),
				zklock.All(c.Mutex("x"), c.Semaphore("y", 1)), zklock.All(c.Mutex("p"), c.Mutex("q")).InOrder(),
			} {
				holds = append(holds, acquire(t, l))
			}
			ctx := under(t, holds[0])
			holds = append(holds, again(t, holds[0], c.Mutex("a").Reentrant()))
			failed := make(chan error, 10)
			for _, l := range []*zklock.Lock{
				c.Mutex("blocked").Reentrant(), zklock.All(c.Mutex("blocked"), c.Mutex("free")), zklock.All(c.Mutex("blocked"), c.Mutex("ahead")).InOrder(),
				c.Semaphore("s", 3).Permits(3), c.NodeLock("n"), c.RWMutex("b").Writer(),
			} {
				go func() { // ends with the close
					h, err := l.Acquire(context.WithoutCancel(ctx))
					if h != nil {
						t.Errorf("%s was granted", l)
					}
					failed <- err
				}()
			}
			synctest.Wait()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			for range 6 {
				wants(t, "who waited", <-failed, zklock.ErrClosed)
			}
			for _, h := range holds {
				if err := h.Err(); !errors.Is(err, zklock.ErrLost) || !errors.Is(err, zklock.ErrClosed) {
					t.Errorf("%s: %v", h.Node(), err)
				}
				wants(t, "released after the close", h.Release(t.Context()), zklock.ErrLost)
				wants(t, "guarded after the close", h.Guard(t.Context()), map[bool]error{true: zklock.ErrInvalidLock, false: zklock.ErrLost}[h.Node() == "/zklock/n"])
			}
			if !errors.Is(context.Cause(ctx), zklock.ErrLost) {
				t.Errorf("the context's cause: %v", context.Cause(ctx))
			}
			_, err := c.Mutex("a").Reentrant().Acquire(context.WithoutCancel(ctx))
			wants(t, "acquired after the close", err, zklock.ErrClosed)
			time.Sleep(time.Second)
			told.mu.Lock()
			defer told.mu.Unlock()
			if len(told.begun) != 7 || len(told.ended) != 7 {
				t.Errorf("begun: %v, ended: %v", told.begun, told.ended)
			}
			for what, n := range told.begun {
				if n != 1 || told.ended[what] != 1 {
					t.Errorf("%s began %d times and ended %d times", what, n, told.ended[what])
				}
			}
			release(t, blocker)
		})
	}
}

// TestHooksMayCall: a hook may use the client, and close it.
func TestHooksMayCall(t *testing.T) {
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
