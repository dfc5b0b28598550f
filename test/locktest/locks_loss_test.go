package locktest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// testHolderDeleted checks that a hold that is at least 100 ms old reports within a round trip
// that another client deleted its znode. A heartbeat would be too slow for the limit here.
func testHolderDeleted(e *env) {
	l, op := e.lock(e.dial(), e.name), e.operator()
	h := e.acquire(l)
	select {
	case <-h.Done():
		e.Fatal(h.Err())
	case <-time.After(e.target.SessionTimeout / 32):
	}
	late := harness.WatchStalls(e.ctx)
	begun := time.Now()
	e.remove(op, h.Node())
	wait(e, "the loss", h.Done())
	if took, stalled := time.Since(begun), late(); took > e.target.SessionTimeout/16+stalled {
		e.Errorf("reported after %v, of which the machine stalled for %v", took, stalled)
	}
	if !errors.Is(h.Err(), zklock.ErrLost) {
		e.Errorf("%v", h.Err())
	}
	next := e.acquire(l)
	if e.token(next) <= e.token(h) {
		e.Errorf("token %d after %d", e.token(next), e.token(h))
	}
	e.release(next)
}

// testBrokenHold checks that every way to release a hold reports its loss. Another client has
// deleted a znode of the hold, and acquired and released the lock, before the holder knows.
func testBrokenHold(e *env) {
	c, op := e.dial(), e.operator()
	l, other := e.lock(c, e.name), e.lock(e.dial(), e.name)
	broken := func(h *zklock.Hold) *zklock.Hold {
		nodes := h.Nodes()
		for _, node := range []string{nodes[len(nodes)-1], nodes[0]} {
			// An All is free after both deletes.
			if err := op.Delete(e.ctx, node, -1); err != nil && !errors.Is(err, zk.ErrNoNode) {
				e.Fatal(err)
			}
		}
		if len(nodes) < 3 {
			e.release(e.acquire(other))
		}
		return h
	}
	lost := func(what string, err error) {
		e.Helper()
		if !errors.Is(err, zklock.ErrLost) || !errors.Is(err, zklock.ErrDeleted) {
			e.Errorf("%s a broken hold: %v", what, err)
		}
	}
	h := broken(e.acquire(l))
	lost("released", h.Release(e.ctx))
	lost("released again", h.Release(e.ctx))

	own := errors.New("from the function")
	err := zklock.Do(e.ctx, l, func(_ context.Context, h *zklock.Hold) error {
		broken(h)
		return own
	})
	lost("did work under", err)
	if !errors.Is(err, own) {
		e.Errorf("without the function's own error: %v", err)
	}

	h = broken(e.acquire(l))
	if err := h.ReleaseAsync(); err != nil { // the client may know the loss
		lost("released later", err)
	}
	next := e.acquire(l) // may be in one transaction with the release
	lost("released later", h.Release(e.ctx))
	e.release(next)

	// Simultaneous releases are batched.
	var all []*zklock.Hold
	for i := range 16 {
		all = append(all, e.acquire(e.lock(c, fmt.Sprint(e.name, "-", i))))
	}
	e.remove(op, all[7].Node())
	errs := make([]error, len(all))
	var done sync.WaitGroup
	for i, h := range all {
		done.Go(func() { errs[i] = h.Release(e.ctx) })
	}
	done.Wait()
	for i, err := range errs {
		if i == 7 {
			lost("released with others", err)
		} else if err != nil {
			e.Errorf("released with a broken hold: %v", err)
		}
	}
	e.empty(l)
}

