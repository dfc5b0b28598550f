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

// TestReadersShare checks that readers of several clients hold together, and that a writer is the
// only holder.
func TestReadersShare(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dial(t, srv).RWMutex("rw"), dial(t, srv).RWMutex("rw")
		r1, r2, r3 := acquire(t, a.Reader()), acquire(t, b.Reader()), acquire(t, b.Reader())
		locked(t, a.Writer())
		locked(t, b.Writer())
		release(t, r1)
		release(t, r3)
		locked(t, a.Writer())
		release(t, r2)
		w := acquire(t, a.Writer())
		locked(t, a.Reader())
		locked(t, b.Reader())
		locked(t, b.Writer())
		if w.Token() <= r3.Token() || w.Token() <= r2.Token() {
			t.Errorf("the writer's token %d is not above the readers' before it", w.Token())
		}
		release(t, w)
		free(t, b.Reader())
	})
}

// TestReadersQueue checks that later readers wait for a waiting writer, and are granted together
// after it.
func TestReadersQueue(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dial(t, srv).RWMutex("rw"), dial(t, srv).RWMutex("rw")
		first := acquire(t, a.Reader())
		writer := waiting(t, t.Context(), b.Writer())
		later := []<-chan *zklock.Hold{waiting(t, t.Context(), a.Reader()), waiting(t, t.Context(), b.Reader()), waiting(t, t.Context(), a.Reader())}
		last := waiting(t, t.Context(), a.Writer())
		pending(t, "after a reader", writer, last)
		pending(t, "after a waiting writer", later...)
		release(t, first)
		w := got(t, "the writer", writer)
		pending(t, "after a writer", later...)
		release(t, w)
		var readers []*zklock.Hold
		for _, r := range later {
			readers = append(readers, got(t, "a reader after the writer", r))
		}
		for _, r := range readers {
			pending(t, "the last writer", last)
			release(t, r)
		}
		release(t, got(t, "the last writer", last))
	})
}

// TestCancelledWriterLetsReadersIn checks that the readers after a cancelled writer are
// granted next to those ahead of it.
func TestCancelledWriterLetsReadersIn(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dial(t, srv).RWMutex("rw"), dial(t, srv).RWMutex("rw")
		first := acquire(t, a.Reader())
		ctx, cancel := context.WithCancel(t.Context())
		writer := waiting(t, ctx, b.Writer())
		reader, own := waiting(t, t.Context(), a.Reader()), waiting(t, t.Context(), b.Reader())
		pending(t, "after a waiting writer", reader, own)
		cancel()
		if h := <-writer; h != nil {
			t.Fatal("a cancelled writer was granted")
		}
		release(t, got(t, "a reader after the cancelled writer", reader))
		release(t, got(t, "another one", own))
		release(t, first)
	})
}

// TestOnePathIsOneQueue checks that mutexes, readers, and writers of one name exclude
// each other like exclusive and shared locks.
func TestOnePathIsOneQueue(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b := dial(t, srv), dial(t, srv)
		h := acquire(t, a.Mutex("one"))
		locked(t, b.RWMutex("one").Reader())
		locked(t, b.RWMutex("one").Writer())
		release(t, h)
		r := acquire(t, a.RWMutex("one").Reader())
		locked(t, b.Mutex("one"))
		mutex := waiting(t, t.Context(), b.Mutex("one"))
		pending(t, "a mutex after a reader", mutex)
		release(t, r)
		release(t, got(t, "the mutex", mutex))
	})
}

