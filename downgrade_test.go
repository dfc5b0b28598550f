package zklock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestDowngrade: readers come in, the waiting writer does not; the hold keeps its
// token, and its znode says it.
func TestDowngrade(t *testing.T) {
	for _, layout := range []zklock.Layout{{}, zklock.KazooLayout(), zklock.MixedLayout(), {Prefix: "host", Exclusive: "-W-", Shared: "-R-"}} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			o := zklock.Options{Layout: layout, Owner: &zklock.Owner{Host: "here", PID: 7}}
			a, b := dialWith(t, srv, o).RWMutex("down"), dialWith(t, srv, o).RWMutex("down")
			h := acquire(t, a.Writer())
			token, node := h.Token(), h.Node()
			reader := waiting(t, t.Context(), b.Reader())
			writer := waiting(t, t.Context(), b.Writer())
			pending(t, "behind a writer", reader, writer)
			if err := h.Downgrade(t.Context()); err != nil {
				t.Fatalf("%s: %v", layout, err)
			}
			r := got(t, "the reader", reader)
			pending(t, "the writer behind readers", writer)
			if h.Err() != nil || h.Token() != token || h.Node() == node || h.TokenOf("down") != token {
				t.Errorf("%s: after the downgrade: %v, token %d (was %d), %s (was %s)", layout, h.Err(), h.Token(), token, h.Node(), node)
			}
			if err := h.Verify(t.Context()); layout.Prefix == "" && err != nil {
				t.Errorf("%s: %v", layout, err)
			}
			first := inspect(t, a.Reader())[0]
			if !first.Holder || first.Mode != zklock.Shared || first.Token != token || first.Owner.Host != "here" || first.Node != h.Node() {
				t.Errorf("%s: shown as %+v", layout, first)
			}
			release(t, r)
			pending(t, "the writer behind the downgraded hold", writer)
			release(t, h)
			w := got(t, "the writer", writer)
			if w.Token() <= token {
				t.Errorf("token %d after %d", w.Token(), token)
			}
			release(t, w)
		})
	}
}

// TestDowngradeRepliesLost: the outcome is exact whichever answer is lost.
func TestDowngradeRepliesLost(t *testing.T) {
	for _, reply := range []bool{true, false} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			a, b := dial(t, srv).RWMutex("down"), dial(t, srv).RWMutex("down")
			h := acquire(t, a.Writer())
			writer := waiting(t, t.Context(), b.Writer())
			fault := srv.DropRequest
			if reply {
				fault = srv.DropReply
			}
			f := fault(zktest.Match{Op: "multi", Path: a.Writer().Path() + "/_c_"})
			if err := h.Downgrade(t.Context()); err != nil {
				t.Fatalf("reply %v: %v", reply, err)
			}
			<-f.Done()
			time.Sleep(time.Second)
			pending(t, "the writer", writer)
			if found := inspect(t, a.Reader()); len(found) != 2 || found[0].Mode != zklock.Shared || found[0].Node != h.Node() {
				t.Errorf("reply %v: %+v", reply, found)
			}
			release(t, h)
			time.Sleep(time.Second)
			release(t, got(t, "the writer", writer))
		})
	}
}

