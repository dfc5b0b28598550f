package locktest

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

const lockDelay = 30 * time.Second

// delayed returns the options of a client with a lock delay.
func (e *env) delayed() *zklock.Options {
	o := e.options()
	o.LockDelay = lockDelay
	return o
}

// lose acquires a lock and ends the session of its holder.
func (e *env) lose(srv *zktest.Server, l *zklock.Lock) {
	e.Helper()
	e.expire(srv, e.acquire(l))
}

// expire ends the session of a hold.
func (e *env) expire(srv *zktest.Server, h *zklock.Hold) {
	e.Helper()
	if err := srv.ExpireSession(h.Session()); err != nil {
		e.Fatal(err)
	}
	<-h.Done()
}

// use acquires and releases a lock, and returns how long that took.
func (e *env) use(l *zklock.Lock) time.Duration {
	e.Helper()
	begun := time.Now()
	e.release(e.acquire(l))
	return time.Since(begun)
}

// atOnce fails unless the lock is acquired without a lock delay.
func (e *env) atOnce(l *zklock.Lock) {
	e.Helper()
	if took := e.use(l); took > time.Second {
		e.Errorf("%s: acquired after %v", l, took)
	}
}

// afterDelay fails unless the lock is acquired after the lock delay, which begins now.
func (e *env) afterDelay(l *zklock.Lock) {
	e.Helper()
	if took := e.use(l); took < lockDelay-bubbleTimeout || took > lockDelay+bubbleTimeout {
		e.Errorf("%s: acquired after %v, not %v", l, took, lockDelay)
	}
}

// TestLockDelayAfterCrash checks that the next client waits for the lock delay after a crash,
// and does not wait after a release.
func TestLockDelayAfterCrash(t *testing.T) {
	for _, layout := range []zklock.Layout{{}, zklock.KazooLayout(), zklock.MixedLayout()} {
		inBubble(t, func(e *env, srv *zktest.Server) {
			o := e.delayed()
			o.Layout = layout
			a, b := e.dialWith(o).RWMutex("delayed"), e.dialWith(o).RWMutex("delayed")
			for range 3 {
				e.atOnce(a.Writer())
				e.atOnce(b.Reader())
			}
			h := e.acquire(a.Writer())
			waiter := e.acquiring(e.ctx, b.Writer())
			e.expire(srv, h)
			begun := time.Now()
			e.locked(b.Reader())
			next := <-waiter
			if took := time.Since(begun); took < lockDelay-bubbleTimeout || took > lockDelay+bubbleTimeout {
				e.Errorf("%s: granted after %v, not %v", layout, took, lockDelay)
			}
			e.release(next)
			e.atOnce(a.Reader())
		})
	}
}

// TestLockDelayRecordsAreNoEntries checks that a client without a lock delay neither creates
// nor reads records, and that Inspect does not show them.
func TestLockDelayRecordsAreNoEntries(t *testing.T) {
	inBubble(t, func(e *env, srv *zktest.Server) {
		a, plain, op := e.dialWith(e.delayed()), e.dial(), srv.Dial(e.T)
		h := e.acquire(a.Mutex("records"))
		if records, _, err := op.Children(e.ctx, "/zklock/records-held"); err != nil || len(records) != 1 {
			e.Errorf("records: %v, %v", records, err)
		}
		for name, want := range map[string]int{"records": 1, "records-held": 0} {
			if found, err := plain.Inspect(e.ctx, name); err != nil || len(found) != want {
				e.Errorf("%s: %+v, %v", name, found, err)
			}
		}
		e.expire(srv, h)
		e.atOnce(plain.Mutex("records"))
		e.locked(a.Mutex("records"))
		ctx, cancel := context.WithTimeout(e.ctx, lockDelay/2)
		defer cancel()
		if _, err := a.Mutex("records").Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			e.Errorf("within the delay: %v", err)
		}
		e.use(a.Mutex("records")) // removes the record
	})
}

// TestLockDelayOnlyOfQueues checks that semaphores and node locks have no lock delay.
func TestLockDelayOnlyOfQueues(t *testing.T) {
	inBubble(t, func(e *env, srv *zktest.Server) {
		a := e.dialWith(e.delayed())
		for _, l := range []*zklock.Lock{a.Semaphore("sem", 1), a.NodeLock("node")} {
			e.lose(srv, l)
			if took := e.use(l); took > bubbleTimeout {
				e.Errorf("%s: acquired after %v", l, took)
			}
		}
	})
}

