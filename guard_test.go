package zklock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// ledger makes a znode that guarded writes go to, and returns its data.
func ledger(t *testing.T, op *zk.Client) (read func() string) {
	t.Helper()
	if _, _, err := op.Create(t.Context(), "/ledger", []byte("0"), nil, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	return func() string {
		t.Helper()
		data, _, err := op.Get(t.Context(), "/ledger")
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
}

func write(value string) zk.Op { return zk.SetOp("/ledger", []byte(value), -1) }

// TestGuard checks that operations are done while the lock is held, by any kind of
// hold, and not after.
func TestGuard(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		read := ledger(t, op)
		for what, l := range map[string]*zklock.Lock{
			"a mutex":     c.Mutex("a"),
			"a reader":    c.RWMutex("a").Reader(),
			"a writer":    c.RWMutex("a").Writer(),
			"a semaphore": c.Semaphore("s", 3).Permits(2),
			"an All":      zklock.All(c.Mutex("a"), c.Mutex("b"), c.Semaphore("s", 3)),
			"one inorder": zklock.All(c.Mutex("a"), c.Mutex("b")).InOrder(),
		} {
			h := acquire(t, l)
			if err := h.Guard(t.Context(), write(what), zk.CheckOp("/ledger", -1)); err != nil || read() != what {
				t.Errorf("%s: %v, the znode says %q", what, err, read())
			}
			if err := h.Guard(t.Context()); err != nil {
				t.Errorf("%s: nothing to do: %v", what, err)
			}
			release(t, h)
			wants(t, what+", released", h.Guard(t.Context(), write("late")), zklock.ErrReleased)
		}
		for i := range 3 { // whichever znode of an All is gone
			h := acquire(t, zklock.All(c.Mutex("a"), c.Mutex("b"), c.Semaphore("s", 1)))
			remove(t, op, h.Nodes()[i])
			wants(t, "a hold without its znode", h.Guard(t.Context(), write("stale")), zklock.ErrLost)
			wants(t, "and then", h.Err(), zklock.ErrLost)
			time.Sleep(time.Second)
		}
		if got := read(); got == "stale" || got == "late" {
			t.Errorf("the znode says %q", got)
		}
	})
}

// TestGuardFailures checks that the error names an operation that fails, that the
// failure undoes the others and keeps the hold, and that operations that cannot be part
// of a multi are not sent.
func TestGuardFailures(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		read := ledger(t, op)
		h := acquire(t, zklock.All(c.Mutex("a"), c.Mutex("b")))
		for index, failing := range map[string]struct {
			ops  []zk.Op
			want error
		}{
			"operation 1": {[]zk.Op{write("x"), zk.SetOp("/ledger", nil, 99)}, zk.ErrBadVersion},
			"operation 0": {[]zk.Op{zk.DeleteOp("/nowhere", -1), write("x")}, zk.ErrNoNode},
			"operation 2": {[]zk.Op{write("x"), write("y"), zk.CreateOp("/ledger", nil, nil, zk.ModePersistent)}, zk.ErrNodeExists},
			"read":        {[]zk.Op{zk.GetOp("/ledger", false)}, zk.ErrInvalidOp},
			"watch":       {[]zk.Op{write("x"), zk.GetOp("/ledger", true)}, zk.ErrInvalidOp},
			"children":    {[]zk.Op{zk.ChildrenOp("/", false)}, zk.ErrInvalidOp},
			"exists":      {[]zk.Op{zk.ExistsOp("/ledger", false)}, zk.ErrInvalidOp},
			"zero":        {[]zk.Op{{}}, nil},
			"nested":      {[]zk.Op{zk.MultiOp(write("x"))}, nil},
			"path":        {[]zk.Op{zk.SetOp("ledger", nil, -1)}, zk.ErrInvalidPath},
			"large":       {[]zk.Op{write(strings.Repeat("x", 2<<20))}, zk.ErrTooLarge},
		} {
			err := h.Guard(t.Context(), failing.ops...)
			if err == nil || failing.want != nil && !errors.Is(err, failing.want) || zk.Applied(err) != zk.AppliedNo {
				t.Errorf("%s: %v, applied: %v", index, err, zk.Applied(err))
			}
			if strings.HasPrefix(index, "operation") != strings.Contains(err.Error(), "operation ") || strings.HasPrefix(index, "operation") && !strings.Contains(err.Error(), index) {
				t.Errorf("%s: %v", index, err)
			}
			if h.Err() != nil || read() != "0" {
				t.Fatalf("%s: the hold says %v, the znode %q", index, h.Err(), read())
			}
		}
		release(t, h)
	})
}

