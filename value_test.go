package zklock_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// setValue sets the value of a hold.
func setValue(t *testing.T, h *zklock.Hold, value string) {
	t.Helper()
	if err := h.SetValue(t.Context(), value); err != nil {
		t.Fatal(err)
	}
}

// valuesOf returns the values of the entries of a lock.
func valuesOf(t *testing.T, l *zklock.Lock) (values []string) {
	t.Helper()
	for _, e := range inspect(t, l) {
		values = append(values, e.Value)
	}
	return values
}

// checkValues checks the values of the entries of a lock.
func checkValues(t *testing.T, l *zklock.Lock, want ...string) {
	t.Helper()
	if got := valuesOf(t, l); fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("%s has the values %q, want %q", l, got, want)
	}
}

// TestValue checks that holders and waiters of every kind of lock that can have a value
// publish it, and that a holder can replace it.
func TestValue(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		for name, layout := range map[string]zklock.Layout{
			"curator": {}, "kazoo": zklock.KazooLayout(), "mixed": zklock.MixedLayout(), "latch": zklock.LatchLayout(),
			"write-lock": zklock.WriteLockLayout(), "custom": {Exclusive: "-W-", Shared: "-R-"},
		} {
			c, other := dialWith(t, srv, zklock.Options{Layout: layout}), dialWith(t, srv, zklock.Options{Layout: layout})
			locks := []*zklock.Lock{c.Mutex(name), c.NodeLock(name + "-node")}
			if name != "latch" && name != "write-lock" {
				locks = append(locks, c.RWMutex(name).Writer(), c.RWMutex(name).Reader())
			}
			for i, l := range locks {
				znodes, replace := 1, name != "write-lock" && name != "custom" && i != 1
				if name == "mixed" && i != 1 {
					znodes = 2
				}
				want := func(value string) (all []string) {
					for range znodes {
						all = append(all, value)
					}
					return all
				}
				h := acquire(t, l.WithValue("10.0.0.1:80"))
				checkValues(t, l, want("10.0.0.1:80")...)
				if !replace {
					wants(t, l.String(), h.SetValue(t.Context(), "x"), zklock.ErrInvalidLock)
					release(t, h)
					continue
				}
				setValue(t, h, "10.0.0.1:81")
				checkValues(t, l, want("10.0.0.1:81")...)
				if i == 0 {
					w := waiting(t, t.Context(), other.Mutex(name).WithValue("10.0.0.2:80"))
					checkValues(t, l, append(want("10.0.0.1:81"), want("10.0.0.2:80")...)...)
					release(t, h)
					h = got(t, "the waiter", w)
				}
				time.Sleep(time.Second) // the entry of the hold is watched
				setValue(t, h, "\x00\xff")
				checkValues(t, l, want("\x00\xff")...)
				setValue(t, h, "")
				checkValues(t, l, want("")...)
				if err := h.Err(); err != nil {
					t.Error(err)
				}
				release(t, h)
			}
		}
	})
}

// TestValueRefused checks the locks that have no value, and values that are too long.
func TestValueRefused(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		m, long := c.Mutex("a"), strings.Repeat("x", zklock.MaxValue+1)
		for _, l := range []*zklock.Lock{
			m.WithValue(long), zklock.All(m, c.Mutex("b")).WithValue("x"), zklock.All(m.WithValue("x"), c.Mutex("b")),
			c.Semaphore("s", 2).WithValue("x"), c.Semaphore("s", 2).Permits(2).WithValue("x"),
			m.LocalHandoff(2).WithValue("x"), m.WithValue("x").LocalHandoff(2),
		} {
			_, err := l.Acquire(t.Context())
			wants(t, l.String(), err, zklock.ErrInvalidLock)
		}
		for _, l := range []*zklock.Lock{zklock.All(m, c.Mutex("b")), c.Semaphore("s", 2), m.LocalHandoff(2)} {
			h := acquire(t, l)
			wants(t, l.String(), h.SetValue(t.Context(), "x"), zklock.ErrInvalidLock)
			release(t, h)
		}
		h := acquire(t, m.WithValue(long[1:]))
		wants(t, "a long value", h.SetValue(t.Context(), long), zklock.ErrInvalidLock)
		checkValues(t, m, long[1:])
		release(t, h)
		wants(t, "a released hold", h.SetValue(t.Context(), "x"), zklock.ErrReleased)
	})
}

