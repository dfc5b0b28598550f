package zk

import (
	"context"
	"errors"
	"math"
	"sync/atomic"

	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// call is one request of this client and the action at its end. Calls are reused, so
// a request in the steady state does not allocate one.
type call struct {
	session.Call
	client *Client
	path   string       // as the user gave it
	done   func(Result) // of Go; nil if do waits for the result
	// sessionID and following are used by GoAll until the call is submitted.
	sessionID int64
	following *call
	// inOrder, if not nil, runs in wire order before do is woken up. It registers
	// watches.
	inOrder func(*call)

	ready  chan struct{} // receives one value when the result is available
	waiter atomic.Int32
	result Result
	watch  <-chan Event
}

// The states of the caller of do, which waits for the result.
const (
	waiterNone int32 = iota // of Go
	waiterWaits
	waiterGone // do gave up; finish releases the call
	waiterDone // the result is available
)

// newCall takes a call from the client's pool. Each client has its own pool, because
// a channel must not move between the synctest bubbles of tests.
func (c *Client) newCall() *call {
	if k, ok := c.calls.Get().(*call); ok {
		return k
	}
	k := &call{client: c, ready: make(chan struct{}, 1)}
	k.Done = k.finish
	return k
}

// release returns a call to the pool.
func (k *call) release() {
	k.Reset()
	k.path, k.done, k.inOrder, k.watch = "", nil, nil, nil
	k.result = Result{}
	k.waiter.Store(waiterNone)
	k.client.calls.Put(k)
}

// prepare checks op and copies it into the call.
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
	if w := op.op.Watches; w != nil {
		k.Op.Watches = &wire.SetWatches{RelativeZxid: w.RelativeZxid, ChildWatches: w.ChildWatches,
			DataWatches: root.addAll(w.DataWatches), ExistWatches: root.addAll(w.ExistWatches)}
	}
	if len(op.op.Sub) > 0 {
		// A copy: the user may reuse the same Op.
		k.Op.Sub = append([]session.Op(nil), op.op.Sub...)
		for i := range k.Op.Sub {
			if op.absoluteSub == nil || !op.absoluteSub[i] {
				k.Op.Sub[i].Path = root.add(k.Op.Sub[i].Path)
			}
		}
	}
	return nil
}

// refuse fails a call that must not be sent. It delivers the failure in order with
// the other results.
func (k *call) refuse(err error) {
	res := Result{Err: &Error{Op: opName(k.Op.Code), Path: k.path, Err: err, applied: AppliedNo}}
	c, done := k.client, k.done
	k.release()
	if done != nil {
		c.mark(func() { done(res) })
	}
}

// mark appends m to the items to deliver.
func (c *Client) mark(m any) {
	c.mu.Lock()
	c.core.Mark(m)
	spawn := !c.delivering
	c.mu.Unlock()
	if spawn {
		go c.deliver() // ends when nothing is left to deliver
	}
}

// finish is called by the delivering goroutine, in order, when the call is done.
func (k *call) finish() {
	if k.waiter.Load() != waiterNone {
		k.finishWaiter()
		return
	}
	done := k.done
	if done == nil {
		k.release()
		return
	}
	res := convert(k.client.root, &k.Op, k.path, &k.Result)
	k.release() // before done, which may need a call
	done(res)
}

// finishWaiter passes the result to do, if it still waits.
func (k *call) finishWaiter() {
	k.result = convert(k.client.root, &k.Op, k.path, &k.Result)
	if k.waiter.Load() == waiterWaits && k.inOrder != nil {
		k.inOrder(k)
	}
	if k.waiter.CompareAndSwap(waiterWaits, waiterDone) {
		k.ready <- struct{}{} // does not block: one value per call
		return
	}
	k.release()
}

// do sends op and waits for its answer or the end of ctx. use, if not nil, is called
// while the call still holds the result.
func (c *Client) do(ctx context.Context, op *Op, inOrder func(*call), use func(*call)) (Result, error) {
	return c.doIn(ctx, 0, op, inOrder, use)
}

// doIn is do for one session, as [Client.GoIn]. It sends again what an old server did not
// know.
func (c *Client) doIn(ctx context.Context, session int64, op *Op, inOrder func(*call), use func(*call)) (Result, error) {
	return c.doEpoch(ctx, c.epochNow(session), op, inOrder, use)
}

// doEpoch is doIn for the session of an epoch.
func (c *Client) doEpoch(ctx context.Context, epoch uint64, op *Op, inOrder func(*call),
	use func(*call)) (Result, error) {
	for {
		res, resend, err := c.doOnce(ctx, epoch, op, inOrder, use)
		if !resend {
			return res, err
		}
	}
}