// TestGuardWithLostReply checks that the error says that the outcome is unknown if the
// reply is lost, and that Verify can be repeated.
func TestGuardWithLostReply(t *testing.T) {
	for _, reply := range []bool{true, false} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			c, op := dial(t, srv), srv.Dial(t)
			read := ledger(t, op)
			h := acquire(t, c.Mutex("a"))
			fault := srv.DropRequest
			if reply {
				fault = srv.DropReply
			}
			f := fault(zktest.Match{Op: "multi", Path: "/zklock/a/"})
			err := h.Guard(t.Context(), write("1"))
			wants(t, "a guard whose answer is lost", err, zk.ErrConnectionLost)
			<-f.Done()
			if h.Err() != nil || errors.Is(err, zklock.ErrLost) || (read() == "1") != reply {
				t.Errorf("reply %v: %v, the hold says %v, the znode %q", reply, err, h.Err(), read())
			}
			if err := h.Verify(t.Context()); err != nil {
				t.Error(err)
			}
			release(t, h)
		})
	}
}

// TestGuardContext checks that the outcome of a guard whose context ends is unknown,
// and that a guard whose context had ended does nothing.
func TestGuardContext(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		read := ledger(t, op)
		h := acquire(t, c.Mutex("a"))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		err := h.Guard(ctx, write("never"))
		wants(t, "a context that is done", err, context.Canceled)
		srv.Delay(50 * time.Millisecond)
		ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		err = h.Guard(ctx, write("later"))
		wants(t, "a context that ends", err, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "unknown") {
			t.Errorf("it does not say that the outcome is unknown: %v", err)
		}
		wants(t, "verify", h.Verify(ctx), context.DeadlineExceeded)
		time.Sleep(time.Second)
		srv.Delay(0)
		if read() != "later" {
			t.Errorf("the znode says %q", read())
		}
		release(t, h)
	})
}

// TestGuardWhileClosing checks that the error of a guard on a closed client does not
// claim that nothing was done.
func TestGuardWhileClosing(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		h := acquire(t, c.Mutex("a"))
		srv.Block(zktest.ToClient, true)
		failed := make(chan error)
		go func() { failed <- h.Guard(t.Context(), zk.CreateOp("/made", nil, nil, zk.ModePersistent)) }()
		time.Sleep(time.Second)
		_ = c.Close() // not confirmed
		wants(t, "a guard that was sent", <-failed, zk.ErrConnectionLost)
		wants(t, "one after the close", h.Guard(t.Context()), zklock.ErrLost)
		srv.Block(zktest.ToClient, false)
		if _, _, err := srv.Dial(t).Get(t.Context(), "/made"); err != nil {
			t.Errorf("this one was done: %v", err)
		}
	})
}

// TestGuardInSilence checks that a guard without an answer ends with the connection,
// and the hold at its deadline.
func TestGuardInSilence(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		h := acquire(t, dial(t, srv).Mutex("a"))
		srv.Blackhole(true)
		time.AfterFunc(4*timeout, func() { srv.Blackhole(false) })
		err := h.Guard(t.Context(), zk.CreateOp("/never", nil, nil, zk.ModePersistent))
		wants(t, "in silence", err, zk.ErrConnectionLost)
		<-h.Done()
		wants(t, "and then", h.Guard(t.Context()), zklock.ErrLost)
	})
}
