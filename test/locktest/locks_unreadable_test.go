package locktest

import (
	"cmp"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// testUnreadableBlocker: servers tell nobody of the end of a znode that he may not
// read, so that a waiter's watch on whoever is ahead can come to nothing. The
// waiter looks again by itself: what it waits for is granted within two timeouts.
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
	// The right to delete is the parent's to give.
	if err := h.Release(e.ctx); err != nil {
		e.Logf("the release: %v", err) // the hold may have been found out before
	}
	if next := wait(e, "the next grant", got); next != nil {
		e.release(next)
	}
	// A busy machine may be late, but not by the pause of a session without a limit.
	if d, stalled := time.Since(begun), late(); d > 2*o.SessionTimeout+5*time.Second+stalled {
		e.Errorf("granted after %v, of which the machine stood still for %v, with a session timeout of %v", d, stalled, o.SessionTimeout)
	}
}
