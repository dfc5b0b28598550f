package zk

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/zklock/zklock/internal/session"
)

// call is one request of this client with what is to be done at its end. Calls
// are used again: a request in the steady state allocates none.
type call struct {
	session.Call
	client *Client
	path   string       // as the user gave it
	done   func(Result) // of Go; nil if somebody waits
	// inOrder, if not nil, runs in the order of the wire before the waiter is
	// woken: the place to register a watch.
	inOrder func(*call)

	ready  chan struct{} // gets one value when the waiter's result is there
	waiter atomic.Int32
	result Result
	watch  <-chan Event
}

// What a call's waiter is about.
const (
	waiterNone int32 = iota // of Go
	waiterWaits
	waiterGone // gave up; the call is dropped at its end
	waiterDone // the result is there
)

// newCall takes a call from the client's store. The store is the client's own:
// a channel must not move between the bubbles of tests.
func (c *Client) newCall() *call {
	if k, ok := c.calls.Get().(*call); ok {
		return k
	}
	k := &call{client: c, ready: make(chan struct{}, 1)}
	k.Done = k.finish
	return k
}

// drop gives a call back to the store.
func (k *call) drop() {
	k.Reset()
	k.path, k.done, k.inOrder, k.watch = "", nil, nil, nil
	k.result = Result{}
	k.waiter.Store(waiterNone)
	k.client.calls.Put(k)
}

// prepare checks op and fills the call with it. Nothing of a failing op is kept.
func (k *call) prepare(op *Op) error {
	k.path = op.op.Path
	k.Op = op.op
	if err := op.check(); err != nil {
		return err
	}
	root := k.client.root
	if root == "" || op.absolute {
		return nil
	}
	if k.path != "" {
		k.Op.Path = root.add(k.path)
	}
	if len(op.op.Sub) > 0 {
		// A copy: the user may use the same Op again.
		k.Op.Sub = append([]session.Op(nil), op.op.Sub...)
		for i := range k.Op.Sub {
			k.Op.Sub[i].Path = root.add(k.Op.Sub[i].Path)
		}
	}
	return nil
}

// refused fails a call that is not to be sent, in order with what is told.
func (k *call) refused(err error) {
	res := Result{Err: &Error{Op: opName(k.Op.Code), Path: k.path, Err: err, applied: AppliedNo}}
	c, done := k.client, k.done
	k.drop()
	if done != nil {
		c.mark(func() { done(res) })
	}
}

// mark puts something to be told behind what is there.
func (c *Client) mark(m any) {
	c.mu.Lock()
	c.core.Mark(m)
	spawn := !c.delivering
	c.mu.Unlock()
	if spawn {
		go c.deliver() // ends when nothing is left to tell
	}
}

// finish is called by the deliverer, in order, when the call is over.
func (k *call) finish() {
	if k.waiter.Load() != waiterNone {
		k.finishWaiter()
		return
	}
	done := k.done
	if done == nil {
		k.drop()
		return
	}
	res := convert(k.client.root, &k.Op, k.path, &k.Result)
	k.drop() // before done, which may need a call
	done(res)
}

// finishWaiter hands the result to the one who waits, if he still does.
func (k *call) finishWaiter() {
	k.result = convert(k.client.root, &k.Op, k.path, &k.Result)
	if k.waiter.Load() == waiterWaits && k.inOrder != nil {
		k.inOrder(k)
	}
	if k.waiter.CompareAndSwap(waiterWaits, waiterDone) {
		k.ready <- struct{}{} // has room: one value a call
		return
	}
	k.drop()
}

// do sends op and waits for its answer or the end of ctx. use is given the call
// while it still holds the result; it may be nil.
func (c *Client) do(ctx context.Context, op *Op, inOrder func(*call), use func(*call)) (Result, error) {
	fail := func(err error, applied Outcome) (Result, error) {
		return Result{}, &Error{Op: opName(op.op.Code), Path: op.op.Path, Err: err, applied: applied}
	}
	if err := ctx.Err(); err != nil {
		return fail(err, AppliedNo)
	}
	k := c.newCall()
	if err := k.prepare(op); err != nil {
		k.drop()
		return fail(err, AppliedNo)
	}
	k.inOrder = inOrder
	// From submit on the call is shared with the deliverer; waiter says whose
	// it is at the end: the one who comes second drops it.
	k.waiter.Store(waiterWaits)
	c.submit(k, 0)
	select {
	case <-k.ready:
	case <-ctx.Done():
		if c.withdraw(k) {
			k.drop()
			return fail(ctx.Err(), AppliedNo)
		}
		if k.waiter.CompareAndSwap(waiterWaits, waiterGone) {
			return fail(ctx.Err(), AppliedUnknown) // finish will drop it
		}
		<-k.ready // the result came first
	}
	res := k.result
	if use != nil {
		use(k)
	}
	k.drop()
	return res, res.Err
}

// noEpoch is the epoch of no session: they count up.
const noEpoch = math.MaxUint64

// submit queues a call for the session last told of, which must be the one with
// this id unless that is 0.
func (c *Client) submit(k *call, session int64) {
	c.mu.Lock()
	epoch := c.epoch
	if session != 0 && (c.shown.SessionID != session || c.shown.State == Expired) {
		epoch = noEpoch
	}
	c.core.Submit(&k.Call, epoch)
	if c.link != nil && c.core.HasOutput() {
		c.writable.Signal()
	}
	spawn := c.core.HasNotices() && !c.delivering
	c.mu.Unlock()
	if spawn {
		go c.deliver() // ends when nothing is left to tell
	}
}

// withdraw takes back a call that was not sent.
func (c *Client) withdraw(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.core.Withdraw(&k.Call)
}