// TestLockDelayOfAll checks that an All waits for the lock delay of each of its locks, and
// deletes their records.
func TestLockDelayOfAll(t *testing.T) {
	inBubble(t, func(e *env, srv *zktest.Server) {
		a, b := e.dialWith(e.delayed()), e.dialWith(e.delayed())
		e.lose(srv, zklock.All(a.Mutex("x"), a.Mutex("y")))
		e.afterDelay(zklock.All(b.Mutex("y"), b.Mutex("z")))
		e.use(b.Mutex("x"))
	})
}

// TestLockDelayAfterDowngrade checks that a downgraded hold has a record.
func TestLockDelayAfterDowngrade(t *testing.T) {
	inBubble(t, func(e *env, srv *zktest.Server) {
		a, b := e.dialWith(e.delayed()).RWMutex("rw"), e.dialWith(e.delayed()).RWMutex("rw")
		downgraded := func() *zklock.Hold {
			h := e.acquire(a.Writer())
			if err := h.Downgrade(e.ctx); err != nil {
				e.Fatal(err)
			}
			return h
		}
		e.release(downgraded())
		e.atOnce(b.Writer())
		h := downgraded()
		e.atOnce(b.Reader())
		e.expire(srv, h)
		e.locked(b.Writer())
		e.afterDelay(b.Writer())
	})
}

// TestLockDelayIsReported checks that, during a lock delay, the OnWait event and the error of
// an acquire name the lock and the record.
func TestLockDelayIsReported(t *testing.T) {
	inBubble(t, func(e *env, srv *zktest.Server) {
		waits := make(chan zklock.Event, 10)
		o := e.delayed()
		o.OnWait = func(v zklock.Event) { waits <- v }
		l, c := e.dialWith(e.delayed()).Mutex("told"), e.dialWith(o)
		e.lose(srv, l)
		ctx, cancel := context.WithTimeout(e.ctx, time.Second)
		defer cancel()
		_, err := zklock.All(c.Mutex("other"), c.Mutex("told")).Acquire(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "lock-delay") {
			e.Errorf("within the delay: %v", err)
		}
		v := <-waits
		if v.Blocker.Path != l.Path() || path.Dir(v.Blocker.Node) != l.Path()+"-held" || v.Blocker.Mode != zklock.Stray || v.Ahead != 0 {
			e.Errorf("%+v", v)
		}
		e.use(l) // after its own delay; this removes the record
	})
}

// TestLockDelayOverManyClients checks that the lock delay continues over many short-lived
// clients, like those of a cron job.
func TestLockDelayOverManyClients(t *testing.T) {
	inBubble(t, func(e *env, srv *zktest.Server) {
		e.lose(srv, e.dialWith(e.delayed()).Mutex("cron"))
		for begun := time.Now(); ; time.Sleep(time.Second) {
			c := e.dialWith(e.delayed())
			h, err := c.Mutex("cron").TryAcquire(e.ctx)
			took := time.Since(begun)
			if err == nil {
				if took < lockDelay {
					e.Errorf("granted after %v", took)
				}
				e.release(h)
			} else if !errors.Is(err, zklock.ErrLocked) || took > lockDelay*5/4 {
				e.Fatalf("after %v: %v", took, err)
			}
			if cerr := c.Close(); cerr != nil {
				e.Fatal(cerr)
			}
			if err == nil {
				return
			}
		}
	})
}

// TestLockDelaySparesOtherZnodes checks that a client neither waits for, writes to, nor deletes
// a znode next to the records that is not a record. A lock of that name has its entries there.
func TestLockDelaySparesOtherZnodes(t *testing.T) {
	for _, layout := range []zklock.Layout{{}, zklock.KazooLayout(), zklock.MixedLayout()} {
		inBubble(t, func(e *env, srv *zktest.Server) {
			delayed, plain := e.delayed(), e.options()
			delayed.Layout, plain.Layout = layout, layout
			a, op := e.dialWith(delayed).Mutex("/spared"), srv.Dial(e.T)
			other := e.acquire(e.dialWith(plain).Mutex("/spared-held"))
			e.create(op, "/spared-held/config", []byte("theirs"), zk.ModePersistent)
			e.atOnce(a)
			time.Sleep(bubbleTimeout)
			if _, stat, err := op.Get(e.ctx, "/spared-held/config"); err != nil || stat.Version != 0 {
				e.Errorf("%s: another client's znode: %+v, %v", layout, stat, err)
			}
			// A record next to them still counts.
			e.lose(srv, a)
			e.afterDelay(a)
			e.release(other) // fails if it was lost
			e.remove(op, "/spared-held/config")
		})
	}
}