// TestDowngradeWithoutLock: a downgrade that was not carried out, of a lock that was
// deleted meanwhile, ends with the loss of the hold.
func TestDowngradeWithoutLock(t *testing.T) {
	for _, layout := range []zklock.Layout{{}, zklock.MixedLayout(), {Prefix: "host", Exclusive: "-W-", Shared: "-R-"}} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			z := srv.Dial(t)
			h := acquire(t, dialWith(t, srv, zklock.Options{Layout: layout}).RWMutex("/down").Writer())
			ops := []zk.Op{}
			for _, node := range h.Nodes() {
				ops = append(ops, zk.DeleteOp(node, -1))
			}
			lost := srv.DropRequest(zktest.Match{Op: "multi", Path: "/down/"})
			srv.Refuse(true)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			downgraded := make(chan error, 1)
			go func() { downgraded <- h.Downgrade(ctx) }()
			<-lost.Done()
			if _, err := z.Multi(t.Context(), append(ops, zk.DeleteOp("/down", -1))...); err != nil {
				t.Fatal(err)
			}
			srv.Refuse(false)
			if err := <-downgraded; !errors.Is(err, zklock.ErrLost) || !errors.Is(err, zklock.ErrDeleted) {
				t.Errorf("%s: %v", layout, err)
			}
			if err := h.Err(); !errors.Is(err, zklock.ErrDeleted) {
				t.Errorf("%s: the hold: %v", layout, err)
			}
		})
	}
}

// TestDowngradeErrors: what is no writer's hold can't be downgraded.
func TestDowngradeErrors(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		for what, l := range map[string]*zklock.Lock{
			"a mutex":     c.Mutex("a"),
			"a reader":    c.RWMutex("b").Reader(),
			"a semaphore": c.Semaphore("c", 2),
			"a node lock": c.NodeLock("d"),
			"an All":      zklock.All(c.RWMutex("e").Writer(), c.Mutex("f")),
		} {
			h := acquire(t, l)
			wants(t, what, h.Downgrade(t.Context()), zklock.ErrInvalidLock)
			if h.Err() != nil {
				t.Errorf("%s: %v", what, h.Err())
			}
			release(t, h)
		}
		w := acquire(t, c.RWMutex("w").Writer().Reentrant())
		view, err := c.RWMutex("w").Reader().Reentrant().Acquire(under(t, w))
		if err != nil {
			t.Fatal(err)
		}
		wants(t, "a hold that was re-entered", w.Downgrade(t.Context()), zklock.ErrInvalidLock)
		release(t, view)
		done, cancel := context.WithCancel(t.Context())
		cancel()
		wants(t, "a context that is done", w.Downgrade(done), context.Canceled)
		if err := w.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		wants(t, "downgrading again", w.Downgrade(t.Context()), zklock.ErrInvalidLock)
		release(t, w)
		wants(t, "a released hold", w.Downgrade(t.Context()), zklock.ErrReleased)
	})
}

// TestDowngradeLost: a downgrade finds out that the hold is lost, and one that
// can't be answered any more ends with the hold.
func TestDowngradeLost(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l, op := dial(t, srv).RWMutex("lost").Writer(), srv.Dial(t)
		h := acquire(t, l)
		remove(t, op, h.Node())
		wants(t, "without a znode", h.Downgrade(t.Context()), zklock.ErrLost)
		wants(t, "and then", h.Err(), zklock.ErrLost)
		h = acquire(t, l)
		srv.Blackhole(true)
		wants(t, "in silence", h.Downgrade(t.Context()), zklock.ErrLost)
		srv.Blackhole(false)
		time.Sleep(2 * timeout)
	})
}

// TestDowngradeGoesOn: a downgrade whose context ends is done all the same; in the
// meantime nothing exclusive re-enters, and Guard waits for it.
func TestDowngradeGoesOn(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		h := acquire(t, c.RWMutex("on").Writer())
		if _, _, err := op.Create(t.Context(), "/data", nil, nil, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		srv.Delay(50 * time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		err := h.Downgrade(ctx)
		wants(t, "a downgrade whose context ends", err, context.DeadlineExceeded)
		if !strings.Contains(err.Error(), "background") {
			t.Errorf("%v", err)
		}
		_, err = c.Mutex("on").Reentrant().Acquire(under(t, h))
		wants(t, "re-entering exclusively", err, zklock.ErrUpgrade)
		guarded := make(chan error)
		go func() { guarded <- h.Guard(t.Context(), zk.SetOp("/data", []byte("x"), -1)) }()
		if err := <-guarded; err != nil {
			t.Errorf("guard: %v", err)
		}
		srv.Delay(0)
		if e := inspect(t, c.Mutex("on"))[0]; e.Mode != zklock.Shared || e.Token != h.Token() || e.Node != h.Node() {
			t.Errorf("%+v", e)
		}
		release(t, h)
	})
}