// TestForeignMutex checks that a reader fails next to a mutex of Curator or kazoo, which does not
// wait for readers. It does not fail next to their read-write locks.
func TestForeignMutex(t *testing.T) {
	const hex = "0123456789abcdef0123456789abcdef"
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l, op := dial(t, srv).RWMutex("foreign"), srv.Dial(t)
		allowed := dialWith(t, srv, zklock.Options{AllowForeignMutex: true}).RWMutex("foreign")
		dir := l.Reader().Path() + "/"
		free(t, l.Reader())
		for _, prefix := range []string{"_c_01234567-89ab-cdef-0123-456789abcdef-lock-", hex + "__lock__"} {
			// Other JSON is not zklock's, even with the field names of zklock. A client of zklock
			// with a custom layout waits only for entries in that layout.
			for _, data := range []string{`{"host":"web1","pid":4711}`, `{"leader":"app-7"}`,
				`{"version":"zklock 0.1.9","layout":{"exclusive":"lock-"}}`} {
				node := foreign(t, op, dir+prefix, data)
				_, err := l.Reader().Acquire(t.Context())
				wants(t, "a reader after "+prefix, err, zklock.ErrForeignMutex)
				_, err = l.Reader().TryAcquire(t.Context())
				wants(t, "trying after "+prefix, err, zklock.ErrForeignMutex)
				locked(t, allowed.Reader())
				locked(t, l.Writer())
				remove(t, op, node)
				free(t, l.Reader())
			}
		}
		writer := foreign(t, op, dir+"_c_01234567-89ab-cdef-0123-456789abcdef-__WRIT__", "10.1.2.3")
		w := waiting(t, t.Context(), l.Reader())
		pending(t, "after a writer", w)
		remove(t, op, writer)
		release(t, got(t, "the reader", w))
		for _, prefix := range []string{"_c_01234567-89ab-cdef-0123-456789abcdef-__READ__", hex + "__rlock__"} {
			node := foreign(t, op, dir+prefix, "10.1.2.3")
			free(t, l.Reader())
			locked(t, l.Writer())
			remove(t, op, node)
		}
	})
}

// TestBareReleaseRequestDoesNotRefuseReader checks that readers and writers wait for an entry whose
// data are only a release request, which do not tell which library made it. A try reports that the
// lock is held.
func TestBareReleaseRequestDoesNotRefuseReader(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		other := dialWith(t, srv, zklock.Options{Layout: zklock.WriteLockLayout()})
		for _, request := range []string{"__REVOKE__", "unlock"} {
			for _, holder := range []*zklock.Client{c, other} {
				for _, l := range []*zklock.Lock{c.RWMutex("asked").Reader(), c.RWMutex("asked").Writer()} {
					h := acquire(t, holder.Mutex("asked"))
					if _, err := op.Set(t.Context(), h.Node(), []byte(request), -1); err != nil {
						t.Fatal(err)
					}
					w := waiting(t, t.Context(), l)
					pending(t, "after "+h.Node()+" with the data "+request, w)
					locked(t, l)
					release(t, h)
					release(t, got(t, "after "+request, w))
				}
			}
		}
	})
}

// TestReaderRepliesLost checks that one entry exists while a writer or a reader holds, and none
// afterwards, whichever reply is lost.
func TestReaderRepliesLost(t *testing.T) {
	for _, op := range []string{"create2", "getChildren2", "delete", "multi"} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			a, b := dial(t, srv).RWMutex("lost"), dial(t, srv).RWMutex("lost")
			for _, l := range []*zklock.Lock{a.Writer(), a.Reader(), b.Writer()} {
				f := srv.DropReply(zktest.Match{Op: op})
				h := acquire(t, l)
				f.Stop()
				// A reader may hold next to a znode of its own that is a pending delete.
				time.Sleep(time.Second)
				if n := entries(t, b.Reader()); n != 1 {
					t.Errorf("%s lost: %d entries while held", op, n)
				}
				release(t, h)
			}
		})
	}
}

// TestDowngrade checks that readers are granted and the waiting writer is not, and that
// the hold keeps its token, which its znode shows.
func TestDowngrade(t *testing.T) {
	for _, layout := range []zklock.Layout{{}, zklock.KazooLayout(), zklock.MixedLayout(), {Prefix: "host", Exclusive: "-W-", Shared: "-R-"}} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			o := zklock.Options{Layout: layout, Owner: &zklock.Owner{Host: "here", PID: 7}}
			a, b := dialWith(t, srv, o).RWMutex("down"), dialWith(t, srv, o).RWMutex("down")
			h := acquire(t, a.Writer())
			token, node := h.Token(), h.Node()
			reader := waiting(t, t.Context(), b.Reader())
			writer := waiting(t, t.Context(), b.Writer())
			pending(t, "after a writer", reader, writer)
			if err := h.Downgrade(t.Context()); err != nil {
				t.Fatalf("%s: %v", layout, err)
			}
			r := got(t, "the reader", reader)
			pending(t, "the writer after readers", writer)
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
			pending(t, "the writer after the downgraded hold", writer)
			release(t, h)
			w := got(t, "the writer", writer)
			if w.Token() <= token {
				t.Errorf("token %d after %d", w.Token(), token)
			}
			release(t, w)
		})
	}
}