// TestSetValueFails checks that SetValue reports the end of the hold, of the context, and of
// the permission.
func TestSetValueFails(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		h := acquire(t, c.Mutex("a").WithValue("x"))
		remove(t, op, h.Node())
		err := h.SetValue(t.Context(), "y")
		wants(t, "a broken hold", err, zklock.ErrLost)
		wants(t, "a broken hold", err, zklock.ErrDeleted)

		h = acquire(t, c.Mutex("a").WithValue("x"))
		srv.Delay(10 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		wants(t, "a short context", h.SetValue(ctx, "y"), context.DeadlineExceeded)
		cancel()
		setValue(t, h, "z") // after the first
		srv.Delay(0)
		checkValues(t, c.Mutex("a"), "z")

		// A release, or the loss of the session, ends a SetValue in progress.
		for _, end := range []func(){
			func() { _ = h.ReleaseAsync() },
			func() {
				if err := srv.ExpireSession(h.Session()); err != nil {
					t.Error(err)
				}
			},
		} {
			h = acquire(t, c.Mutex("b"))
			srv.Delay(10 * time.Millisecond)
			done := make(chan error, 1)
			go func() { done <- h.SetValue(t.Context(), "y") }()
			synctest.Wait()
			end()
			if err := <-done; err == nil {
				t.Error("no error after the end of the hold")
			}
			srv.Delay(0)
			time.Sleep(time.Second)
		}
		acl := []zk.ACL{{Perms: zk.PermAll &^ zk.PermWrite, Scheme: "world", ID: "anyone"}}
		h = acquire(t, dialWith(t, srv, zklock.Options{ACL: acl}).Mutex("/mine").WithValue("x"))
		wants(t, "no permission", h.SetValue(t.Context(), "y"), zk.ErrNoAuth)
		if err := h.Err(); err != nil {
			t.Error(err)
		}
		release(t, h)
	})
}

// TestSetValueTakesOneRequest checks the requests for a value: the acquire sends no additional
// one, and each change is one write. A lock without a value sends the same bytes as versions
// without values.
func TestSetValueTakesOneRequest(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dialWith(t, srv, zklock.Options{Owner: &zklock.Owner{Host: "here", Since: time.Unix(1, 0).UTC()}})
		free(t, c.Mutex("a"))
		count := func(do func()) (requests, bytes int64) {
			synctest.Wait()
			before := srv.Server().Stats()
			do()
			synctest.Wait()
			after := srv.Server().Stats()
			return after.Received - before.Received, after.BytesReceived - before.BytesReceived
		}
		var h *zklock.Hold
		plain, size := count(func() { h = acquire(t, c.Mutex("a")) })
		data, _, err := srv.Dial(t).Get(t.Context(), h.Node())
		if err != nil || string(data) != `{"host":"here","since":"1970-01-01T00:00:01Z"}` {
			t.Errorf("a lock without a value writes %s, %v", data, err)
		}
		if n, _ := count(func() { setValue(t, h, "x") }); n != 1 {
			t.Errorf("SetValue took %d requests", n)
		}
		release(t, h)
		valued, more := count(func() { h = acquire(t, c.Mutex("a").WithValue("x")) })
		if valued != plain || more-size > int64(len(`,"version":"zklock 0.2.0","value":"x"`)) {
			t.Errorf("an acquire with a value took %d requests of %d bytes, without %d of %d", valued, more, plain, size)
		}
		release(t, h)
	})
}

