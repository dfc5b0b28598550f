package zklock_test

import (
	"context"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

const delay = 30 * time.Second

// TestLockDelay: after a crash the next one keeps off for the delay, whoever it
// is; after a release it does not.
func TestLockDelay(t *testing.T) {
	for _, layout := range []zklock.Layout{{}, zklock.KazooLayout(), zklock.MixedLayout()} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			o := zklock.Options{LockDelay: delay, Layout: layout}
			a, b := dialWith(t, srv, o).RWMutex("delayed"), dialWith(t, srv, o).RWMutex("delayed")
			begun := time.Now()
			for range 3 {
				release(t, acquire(t, a.Writer()))
				release(t, acquire(t, b.Reader()))
			}
			if took := time.Since(begun); took > time.Second {
				t.Errorf("%s: without a crash: %v", layout, took)
			}
			h := acquire(t, a.Writer())
			waiter := waiting(t, t.Context(), b.Writer())
			if err := srv.ExpireSession(h.Session()); err != nil {
				t.Fatal(err)
			}
			<-h.Done()
			begun = time.Now()
			locked(t, b.Reader())
			next := <-waiter
			if took := time.Since(begun); took < delay-timeout || took > delay+timeout {
				t.Errorf("%s: granted after %v, not %v", layout, took, delay)
			}
			release(t, next)
			begun = time.Now()
			free(t, a.Reader())
			if took := time.Since(begun); took > time.Second {
				t.Errorf("%s: the delay is over: %v", layout, took)
			}
		})
	}
}

// TestLockDelayRecords: the records are no entries, and who has no delay neither
// makes nor heeds them.
func TestLockDelayRecords(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, plain := dialWith(t, srv, zklock.Options{LockDelay: delay}), dial(t, srv)
		op := srv.Dial(t)
		h := acquire(t, a.Mutex("records"))
		records, _, err := op.Children(t.Context(), h.Node()[:len("/zklock/records")]+"-held")
		if err != nil || len(records) != 1 {
			t.Errorf("records: %v, %v", records, err)
		}
		for _, name := range []string{"records", "records-held"} {
			found, err := plain.Inspect(t.Context(), name)
			if want := 2 - len(name)/len("records-held") - 1; err != nil || len(found) != want {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
		}
		if err := srv.ExpireSession(h.Session()); err != nil {
			t.Fatal(err)
		}
		<-h.Done()
		free(t, plain.Mutex("records"))
		locked(t, a.Mutex("records"))
		ctx, cancel := context.WithTimeout(t.Context(), delay/2)
		defer cancel()
		_, err = a.Mutex("records").Acquire(ctx)
		wants(t, "within the delay", err, context.DeadlineExceeded)
		release(t, acquire(t, a.Mutex("records"))) // takes the record away
		// A semaphore and a node lock have no delay.
		for _, l := range []*zklock.Lock{a.Semaphore("sem", 1), a.NodeLock("node")} {
			h := acquire(t, l)
			if err := srv.ExpireSession(h.Session()); err != nil {
				t.Fatal(err)
			}
			<-h.Done()
			begun := time.Now()
			release(t, acquire(t, l))
			if took := time.Since(begun); took > timeout {
				t.Errorf("%s: %v", l, took)
			}
		}
	})
}

// TestLockDelayOfAll: an All keeps off all its locks, and its records go with it.
func TestLockDelayOfAll(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dialWith(t, srv, zklock.Options{LockDelay: delay}), dialWith(t, srv, zklock.Options{LockDelay: delay})
		h := acquire(t, zklock.All(a.Mutex("x"), a.Mutex("y")))
		if err := srv.ExpireSession(h.Session()); err != nil {
			t.Fatal(err)
		}
		<-h.Done()
		begun := time.Now()
		release(t, acquire(t, zklock.All(b.Mutex("y"), b.Mutex("z"))))
		if took := time.Since(begun); took < delay-timeout {
			t.Errorf("granted after %v, not %v", took, delay)
		}
		release(t, acquire(t, b.Mutex("x")))
	})
}

// TestLockDelayDowngrade: the reader that a writer becomes has a record too.
func TestLockDelayDowngrade(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		o := zklock.Options{LockDelay: delay}
		a, b := dialWith(t, srv, o).RWMutex("rw"), dialWith(t, srv, o).RWMutex("rw")
		h := acquire(t, a.Writer())
		if err := h.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		release(t, h)
		free(t, b.Writer())
		h = acquire(t, a.Writer())
		if err := h.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		free(t, b.Reader())
		if err := srv.ExpireSession(h.Session()); err != nil {
			t.Fatal(err)
		}
		<-h.Done()
		locked(t, b.Writer())
		begun := time.Now()
		release(t, acquire(t, b.Writer()))
		if took := time.Since(begun); took < delay-timeout {
			t.Errorf("granted after %v, not %v", took, delay)
		}
	})
}

// TestLockDelayTold: who waits for a delay's end is told of which lock, and of
// whose record.
func TestLockDelayTold(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		told := make(chan zklock.Event, 10)
		l := dialWith(t, srv, zklock.Options{LockDelay: delay}).Mutex("told")
		c := dialWith(t, srv, zklock.Options{LockDelay: delay, OnWait: func(e zklock.Event) { told <- e }})
		h := acquire(t, l)
		if err := srv.ExpireSession(h.Session()); err != nil {
			t.Fatal(err)
		}
		<-h.Done()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := zklock.All(c.Mutex("other"), c.Mutex("told")).Acquire(ctx)
		wants(t, "within the delay", err, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "lock-delay") {
			t.Errorf("it does not say what it waited for: %v", err)
		}
		e := <-told
		if e.Blocker.Path != l.Path() || path.Dir(e.Blocker.Node) != l.Path()+"-held" || e.Blocker.Mode != zklock.Stray || e.Ahead != 0 {
			t.Errorf("%+v", e)
		}
		release(t, acquire(t, l)) // after its own delay, with the record
	})
}

// TestLockDelayOfTheShortLived: clients that live no longer than a try, as those
// of a cron job do, wait the delay together.
func TestLockDelayOfTheShortLived(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		o := zklock.Options{LockDelay: delay}
		h := acquire(t, dialWith(t, srv, o).Mutex("cron"))
		if err := srv.ExpireSession(h.Session()); err != nil {
			t.Fatal(err)
		}
		<-h.Done()
		begun := time.Now()
		for {
			c, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{LockDelay: delay, DialContext: srv.DialContext, SessionTimeout: timeout})
			if err != nil {
				t.Fatal(err)
			}
			got, err := c.Mutex("cron").TryAcquire(t.Context())
			took := time.Since(begun)
			if err == nil {
				if took < delay {
					t.Errorf("granted after %v", took)
				}
				release(t, got)
			}
			if cerr := c.Close(); cerr != nil {
				t.Fatal(cerr)
			}
			if err == nil {
				return
			}
			wants(t, "a try within the delay", err, zklock.ErrLocked)
			if took > delay*5/4 {
				t.Fatalf("not granted after %v", took)
			}
			time.Sleep(time.Second)
		}
	})
}