// testWaiterDeleted checks that a waiter whose znode is deleted enqueues again, and is granted
// only by its new znode.
func testWaiterDeleted(e *env) {
	l, op := e.lock(e.dial(), e.name), e.operator()
	h := e.acquire(l)
	w := e.acquiring(e.ctx, e.lock(e.dial(), e.name))
	entries := e.inspect(l)
	if len(entries) != 2 {
		e.Fatalf("%v", entries)
	}
	old := entries[1].Name
	// Delete both the waiter's znode and its predecessor.
	if _, err := op.Multi(e.ctx, zk.DeleteOp(path.Join(l.Path(), old), -1), zk.DeleteOp(h.Node(), -1)); err != nil {
		e.Fatal(err)
	}
	next := wait(e, "the grant", w)
	if strings.HasSuffix(next.Node(), old) {
		e.Errorf("granted by a znode that was deleted")
	}
	if found := e.inspect(l); len(found) == 0 || !found[0].Holder || found[0].Node != next.Node() {
		e.Errorf("granted by %s, and there is %+v", next.Node(), found)
	}
	wait(e, "the loss", h.Done())
	e.release(next)
	e.empty(l)
}

// testParentDeleted checks that a waiter is granted after an operator deletes the lock's znode
// and everything below it.
func testParentDeleted(e *env) {
	l, op := e.lock(e.dial(), e.name), e.operator()
	h := e.acquire(l)
	w := e.acquiring(e.ctx, e.lock(e.dial(), e.name))
	entries := e.inspect(l)
	// Delete the waiter's entry first. A server reports each deletion of a multi separately. If
	// the waiter first received the event of its predecessor, it would be granted for a moment.
	var ops []zk.Op
	for _, entry := range slices.Backward(entries) {
		ops = append(ops, zk.DeleteOp(l.Path()+"/"+entry.Name, -1))
	}
	if _, err := op.Multi(e.ctx, append(ops, zk.DeleteOp(l.Path(), -1))...); err != nil {
		e.Fatal(err)
	}
	next := wait(e, "the grant", w)
	wait(e, "the loss", h.Done())
	if e.token(next) <= e.token(h) {
		e.Errorf("token %d after %d", e.token(next), e.token(h))
	}
	e.release(next)
}

// testSessionClosed checks that, after another client ends the session of a holder and waiter,
// the hold is lost and the waiter enqueues again.
func testSessionClosed(e *env) {
	sniffer := &sniffer{inner: e.target.DialContext}
	o := e.options()
	o.DialContext = sniffer.dial
	c := e.dialWith(o)
	first, second := e.lock(c, e.name), e.lock(c, e.name+"-second")
	holder := e.dial()
	h := e.acquire(first)
	other := e.acquire(e.lock(holder, e.name+"-second"))
	w := e.acquiring(e.ctx, second)
	session := h.Session()
	if err := sniffer.closeElsewhere(e); err != nil {
		e.Fatal(err)
	}
	wait(e, "the loss", h.Done())
	// A server may report the deletion of the entry before the end of the session.
	if err := h.Err(); !errors.Is(err, zklock.ErrLost) || !errors.Is(err, zk.ErrSessionExpired) && !errors.Is(err, zklock.ErrDeleted) {
		e.Errorf("%v", err)
	}
	pending(e, "a grant while another holds", w)
	e.release(other)
	got := wait(e, "the grant in the next session", w)
	if got.Session() == session || got.Session() == 0 {
		e.Errorf("granted in session %x, the old one was %x", got.Session(), session)
	}
	e.release(got)
}

// testCrash checks that the next client is granted after the session of a crashed client has
// expired, and not before.
func testCrash(e *env) {
	gate := newGate(e.target.DialContext)
	o := e.options()
	o.DialContext, o.SessionTimeout = gate.dial, cmp.Or(e.target.Expiry, o.SessionTimeout)
	dead := e.dialWith(o)
	h := e.acquire(e.lock(dead, e.name))
	l := e.lock(e.dial(), e.name)
	w := e.acquiring(e.ctx, l)
	gate.shut()
	got := wait(e, "the grant after the crash", w)
	// The old holder, which still runs, must have reported its loss.
	if !errors.Is(h.Err(), zklock.ErrLost) {
		e.Errorf("two hold: the old hold reports %v, with %v left", h.Err(), h.Remaining())
	}
	if e.token(got) <= e.token(h) {
		e.Errorf("token %d after %d", e.token(got), e.token(h))
	}
	e.release(got)
	gate.open()
	// The old client continues in a new session.
	e.release(e.acquire(e.lock(dead, e.name)))
	e.empty(l)
}