// doOnce sends op once. It reports whether op must be sent again.
func (c *Client) doOnce(ctx context.Context, epoch uint64, op *Op, inOrder func(*call), use func(*call)) (res Result, resend bool, err error) {
	k, err := c.newWaiter(ctx, op)
	if err != nil {
		return Result{}, false, err
	}
	k.inOrder = inOrder
	c.mu.Lock()
	c.submitLocked(k, epoch)
	res, resend = k.await(ctx, op, use)
	return res, resend, res.Err
}

// doAll does the operations and stores their results. If ctx ends before, it returns an error. Its
// outcome is AppliedNo only if none of the operations may be applied.
func (c *Client) doAll(ctx context.Context, ops []Op, results []Result) error {
	todo := make([]int, len(ops)) // the indexes of the operations without a result
	for i := range ops {
		todo[i] = i
	}
	var ended *Op // an operation without a result because ctx ended
	for len(todo) > 0 && ended == nil {
		calls := make([]*call, len(todo))
		for i, at := range todo {
			calls[i], results[at].Err = c.newWaiter(ctx, &ops[at])
		}
		c.mu.Lock()
		epoch := c.epochOf(0)
		for _, k := range calls {
			if k != nil {
				c.core.Submit(&k.Call, epoch)
			}
		}
		c.flush()
		again := todo[:0]
		for i, at := range todo {
			if k := calls[i]; k != nil {
				var resend bool
				if results[at], resend = k.await(ctx, &ops[at], nil); resend {
					again = append(again, at)
				}
			}
			if err := ctx.Err(); err != nil && errors.Is(results[at].Err, err) {
				ended = &ops[at]
			}
		}
		todo = again
	}
	if ended == nil {
		return nil
	}
	outcome := AppliedNo
	for _, r := range results {
		if Applied(r.Err) != AppliedNo {
			outcome = AppliedUnknown
		}
	}
	return ended.failed(ctx.Err(), outcome)
}

// newWaiter returns a call for a caller that waits for the result, see await.
func (c *Client) newWaiter(ctx context.Context, op *Op) (*call, error) {
	if err := ctx.Err(); err != nil {
		return nil, op.failed(err, AppliedNo)
	}
	k := c.newCall()
	if err := k.prepare(op); err != nil {
		k.release()
		return nil, op.failed(err, AppliedNo)
	}
	k.waiter.Store(waiterWaits)
	return k, nil
}

// failed returns the error of an operation without an answer.
func (op *Op) failed(err error, applied Outcome) error {
	return &Error{Op: opName(op.op.Code), Path: op.op.Path, Err: err, applied: applied}
}

// await waits for the result of a submitted call or the end of ctx, and releases the call. use,
// if not nil, is called while the call still holds the result. Since it was submitted, the call
// is shared with the delivering goroutine. waiter decides which of the two releases it: the one
// that finishes last.
func (k *call) await(ctx context.Context, op *Op, use func(*call)) (res Result, resend bool) {
	select {
	case <-k.ready:
	case <-ctx.Done():
		if k.client.withdraw(k) {
			k.release()
			return Result{Err: op.failed(ctx.Err(), AppliedNo)}, false
		}
		if k.waiter.CompareAndSwap(waiterWaits, waiterGone) {
			return Result{Err: op.failed(ctx.Err(), AppliedUnknown)}, false // finish releases the call
		}
		<-k.ready // the result came first
	}
	res, resend = k.result, k.Result.Resend
	if use != nil {
		use(k)
	}
	k.release()
	return res, resend
}

// noEpoch is the epoch of no session, because epochs count up from 0.
const noEpoch = math.MaxUint64

// epochOf returns the epoch of a session; see GoIn. The caller holds the mutex.
func (c *Client) epochOf(session int64) uint64 {
	if session != 0 && (c.lastState.SessionID != session || c.lastState.State == Expired) {
		return noEpoch
	}
	return c.epoch
}

// epochNow is epochOf for a caller that does not hold the mutex.
func (c *Client) epochNow(session int64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.epochOf(session)
}

// submitLocked queues a call for the session of an epoch. The caller holds the mutex,
// which submitLocked releases.
func (c *Client) submitLocked(k *call, epoch uint64) {
	c.core.Submit(&k.Call, epoch)
	c.flush()
}

// withdraw removes a call that was not sent. It reports whether it did.
func (c *Client) withdraw(k *call) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.core.Withdraw(&k.Call)
}