// TestDowngradeAgainstReleases: a release in the midst of a downgrade leaves
// nothing, whichever comes first.
func TestDowngradeAgainstReleases(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l := dial(t, srv).RWMutex("race")
		srv.Delay(10 * time.Millisecond)
		for after := range 8 {
			h := acquire(t, l.Writer())
			done := make(chan error)
			go func() { done <- h.Downgrade(t.Context()) }()
			time.Sleep(time.Duration(after) * 5 * time.Millisecond)
			release(t, h)
			if err := <-done; err != nil && !errors.Is(err, zklock.ErrReleased) {
				t.Errorf("after %d: %v", after, err)
			}
			synctest.Wait()
		}
		srv.Delay(0)
		free(t, l.Writer())
	})
}

// TestDowngradeRefused: a downgrade that the servers refuse leaves a writer's hold
// as it was, and those who re-entered meanwhile with it.
func TestDowngradeRefused(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		lock := c.RWMutex("down")
		h := acquire(t, lock.Writer())
		if _, err := op.SetACL(t.Context(), "/zklock/down", []zk.ACL{{Perms: zk.PermAll &^ zk.PermCreate, Scheme: "world", ID: "anyone"}}, -1); err != nil {
			t.Fatal(err)
		}
		srv.Delay(20 * time.Millisecond)
		refused := make(chan error)
		go func() { refused <- h.Downgrade(t.Context()) }()
		time.Sleep(time.Millisecond)
		reader := again(t, h, lock.Reader().Reentrant())
		wants(t, "without the right to create", <-refused, zk.ErrNoAuth)
		srv.Delay(0)
		writer := again(t, h, lock.Writer().Reentrant())
		if h.Err() != nil || h.Node() != writer.Node() || h.Token() != reader.Token() || inspect(t, lock.Reader())[0].Mode != zklock.Exclusive {
			t.Errorf("%v, %s", h.Err(), h.Node())
		}
		if err := reader.Guard(t.Context(), zk.CheckOp("/", -1)); err != nil {
			t.Error(err)
		}
		release(t, h)
		release(t, writer)
		if _, err := op.SetACL(t.Context(), "/zklock/down", zk.OpenACL(), -1); err != nil {
			t.Fatal(err)
		}
		// The last of its holds may be a reader's, and can do what the writer's could.
		if err := reader.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		free(t, dial(t, srv).RWMutex("down").Reader())
		if reader.Token() != h.Token() || reader.TokenOf("down") != h.Token() || !strings.Contains(reader.Node(), "__READ__") {
			t.Errorf("token %d of %s, was %d", reader.Token(), reader.Node(), h.Token())
		}
		if err := reader.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		release(t, reader)
	})
}

// TestDowngradeBesideWriter: a writer of the same client's that waits, and lists the
// queue while the answer to a downgrade is lost, goes on waiting for the reader.
func TestDowngradeBesideWriter(t *testing.T) {
	for _, reply := range []bool{true, false} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			l := dial(t, srv).RWMutex("down")
			h := acquire(t, l.Writer())
			writer := waiting(t, t.Context(), l.Writer())
			fault := srv.DropRequest
			if reply {
				fault = srv.DropReply
			}
			f := fault(zktest.Match{Op: "multi", Path: l.Writer().Path() + "/_c_"})
			if err := h.Downgrade(t.Context()); err != nil {
				t.Fatal(err)
			}
			<-f.Done()
			time.Sleep(time.Second)
			pending(t, "behind the downgraded hold", writer)
			release(t, h)
			time.Sleep(time.Second)
			release(t, got(t, "the writer", writer))
		})
	}
}