// TestDowngradeRepliesLost checks that the outcome is exact, whichever reply is lost. A waiting
// writer, which may list the queue meanwhile, continues to wait.
func TestDowngradeRepliesLost(t *testing.T) {
	for _, reply := range []bool{true, false} {
		for _, same := range []bool{true, false} {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				a, b := dial(t, srv).RWMutex("down"), dial(t, srv).RWMutex("down")
				if same {
					b = a
				}
				h := acquire(t, a.Writer())
				writer := waiting(t, t.Context(), b.Writer())
				f := drop(srv, reply, zktest.Match{Op: "multi", Path: a.Writer().Path() + "/_c_"})
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
}

// TestDowngradeWithoutLock checks that a downgrade that was not applied ends with the loss of the
// hold if the lock was deleted meanwhile.
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

// TestDowngradeErrors checks that only a writer's hold can be downgraded.
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

// TestDowngradeLost checks that a downgrade finds that the hold is lost, and that a
// downgrade without an answer ends with the hold.
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

// TestDowngradeContinuesAfterContextEnds checks that a downgrade is applied although its context
// ends. Until then, no exclusive lock re-enters, and Guard waits for it.
func TestDowngradeContinuesAfterContextEnds(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		h := acquire(t, c.RWMutex("on").Writer())
		create(t, op, "/data", nil)
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

// TestReleaseDuringDowngrade checks that a release during a downgrade leaves no entries, in
// whatever order they arrive.
func TestReleaseDuringDowngrade(t *testing.T) {
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

// TestDowngradeRefused checks that a refused downgrade changes neither the writer's hold nor the
// holds that re-entered meanwhile.
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
		reader := reenter(t, h, lock.Reader().Reentrant())
		wants(t, "without the right to create", <-refused, zk.ErrNoAuth)
		srv.Delay(0)
		writer := reenter(t, h, lock.Writer().Reentrant())
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
		// The last of its holds may be a reader's, with the rights of the writer's.
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

// TestDowngradeOfReplacedEntry checks that a writer whose entry was deleted and created again
// reports the loss in its downgrade: another writer may hold the lock by then.
func TestDowngradeOfReplacedEntry(t *testing.T) {
	tests := []struct {
		age    time.Duration
		layout zklock.Layout
	}{{}, {age: time.Second}, {layout: zklock.MixedLayout()}, {age: time.Second, layout: zklock.Layout{Exclusive: "-W-", Shared: "-R-"}}}
	for _, tt := range tests {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			way := srv.Route(t)
			way.Delay(10 * time.Millisecond) // the deletion is reported after the downgrade was called
			c := dialWith(t, srv, zklock.Options{DialContext: way.DialContext, Layout: tt.layout})
			op := srv.Dial(t)
			first := acquire(t, c.RWMutex("a").Writer())
			second := waiting(t, t.Context(), dialWith(t, srv, zklock.Options{Layout: tt.layout}).RWMutex("a").Writer())
			time.Sleep(tt.age)
			for _, node := range first.Nodes() {
				remove(t, op, node)
			}
			next := got(t, "the next writer", second)
			for _, node := range first.Nodes() {
				if _, _, err := op.Create(t.Context(), node, nil, nil, zk.ModeEphemeral); err != nil {
					t.Fatal(err)
				}
			}
			err := first.Downgrade(t.Context())
			time.Sleep(time.Second)
			if !errors.Is(err, zklock.ErrDeleted) || !errors.Is(first.Err(), zklock.ErrDeleted) || next.Err() != nil {
				t.Errorf("%+v: %v; %v while %v is held: %v", tt, err, first.Err(), next, next.Err())
			}
			release(t, next)
			_ = first.Release(t.Context())
			if err := op.Close(); err != nil { // deletes its znodes
				t.Fatal(err)
			}
			if found, err := c.Inspect(t.Context(), "a"); err != nil || len(found) != 0 {
				t.Errorf("%v, %v are left", found, err)
			}
		})
	}
}
