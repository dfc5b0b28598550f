package session

import (
	"strings"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// Batches. The core may send a call with Op.Batchable in one request with other calls
// that are queued at the same time. Creates and deletes go into one multi, and the
// listings after them into one multiRead. A server executes about 30,000 requests a
// second from one session, whatever they contain. So goroutines that share a session
// gain by the size of the batches.
//
// What the submitter of a batchable call accepts:
//
//   - The Stat of a batched create contains only what the core knows, because a multi
//     returns only the path.
//   - If one operation of a multi fails, the server executes none of them. The
//     operation that failed gets its own error; the others get
//     wire.ErrRuntimeInconsistency. So does one that exceeds a limit, because the limit may
//     be of the whole batch. They were certainly not executed, and the
//     submitter has to repeat them without Batchable. The core does not repeat them,
//     because the server has executed the requests after them by then.
//   - Batched writes overtake batched listings that were submitted before them,
//     unless they change what those listings show.
//
// What the core guarantees:
//
//   - A single queued call is sent at once and unchanged. The core keeps calls back
//     only while BatchWindow requests with batchable calls are unanswered, and never
//     while a call that is not batchable waits after them.
//   - No two calls in one multi create children of the same parent. Their znodes
//     would have one czxid, and nothing would tell which was created first.
//   - No call is in one multi with a call on whose outcome it depends: a call for the
//     same znode, or for its parent. Otherwise it could fail because of an operation
//     that is then rolled back.
//   - A call that is itself a multi is batched as a whole. All of its operations
//     succeed or none does, and the result names the failed operation as if the call
//     had been sent alone.
//   - If the outcome of a batch is unknown, the outcome of each of its calls is
//     unknown.

// defaultBatchWindow is how many requests with batchable calls may be unanswered
// before the core keeps further ones back, if Config.BatchWindow is 0. An acquire
// takes two requests and the release before it one. So a few goroutines never wait,
// while the calls of many goroutines form large batches. Still larger batches, which wait
// for as many calls as are unanswered, make 64 locks a sixth faster on an ensemble without
// network latency, and a fifth slower at a latency of 5 ms.
const defaultBatchWindow = 8

// Limits of one batch. A server logs a multi as one transaction.
const (
	maxBatchOps   = 256
	maxBatchBytes = 64 << 10
)

// BatchedCalls returns how many calls have been sent in batches.
func (c *Core) BatchedCalls() uint64 { return c.batchedCalls }

// batchKind is the kind of batch that a call can be part of.
type batchKind uint8

const (
	notBatched batchKind = iota
	writeBatch
	readBatch
)

// batchKindOf returns the kind of batch that o can be part of on this connection.
func (c *Core) batchKindOf(o *Op) batchKind {
	switch {
	case !o.Batchable:
	case o.Code == wire.OpGetChildren2:
		if !o.Watch && c.release >= release36 && !c.noReadBatches {
			return readBatch
		}
	case o.Code == wire.OpMulti:
		for i := range o.Sub {
			if !o.Sub[i].isBatchableWrite() {
				return notBatched
			}
		}
		if len(o.Sub) > 0 {
			return writeBatch
		}
	case o.isBatchableWrite():
		return writeBatch
	}
	return notBatched
}

// isBatchableWrite reports whether o creates or deletes a znode, and the result of a
// multi contains everything that matters about it.
func (o *Op) isBatchableWrite() bool {
	return o.isPlainCreate() || o.Code == wire.OpDelete
}

// isPlainCreate reports whether o is a create whose answer is its path.
func (o *Op) isPlainCreate() bool {
	return (o.Code == wire.OpCreate || o.Code == wire.OpCreate2) && !o.Mode.TTL() && !o.Mode.Container()
}

// opCount returns how many operations o adds to a multi. opAt returns the i-th of
// them.
func (o *Op) opCount() int {
	if o.Code == wire.OpMulti {
		return len(o.Sub)
	}
	return 1
}

func (o *Op) opAt(i int) *Op {
	if o.Code == wire.OpMulti {
		return &o.Sub[i]
	}
	return o
}

// batcher collects the calls of the next batches. It reuses its memory.
type batcher struct {
	writes, reads []*Call
	ops, bytes    int
	// paths records how the collected calls use each path.
	paths       map[string]pathUse
	freeBatches []*Call // batches to reuse
	idleWrites  int     // how many writes ago it last formed a batch
}

// pathUse is a set of uses of one path.
type pathUse uint8

const (
	createdBelow pathUse = 1 << iota
	written
	writtenBelow
	listed
)

// add collects one call. It returns false if the call has to go in a later request.
func (j *batcher) add(call *Call, kind batchKind, limit int) bool {
	o := &call.Op
	n, size := o.opCount(), o.opCount()*multiHeaderSize+o.size()
	if j.ops > 0 && (j.ops+n > maxBatchOps || j.bytes+size > limit) {
		return false
	}
	if kind == readBatch {
		j.paths[o.Path] |= listed
		j.reads = append(j.reads, call)
	} else {
		if j.conflicts(o) {
			return false
		}
		for i := range n {
			p := o.opAt(i)
			below := writtenBelow
			if p.isPlainCreate() {
				below |= createdBelow
			}
			j.paths[p.Path] |= written
			j.paths[parentOf(p.Path)] |= below
		}
		j.writes = append(j.writes, call)
	}
	j.ops += n
	j.bytes += size
	return true
}

// conflicts reports whether a write must not be in one multi with the collected
// calls, or must not overtake the collected listings.
func (j *batcher) conflicts(o *Op) bool {
	for i := range o.opCount() {
		p := o.opAt(i)
		own, parent := j.paths[p.Path], j.paths[parentOf(p.Path)]
		switch {
		case (own|parent)&listed != 0,
			// An operation that depends on another may fail because of an effect that
			// is then rolled back.
			own&(written|writtenBelow) != 0, parent&written != 0,
			p.isPlainCreate() && parent&createdBelow != 0:
			return true
		}
	}
	return false
}

// parentOf returns the path of the parent znode.
func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// shrinkIfIdle is called for each write. It frees the memory if no batch was formed
// for many writes.
func (j *batcher) shrinkIfIdle() {
	const maxIdleWrites = 16
	if j.idleWrites++; j.idleWrites == maxIdleWrites {
		*j = batcher{idleWrites: maxIdleWrites + 1}
	}
}

// reset drops the collected calls.
func (j *batcher) reset() {
	j.idleWrites = 0
	clear(j.writes)
	clear(j.reads)
	clear(j.paths)
	j.writes, j.reads, j.ops, j.bytes = j.writes[:0], j.reads[:0], 0, 0
}

// sendable reports whether queued calls may be sent now.
func (c *Core) sendable() bool {
	if c.phase != connected || c.queue.first == nil || c.asksLeader() {
		return false
	}
	return c.queue.unbatchable > 0 || c.batchableSent < c.cfg.BatchWindow
}

// sendNext encodes the first queued call, with all calls that can be batched with it.
func (c *Core) sendNext(now time.Duration) {
	if first := c.queue.first; !first.batchable || first.next == nil {
		c.send(c.queue.pop(), now)
		return
	}
	j, limit := &c.batcher, min(maxBatchBytes, c.cfg.MaxRequest-headerSize-multiHeaderSize)
	if j.paths == nil {
		j.paths = make(map[string]pathUse)
	}
	for call := c.queue.first; call != nil && call.batchable; call = c.queue.first {
		// A listing may have ceased to be batchable since it was submitted.
		kind := c.batchKindOf(&call.Op)
		if kind == notBatched || !j.add(call, kind, limit) {
			break
		}
		c.queue.pop()
	}
	if j.ops == 0 {
		c.send(c.queue.pop(), now)
		return
	}
	c.sendBatch(wire.OpMulti, j.writes, now)
	c.sendBatch(wire.OpMultiRead, j.reads, now)
	j.reset()
}

// sendBatch encodes calls as one request.
func (c *Core) sendBatch(code wire.OpCode, calls []*Call, now time.Duration) {
	if len(calls) == 0 {
		return
	}
	if len(calls) == 1 {
		c.send(calls[0], now)
		return
	}
	b := c.batcher.newBatch()
	b.Op.Code = code
	b.members = append(b.members, calls...)
	c.send(b, now)
	c.batchedCalls += uint64(len(calls))
	for _, call := range calls {
		call.state = sent
		call.Result.Sent, call.Result.Conn = now, c.conn
	}
}

// newBatch returns an empty batch.
func (j *batcher) newBatch() *Call {
	if n := len(j.freeBatches); n > 0 {
		b := j.freeBatches[n-1]
		j.freeBatches = j.freeBatches[:n-1]
		return b
	}
	return &Call{batchable: true}
}

// recycle stores a finished batch for reuse.
func (j *batcher) recycle(b *Call) {
	clear(b.members)
	b.members = b.members[:0]
	b.Result.reset()
	if len(j.freeBatches) < defaultBatchWindow && cap(b.members) <= maxBatchOps/2 {
		j.freeBatches = append(j.freeBatches, b)
	}
}
