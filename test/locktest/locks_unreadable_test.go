package locktest

import (
	"cmp"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// testUnreadableBlocker checks that a waiter is granted within two session timeouts after the
// release of a predecessor that it may not read. Servers send no events of such a znode, so the
// waiter must check its predecessor again.
func testUnreadableBlocker(e *env) {
	op := e.operator()
	if err := op.AddAuth(e.ctx, "digest", []byte("operator:secret")); err != nil {
		e.Fatal(err)
	}
	o := e.options()
	o.SessionTimeout = cmp.Or(e.target.Expiry, o.SessionTimeout)
	holder, waiter := e.dial(), e.dialWith(o)
	h := e.acquire(e.lock(holder, e.name))
	got := e.acquiring(e.ctx, e.lock(waiter, e.name))
	e.until("the waiter waits", func() bool { return e.waits.Load() > 0 })
	if _, err := op.SetACL(e.ctx, h.Node(), zk.CreatorACL(), -1); err != nil {
		e.Fatal(err)
	}
	late := harness.WatchStalls(e.ctx)
	begun := time.Now()
	// The parent's ACL permits the delete.
	if err := h.Release(e.ctx); err != nil {
		e.Logf("the release: %v", err)
	}
	if next := wait(e, "the next grant", got); next != nil {
		e.release(next)
	}
	// The limit is less than the longest interval of these checks.
	if d, stalled := time.Since(begun), late(); d > 2*o.SessionTimeout+5*time.Second+stalled {
		e.Errorf("granted after %v, of which the machine stalled for %v, with a session timeout of %v", d, stalled, o.SessionTimeout)
	}
}