func testClose(e *env) {
	c := e.dial()
	l := e.lock(e.dial(), e.name)
	h := e.acquire(e.lock(c, e.name))
	ctx, cancel := context.WithCancel(e.ctx)
	defer cancel()
	failed := make(chan error, 1)
	w := e.acquiring(e.ctx, l)
	go func() { // ends when c is closed
		_, err := e.lock(c, e.name).Acquire(ctx)
		failed <- err
	}()
	e.until("the second waiter is in the queue", func() bool { return e.entries(l) == 3 })
	if err := c.Close(); err != nil {
		e.Fatal(err)
	}
	if err := wait(e, "the waiter's failure", failed); !errors.Is(err, zklock.ErrClosed) {
		e.Errorf("a waiter of a closed client: %v", err)
	}
	if !errors.Is(h.Err(), zklock.ErrLost) || !errors.Is(h.Err(), zklock.ErrClosed) {
		e.Errorf("a hold of a closed client: %v", h.Err())
	}
	if _, err := e.lock(c, e.name).Acquire(e.ctx); !errors.Is(err, zklock.ErrClosed) {
		e.Errorf("acquire after close: %v", err)
	}
	e.release(wait(e, "the grant after the close", w))
	if err := c.Close(); err != nil {
		e.Errorf("closing again: %v", err)
	}
	e.empty(l)
}

// testSharedSession checks that closing a client on a shared session deletes its entries
// and keeps the session.
func testSharedSession(e *env) {
	shared := e.operator()
	o := e.options()
	c := zklock.New(shared, o)
	l := e.lock(e.dial(), e.name)
	h := e.acquire(e.lock(c, e.name))
	if err := c.Close(); err != nil {
		e.Fatal(err)
	}
	if h.Err() == nil || e.entries(l) != 0 {
		e.Errorf("after the close: %v, %d entries", h.Err(), e.entries(l))
	}
	if _, _, err := shared.Get(e.ctx, "/"); err != nil {
		e.Errorf("the shared session: %v", err)
	}
}

// testOtherLayouts checks that a mutex waits for all predecessors in any layout.
func testOtherLayouts(e *env) {
	l, op := e.lock(e.dial(), e.name), e.operator()
	e.release(e.acquire(l)) // creates the parents
	hex := "0123456789abcdef0123456789abcdef"
	for _, prefix := range []string{
		"_c_01234567-89ab-cdef-0123-456789abcdef-lock-",
		"_c_" + hex + "-lock-",
		hex + "__lock__",
		hex + "__rlock__",
		"_c_01234567-89ab-cdef-0123-456789abcdef-__READ__",
		"_c_01234567-89ab-cdef-0123-456789abcdef-latch-",
	} {
		node := e.create(op, l.Path()+"/"+prefix, []byte("10.1.2.3"), zk.ModeEphemeralSequential)
		if _, err := l.TryAcquire(e.ctx); !errors.Is(err, zklock.ErrLocked) {
			e.Errorf("after %s: %v", prefix, err)
		}
		w := e.acquiring(e.ctx, l)
		pending(e, "a grant after "+prefix, w)
		e.remove(op, node)
		e.release(wait(e, "the grant", w))
	}
}

