package locktest

import (
	"context"
	"errors"
	"path"
	"slices"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

func testAcquire(e *env) {
	l := e.lock(e.dial(), e.name)
	h := e.acquire(l)
	if e.token(h) <= 0 || h.Err() != nil || h.Session() == 0 {
		e.Errorf("a fresh hold: token %d, session %x, %v", e.token(h), h.Session(), h.Err())
	}
	if r := h.Remaining(); r <= 0 || r > 25*e.target.SessionTimeout {
		e.Errorf("remaining %v", r)
	}
	pending(e, "Done", h.Done())
	e.release(h)
	wait(e, "Done", h.Done())
	if !errors.Is(h.Err(), zklock.ErrReleased) || errors.Is(h.Err(), zklock.ErrLost) || h.Remaining() != 0 {
		e.Errorf("after the release: %v, %v", h.Err(), h.Remaining())
	}
	e.release(h) // again
	if n := e.entries(l); n != 0 {
		e.Errorf("%d entries are left", n)
	}
	again := e.acquire(l)
	if e.token(again) <= e.token(h) {
		e.Errorf("token %d after %d", e.token(again), e.token(h))
	}
	e.release(again)
}

func testTry(e *env) {
	a, b := e.lock(e.dial(), e.name), e.lock(e.dial(), e.name)
	h, err := a.TryAcquire(e.ctx)
	if err != nil {
		e.Fatal(err)
	}
	for _, l := range []*zklock.Lock{a, b} {
		if _, err := l.TryAcquire(e.ctx); !errors.Is(err, zklock.ErrLocked) {
			e.Errorf("trying a held lock: %v", err)
		}
	}
	e.until("the tries have left the queue", func() bool { return e.entries(a) == 1 })
	e.release(h)
	h, err = b.TryAcquire(e.ctx)
	if err != nil {
		e.Fatal(err)
	}
	e.release(h)
}

// testOrder checks that grants are in the order of arrival, for one and for several clients.
func testOrder(e *env) {
	one, two := e.lock(e.dial(), e.name), e.lock(e.dial(), e.name)
	h := e.acquire(one)
	var waiters []<-chan *zklock.Hold
	for i := range 6 {
		waiters = append(waiters, e.acquiring(e.ctx, []*zklock.Lock{one, two}[i%2]))
	}
	last := e.token(h)
	for i, w := range waiters {
		for _, later := range waiters[i:] {
			pending(e, "a grant", later)
		}
		e.release(h)
		h = wait(e, "the next grant", w)
		if e.token(h) <= last {
			e.Errorf("token %d after %d", e.token(h), last)
		}
		last = e.token(h)
	}
	e.release(h)
	e.empty(one)
}

// testTokens checks that tokens grow even if the lock's znode is deleted in between, which
// resets the sequence numbers.
func testTokens(e *env) {
	l, op := e.lock(e.dial(), e.name), e.operator()
	last := int64(0)
	for range 5 {
		h := e.acquire(l)
		if e.token(h) <= last {
			e.Fatalf("token %d after %d", e.token(h), last)
		}
		last = e.token(h)
		e.release(h)
		e.remove(op, l.Path())
	}
}

func testCancel(e *env) {
	a, b := e.lock(e.dial(), e.name), e.lock(e.dial(), e.name)
	h := e.acquire(a)
	ctx, cancel := context.WithCancel(e.ctx)
	w := e.acquiring(ctx, b)
	behind := e.acquiring(e.ctx, a)
	cancel()
	if wait(e, "the cancelled acquire", w) != nil {
		e.Fatal("a cancelled acquire was granted while another holds")
	}
	e.until("the cancelled entry is gone", func() bool { return e.entries(a) == 2 })
	pending(e, "a grant after a cancelled waiter", behind)
	e.release(h)
	e.release(wait(e, "the grant", behind))
	if _, err := b.Acquire(ctx); !errors.Is(err, context.Canceled) {
		e.Errorf("acquire with a context that is done: %v", err)
	}
	short, stop := context.WithTimeout(e.ctx, -time.Second)
	defer stop()
	if _, err := b.TryAcquire(short); !errors.Is(err, context.DeadlineExceeded) {
		e.Errorf("try with a context that is done: %v", err)
	}
	e.empty(a)
}

// testReleaseContext checks that the znode is deleted even if the release's context ends.
func testReleaseContext(e *env) {
	l := e.lock(e.dial(), e.name)
	h := e.acquire(l)
	done, cancel := context.WithCancel(e.ctx)
	cancel()
	if err := h.Release(done); err != nil && !errors.Is(err, context.Canceled) {
		e.Error(err)
	}
	if !errors.Is(h.Err(), zklock.ErrReleased) {
		e.Errorf("after the release: %v", h.Err())
	}
	e.empty(l)
	e.release(h) // the release is confirmed now
}

func testDo(e *env) {
	l := e.lock(e.dial(), e.name)
	want := errors.New("from the function")
	err := zklock.Do(e.ctx, l, func(ctx context.Context, h *zklock.Hold) error {
		if h.Err() != nil || ctx.Err() != nil {
			e.Errorf("inside: %v, %v", h.Err(), ctx.Err())
		}
		if _, err := l.TryAcquire(e.ctx); !errors.Is(err, zklock.ErrLocked) {
			e.Errorf("trying inside: %v", err)
		}
		return want
	})
	if err != want {
		e.Errorf("Do returned %v", err)
	}
	e.empty(l)
	op := e.operator()
	err = zklock.Do(e.ctx, l, func(ctx context.Context, h *zklock.Hold) error {
		if err := op.Delete(e.ctx, h.Node(), -1); err != nil {
			e.Error(err)
		}
		wait(e, "the loss", ctx.Done())
		if !errors.Is(context.Cause(ctx), zklock.ErrLost) {
			e.Errorf("the context's cause is %v", context.Cause(ctx))
		}
		return nil
	})
	if !errors.Is(err, zklock.ErrLost) {
		e.Errorf("Do returned %v though the hold was lost", err)
	}
	func() {
		defer func() { recover() }() // the panic is this test's own
		zklock.Do(e.ctx, l, func(context.Context, *zklock.Hold) error { panic("in the function") })
	}()
	e.empty(l)
}

func testContext(e *env) {
	l := e.lock(e.dial(), e.name)
	h := e.acquire(l)
	ctx, cancel := h.Context(e.ctx)
	other, stop := h.Context(e.ctx)
	cancel()
	if ctx.Err() == nil || other.Err() != nil {
		e.Errorf("after one cancel: %v, %v", ctx.Err(), other.Err())
	}
	e.release(h)
	wait(e, "the context's end", other.Done())
	if !errors.Is(context.Cause(other), zklock.ErrReleased) {
		e.Errorf("its cause is %v", context.Cause(other))
	}
	stop()
	late, stop := h.Context(e.ctx)
	defer stop()
	if late.Err() == nil {
		e.Error("a context of an ended hold is alive")
	}
}

func testVerify(e *env) {
	l, op := e.lock(e.dial(), e.name), e.operator()
	h := e.acquire(l)
	for range 3 {
		if err := h.Verify(e.ctx); err != nil {
			e.Fatal(err)
		}
	}
	e.remove(op, h.Node())
	if err := h.Verify(e.ctx); !errors.Is(err, zklock.ErrLost) {
		e.Errorf("verifying a hold whose znode is gone: %v", err)
	}
	if !errors.Is(h.Err(), zklock.ErrLost) {
		e.Errorf("and then: %v", h.Err())
	}
	if err := h.Release(e.ctx); !errors.Is(err, zklock.ErrLost) {
		e.Errorf("releasing a lost hold: %v", err)
	}
	released := e.acquire(l)
	e.release(released)
	if err := released.Verify(e.ctx); !errors.Is(err, zklock.ErrReleased) {
		e.Errorf("verifying a released hold: %v", err)
	}
}

// testInspect checks that Inspect shows the queue in order, with owners and strays.
func testInspect(e *env) {
	o := e.options()
	o.Owner = &zklock.Owner{Host: "here", PID: 7, Command: "job\x1b[31m"}
	l, op := e.lock(e.dialWith(o), e.name), e.operator()
	if entries, err := l.Inspect(e.ctx); err != nil || len(entries) != 0 {
		e.Errorf("an unused lock: %v, %v", entries, err)
	}
	h := e.acquire(l)
	w := e.acquiring(e.ctx, e.lock(e.dial(), e.name))
	e.create(op, l.Path()+"/stray", []byte("what\x07is this"), zk.ModePersistent)
	entries := e.inspect(l)
	if len(entries) != 3 {
		e.Fatalf("%v", entries)
	}
	first := entries[0]
	if !first.Holder || first.Token != e.token(h) || first.Session != h.Session() || first.Owner.Host != "here" || first.Owner.Command != `job\x1b[31m` || first.Owner.Since.IsZero() || time.Since(first.Since) > time.Hour {
		e.Errorf("the holder: %+v", first)
	}
	modes := []zklock.Mode{first.Mode, entries[1].Mode, entries[2].Mode}
	if entries[1].Holder || !slices.Equal(modes, []zklock.Mode{zklock.Exclusive, zklock.Exclusive, zklock.Stray}) || entries[2].Data != `what\ais this` {
		e.Errorf("the others: %+v", entries[1:])
	}
	e.release(h)
	e.release(wait(e, "the grant next to a stray", w))
}

// testSoleUse checks that a client waits for another client's entry whose number follows the
// client's last one. The client has used the lock alone, so that it no longer lists the queue.
// Then the lock's znode was deleted and created again.
func testSoleUse(e *env) {
	l, other, op := e.lock(e.dial(), e.name), e.lock(e.dial(), e.name), e.operator()
	for round := range 3 {
		var last string
		for range 6 {
			h := e.acquire(l)
			last = h.Node()
			e.release(h)
		}
		for err := error(zk.ErrNotEmpty); err != nil; { // the delete of the entry may be in flight
			if err = op.Delete(e.ctx, path.Dir(last), -1); err != nil && !errors.Is(err, zk.ErrNotEmpty) {
				e.Fatal(err)
			}
		}
		var h *zklock.Hold
		for number := ""; number != last[len(last)-10:]; {
			if h != nil {
				e.release(h)
			}
			h = e.acquire(other)
			number = h.Node()[len(h.Node())-10:]
		}
		ctx, cancel := context.WithTimeout(e.ctx, e.target.SessionTimeout/16)
		if next, err := l.Acquire(ctx); err == nil {
			e.Fatalf("round %d: %s is held, and so is %s", round, next.Node(), h.Node())
		}
		cancel()
		e.release(h)
	}
}
