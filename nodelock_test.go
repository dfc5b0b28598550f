package zklock_test

import (
	"context"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestNodeLock: the lock is the znode at its path.
func TestNodeLock(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b, op := dial(t, srv).NodeLock("node/lock"), dial(t, srv).NodeLock("node/lock"), srv.Dial(t)
		h := acquire(t, a)
		_, stat, err := op.Get(t.Context(), "/zklock/node/lock")
		if err != nil || stat.EphemeralOwner != h.Session() || stat.Czxid != h.Token() || h.Node() != a.Path() {
			t.Errorf("the znode: %+v, %v; the hold's token %d, znode %s", stat, err, h.Token(), h.Node())
		}
		locked(t, a)
		locked(t, b)
		w := waiting(t, t.Context(), b)
		pending(t, "while another holds", w)
		release(t, h)
		next := got(t, "the other one", w)
		if next.Token() <= h.Token() {
			t.Errorf("token %d after %d", next.Token(), h.Token())
		}
		release(t, next)
		free(t, a)
	})
}

// TestNodeLockAmongOthers: it waits for a program that locks this way, and that
// program for it.
func TestNodeLockAmongOthers(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l, op := dial(t, srv).NodeLock("/theirs"), srv.Dial(t)
		if _, _, err := op.Create(t.Context(), "/theirs", []byte("host-7"), nil, zk.ModeEphemeral); err != nil {
			t.Fatal(err)
		}
		locked(t, l)
		found := inspect(t, l)
		if len(found) != 1 || !found[0].Holder || found[0].Data != "host-7" || found[0].Node != "/theirs" || found[0].Mode != zklock.Exclusive {
			t.Errorf("%+v", found)
		}
		ctx, cancel := context.WithCancel(t.Context())
		given := waiting(t, ctx, l)
		w := waiting(t, t.Context(), l)
		cancel()
		if <-given != nil {
			t.Error("granted after a cancel")
		}
		remove(t, op, "/theirs")
		h := got(t, "ours", w)
		if _, _, err := op.Create(t.Context(), "/theirs", nil, nil, zk.ModeEphemeral); err == nil {
			t.Error("two made the znode")
		}
		release(t, h)
	})
}

// TestNodeLockOutlivesDoubt: the outcome is exact whichever request or answer is
// lost.
func TestNodeLockOutlivesDoubt(t *testing.T) {
	for _, op := range []string{"create2", "getData", "delete", "multi"} {
		for _, reply := range []bool{true, false} {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				a, b := dial(t, srv).NodeLock("doubt"), dial(t, srv).NodeLock("doubt")
				fault := srv.DropRequest
				if reply {
					fault = srv.DropReply
				}
				f := fault(zktest.Match{Op: op, Path: a.Path()})
				h := acquire(t, a)
				locked(t, b)
				w := waiting(t, t.Context(), b)
				release(t, h)
				time.Sleep(time.Second)
				release(t, got(t, "the other one", w))
				f.Stop()
			})
		}
	}
}

// TestNodeLockTakenAway: a holder whose znode somebody deletes is told, be it made
// again by another or not, and does not delete the other's.
func TestNodeLockTakenAway(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b, op := dial(t, srv).NodeLock("away"), dial(t, srv).NodeLock("away"), srv.Dial(t)
		h := acquire(t, a)
		w := waiting(t, t.Context(), b)
		remove(t, op, a.Path())
		other := got(t, "the other one", w)
		<-h.Done()
		wants(t, "the old hold", h.Err(), zklock.ErrLost)
		wants(t, "its release", h.Release(t.Context()), zklock.ErrLost)
		time.Sleep(timeout)
		if other.Err() != nil {
			t.Errorf("the other's hold: %v", other.Err())
		}
		release(t, other)
	})
}

// TestNodeLockNotProven: no check tells whose the znode is, so that none is made.
func TestNodeLockNotProven(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l, op := dial(t, srv).NodeLock("guard"), srv.Dial(t)
		h := acquire(t, l)
		wants(t, "verify", h.Verify(t.Context()), zklock.ErrInvalidLock)
		wants(t, "guard", h.Guard(t.Context(), zk.CreateOp("/made", nil, nil, zk.ModePersistent)), zklock.ErrInvalidLock)
		if _, _, err := op.Get(t.Context(), "/made"); err == nil {
			t.Error("the operation was done all the same")
		}
		if h.Err() != nil {
			t.Error(h.Err())
		}
		release(t, h)
		_, err := dial(t, srv).NodeLock("x/../y").Acquire(t.Context())
		wants(t, "a bad name", err, zklock.ErrInvalidName)
	})
}

// TestNodeLockInTheWay: a znode that is not ephemeral is nobody's hold.
func TestNodeLockInTheWay(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l, op := dial(t, srv).NodeLock("/way"), srv.Dial(t)
		if _, _, err := op.Create(t.Context(), "/way", nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		locked(t, l)
		if found := inspect(t, l); len(found) != 1 || found[0].Holder || found[0].Mode != zklock.Stray {
			t.Errorf("%+v", found)
		}
		remove(t, op, "/way")
		free(t, l)
	})
}
