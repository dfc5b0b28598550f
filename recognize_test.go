package zklock_test

import (
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

const anyLock = "_c_01234567-89ab-cdef-0123-456789abcdef-lock-"

// TestInspectOddNames: locks that are called as a semaphore's znodes are no
// semaphore's, and what is among permits and is none holds nothing.
func TestInspectOddNames(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		app, below := acquire(t, c.Mutex("app")), acquire(t, c.Mutex("app/locks"))
		found, err := c.Inspect(t.Context(), "app")
		if err != nil || len(found) != 1 || found[0].Node != app.Node() || !found[0].Holder || found[0].Mode != zklock.Exclusive {
			t.Errorf("a mutex above one called locks: %+v, %v", found, err)
		}
		release(t, app)
		release(t, below)
		permit := acquire(t, c.Semaphore("s", 2))
		odd := strange(t, op, "/zklock/s/leases/"+anyLock, "odd")
		for _, look := range []func() ([]zklock.Entry, error){
			func() ([]zklock.Entry, error) { return c.Semaphore("s", 2).Inspect(t.Context()) },
			func() ([]zklock.Entry, error) { return c.Inspect(t.Context(), "s") },
		} {
			found, err := look()
			if err != nil || len(found) != 2 || found[0].Node != permit.Node() || !found[0].Holder || found[1].Mode != zklock.Stray || found[1].Holder {
				t.Errorf("a mutex's entry among permits: %+v, %v", found, err)
			}
		}
		if asked, err := c.Semaphore("s", 2).Revoke(t.Context()); err != nil || len(asked) != 1 {
			t.Errorf("asked %+v, %v", asked, err)
		}
		two := acquire(t, c.Semaphore("s", 2)) // as nobody counts the odd one
		remove(t, op, odd)
		release(t, permit)
		release(t, two)
	})
}

// TestInspectInParent: beside the queues in one parent, other kinds of locks are
// found by their names as well.
func TestInspectInParent(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dialWith(t, srv, zklock.Options{Layout: zklock.Layout{Exclusive: "_lock_", InParent: true}})
		for _, l := range []*zklock.Lock{c.Mutex("/office/mutex"), c.Semaphore("/office/sem", 3), c.NodeLock("/office/node")} {
			if found, err := c.Inspect(t.Context(), l.Path()); err != nil || len(found) != 0 {
				t.Errorf("%s before it is used: %+v, %v", l, found, err)
			}
			h := acquire(t, l)
			found, err := c.Inspect(t.Context(), l.Path())
			if err != nil || len(found) != 1 || found[0].Node != h.Node() || !found[0].Holder || found[0].Path != l.Path() {
				t.Errorf("%s: %+v, %v", l, found, err)
			}
			release(t, h)
		}
	})
}

// TestInspectUnreadable: a znode that may not be read hides no others; who is asked
// for the lock back must be readable.
func TestInspectUnreadable(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		secret := []zk.ACL{{Perms: zk.PermWrite, Scheme: "world", ID: "anyone"}}
		hidden := func(prefix string) string {
			node, _, err := op.Create(t.Context(), prefix, []byte("unseen"), secret, zk.ModeEphemeralSequential)
			if err != nil {
				t.Fatal(err)
			}
			return node
		}
		l := c.Mutex("a")
		h := acquire(t, l)
		waiter, stray := hidden("/zklock/a/"+anyLock), hidden("/zklock/a/config")
		for name, look := range map[string]func() ([]zklock.Entry, error){
			"by the lock": func() ([]zklock.Entry, error) { return l.Inspect(t.Context()) },
			"by the name": func() ([]zklock.Entry, error) { return c.Inspect(t.Context(), "a") },
		} {
			found, err := look()
			if err != nil || len(found) != 3 || found[0].Token != h.Token() || found[1].Node != waiter || found[1].Data != "" || found[2].Node != stray {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
		}
		if asked, err := l.Revoke(t.Context()); err != nil || len(asked) != 1 || asked[0].Node != h.Node() {
			t.Errorf("asked %+v, %v", asked, err)
		}
		release(t, h)
		asked, err := l.Revoke(t.Context())
		wants(t, "asking whom one can't see", err, zk.ErrNoAuth)
		if len(asked) != 0 {
			t.Errorf("asked %+v", asked)
		}
		remove(t, op, waiter)
		remove(t, op, stray)
		node := hidden("/node")
		_, err = c.NodeLock(node).Inspect(t.Context())
		wants(t, "a node lock that can't be seen", err, zk.ErrNoAuth)
		remove(t, op, node)
	})
}