// testWriterBecomesReader checks that a waiter for another library's writer waits for its
// reader's entry after a downgrade. The downgrade creates the reader's entry with the same
// number before it deletes the writer's entry.
func testWriterBecomesReader(e *env) {
	l, op := e.lock(e.dial(), e.name), e.operator()
	e.release(e.acquire(l))
	base := l.Path() + "/_c_01234567-89ab-cdef-0123-456789abcdef-"
	writer := e.create(op, base+"__WRIT__", nil, zk.ModeEphemeralSequential)
	w := e.acquiring(e.ctx, l)
	e.until("the waiter watches the writer", func() bool { return e.entries(l) == 2 })
	reader := base + "__READ__" + writer[len(writer)-10:]
	e.create(op, reader, nil, zk.ModeEphemeral)
	e.remove(op, writer)
	// After two round trips of the client, it has handled the deletion.
	for range 2 {
		e.entries(l)
	}
	pending(e, "a grant next to a reader", w)
	e.remove(op, reader)
	e.release(wait(e, "the grant", w))
}

// testMalformed checks that no client is granted next to an entry whose sequence number has
// overflowed.
func testMalformed(e *env) {
	l, op := e.lock(e.dial(), e.name), e.operator()
	e.release(e.acquire(l))
	bad := l.Path() + "/_c_01234567-89ab-cdef-0123-456789abcdef-lock--2147483648"
	e.create(op, bad, nil, zk.ModeEphemeral)
	if _, err := l.Acquire(e.ctx); !errors.Is(err, zklock.ErrSequenceExhausted) {
		e.Errorf("next to a malformed entry: %v", err)
	}
	for _, harmless := range []string{"lock-", "lock-99999999999"} {
		e.create(op, l.Path()+"/"+harmless, nil, zk.ModeEphemeral)
	}
	e.remove(op, bad)
	e.release(e.acquire(l))
}

func testHooks(e *env) {
	var mu sync.Mutex // guards got
	got := map[string]zklock.Event{}
	note := func(name string) func(zklock.Event) {
		return func(ev zklock.Event) {
			mu.Lock()
			defer mu.Unlock()
			got[name] = ev
		}
	}
	o := e.options()
	o.OnWait, o.OnAcquire, o.OnRelease, o.OnLost = note("wait"), note("acquire"), note("release"), note("lost")
	l, op := e.lock(e.dialWith(o), e.name), e.operator()
	other := e.acquire(e.lock(e.dial(), e.name))
	w := e.acquiring(e.ctx, l)
	seen := func(name string) func() bool {
		return func() bool {
			mu.Lock()
			defer mu.Unlock()
			_, ok := got[name]
			return ok
		}
	}
	e.until("OnWait", seen("wait"))
	e.release(other)
	h := wait(e, "the grant", w)
	e.until("OnAcquire", seen("acquire"))
	e.release(h)
	e.until("OnRelease", seen("release"))
	h = e.acquire(l)
	e.remove(op, h.Node())
	e.until("OnLost", seen("lost"))
	mu.Lock()
	defer mu.Unlock()
	if ev := got["wait"]; ev.Ahead != 1 || ev.Blocker.Owner.PID == 0 || ev.Path != l.Path() {
		e.Errorf("OnWait: %+v", ev)
	}
	if ev := got["lost"]; ev.Token != e.token(h) || !errors.Is(ev.Err, zklock.ErrLost) {
		e.Errorf("OnLost: %+v", ev)
	}
}

// testNoPermission checks that an acquire without permission returns an error.
func testNoPermission(e *env) {
	op := e.operator()
	dir := "/" + e.name
	if _, _, err := op.Create(e.ctx, dir, nil, zk.ReadACL(), zk.ModePersistent); err != nil {
		e.Fatal(err)
	}
	begun := time.Now()
	if _, err := e.dial().Mutex(dir).Acquire(e.ctx); !errors.Is(err, zk.ErrNoAuth) {
		e.Errorf("%v after %v", err, time.Since(begun))
	}
	if _, err := e.dial().Mutex(dir + "/below").Acquire(e.ctx); !errors.Is(err, zk.ErrNoAuth) {
		e.Errorf("%v after %v", err, time.Since(begun))
	}
}