// TestSetValueKeepsReleaseRequest checks that a release request and a value that are
// written at the same time are both in the entry afterwards.
func TestSetValueKeepsReleaseRequest(t *testing.T) {
	pid := os.Getpid()
	check := func(t *testing.T, l *zklock.Lock, h *zklock.Hold, value string, by int) {
		t.Helper()
		if e := inspect(t, l)[0]; !e.Revoked || e.Value != value || e.Request.By.PID != by {
			t.Errorf("%+v", e)
		}
		if !asked(h) || h.Err() != nil {
			t.Errorf("the holder received the request: %v, %v", asked(h), h.Err())
		}
	}
	for _, layout := range []zklock.Layout{{}, zklock.MixedLayout()} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			c, asker := dialWith(t, srv, zklock.Options{Layout: layout}), dialWith(t, srv, zklock.Options{Layout: layout})
			l := c.Mutex("a")
			revoke := func() {
				if told, err := asker.Mutex("a").Revoke(t.Context()); err != nil || len(told) == 0 {
					t.Errorf("%+v, %v", told, err)
				}
			}
			// The hold has not seen the request yet.
			h := acquire(t, l.WithValue("x"))
			revoke()
			setValue(t, h, "y")
			check(t, l, h, "y", pid)
			setValue(t, h, "z")
			check(t, l, h, "z", pid)
			release(t, h)
			// Both are in flight, in any order.
			for after := range 12 {
				h := acquire(t, l.WithValue("x"))
				srv.Delay(10 * time.Millisecond)
				var all sync.WaitGroup
				all.Go(revoke)
				time.Sleep(time.Duration(after) * 7 * time.Millisecond)
				setValue(t, h, "y")
				all.Wait()
				srv.Delay(0)
				check(t, l, h, "y", pid)
				release(t, h)
			}
		})
	}
	// Curator replaces the data at any version.
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l, op := dial(t, srv).Mutex("a"), srv.Dial(t)
		h := acquire(t, l.WithValue("x"))
		set(t, op, h.Node(), "__REVOKE__")
		check(t, l, h, "", 0)
		setValue(t, h, "y")
		check(t, l, h, "y", 0)
		release(t, h)
	})
}

// TestSetValueRepliesLost checks that a change whose answer is lost is applied once, and that a
// release request that arrives meanwhile is kept.
func TestSetValueRepliesLost(t *testing.T) {
	for _, reply := range []bool{true, false} {
		for _, revoked := range []bool{true, false} {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				l := dial(t, srv).Mutex("a")
				h, asker := acquire(t, l.WithValue("x")), dial(t, srv).Mutex("a")
				f := drop(srv, reply, zktest.Match{Op: "setData"})
				if revoked {
					go func() {
						<-f.Done()
						if _, err := asker.Revoke(t.Context()); err != nil {
							t.Error(err)
						}
					}()
				}
				setValue(t, h, "y")
				time.Sleep(time.Second)
				if e := inspect(t, l)[0]; e.Value != "y" || e.Revoked != revoked {
					t.Errorf("reply %v: %+v", reply, e)
				}
				release(t, h)
			})
		}
	}
}

// TestDowngradeKeepsValue checks that the new znode of a downgraded hold has the value, in
// whatever order the downgrade and the change are sent.
func TestDowngradeKeepsValue(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		m := dial(t, srv).RWMutex("a")
		for range 3 {
			h := acquire(t, m.Writer().WithValue("x"))
			srv.Delay(10 * time.Millisecond)
			var all sync.WaitGroup
			all.Go(func() { setValue(t, h, "y") })
			synctest.Wait()
			if err := h.Downgrade(t.Context()); err != nil {
				t.Fatal(err)
			}
			all.Wait()
			srv.Delay(0)
			checkValues(t, m.Reader(), "y")
			setValue(t, h, "z")
			if e := inspect(t, m.Reader())[0]; e.Value != "z" || e.Token != h.Token() || e.Mode != zklock.Shared {
				t.Errorf("%+v, token %d", e, h.Token())
			}
			release(t, h)
		}
	})
}

// TestReentrantHoldsShareTheirValue checks that re-entering keeps the value, and that each
// of the holds can change it.
func TestReentrantHoldsShareTheirValue(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l := dial(t, srv).Mutex("a").Reentrant()
		h := acquire(t, l.WithValue("x"))
		inner := reenter(t, h, l.WithValue("inner"))
		checkValues(t, l, "x")
		setValue(t, inner, "y")
		release(t, h)
		checkValues(t, l, "y")
		release(t, inner)
	})
}
