package session

import (
	"strings"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// Joining. A call with Op.Join may share a request with others of the same
// moment: creates and deletes go into one multi, listings behind it into one
// multiRead. A server takes some 30,000 requests a second from one session,
// whatever is in them, so many goroutines on one session gain by the factor by
// which they are joined.
//
// What the submitter of such a call takes upon himself:
//
//   - A create that was joined has in its Stat only what is known of it, as a
//     multi tells no more than the path.
//   - If one of the joined fails, a multi does none of them. The one that failed
//     gets its own error, the others wire.ErrRuntimeInconsistency: surely not
//     done, and to be made again without Join. The core does not repeat them: what
//     was sent behind them has been carried out by then.
//   - Joined writes go ahead of joined listings that were submitted before them,
//     unless they change what those list.
//
// What the core takes upon itself:
//
//   - A call that is alone is sent at once, as it is. Calls are only kept back
//     while joinWindow requests with such calls are unanswered, and never while
//     a call of another kind waits behind them.
//   - No two calls that create below one parent are in one multi: their znodes
//     would have one czxid, and nothing would tell which of them was first.
//   - No call is in one multi with another on whose outcome its own depends: that of
//     one znode, or of a znode and its parent. Else it could fail through what is
//     undone with it.
//   - A call that is a multi itself is joined whole: all of its operations succeed
//     or none, and which of them failed is told as if it had been alone.
//   - An outcome that is unknown is unknown of each.

// joinWindow is how many unanswered requests with calls to be joined there may
// be before further ones are kept back, unless Config.JoinWindow says otherwise. An
// acquire takes two and the release before it one, so few goroutines never wait,
// while many find their calls joined by the dozen.
const joinWindow = 8

// The bounds of one joined request. A server logs a multi as one transaction.
const (
	joinedOps   = 256
	joinedBytes = 64 << 10
)

// Joined is how many calls went out together with others so far.
func (c *Core) Joined() uint64 { return c.joined }

// joinKind is how a call can be joined.
type joinKind uint8

const (
	notJoined joinKind = iota
	joinedWrite
	joinedRead
)

// joins says how o can be joined on this connection.
func (c *Core) joins(o *Op) joinKind {
	switch {
	case !o.Join:
	case o.Code == wire.OpGetChildren2:
		if !o.Watch && !c.noMultiRead && !c.apart {
			return joinedRead
		}
	case o.Code == wire.OpMulti:
		for i := range o.Sub {
			if !o.Sub[i].plainWrite() {
				return notJoined
			}
		}
		if len(o.Sub) > 0 {
			return joinedWrite
		}
	case o.plainWrite():
		return joinedWrite
	}
	return notJoined
}

// plainWrite reports whether o makes or deletes a znode that a multi can tell all
// about that matters.
func (o *Op) plainWrite() bool {
	return o.creates() || o.Code == wire.OpDelete
}

// creates reports whether o is a create that is answered with its path.
func (o *Op) creates() bool {
	return (o.Code == wire.OpCreate || o.Code == wire.OpCreate2) && !o.Mode.TTL() && !o.Mode.Container()
}

// parts is how many operations o is in a multi, and part the i-th of them.
func (o *Op) parts() int {
	if o.Code == wire.OpMulti {
		return len(o.Sub)
	}
	return 1
}

func (o *Op) part(i int) *Op {
	if o.Code == wire.OpMulti {
		return &o.Sub[i]
	}
	return o
}

// joiner collects what goes out together. Its room is used again.
type joiner struct {
	writes, reads []*Call
	ops, bytes    int
	// paths says what the collected calls do to which path.
	paths map[string]touch
	free  []*Call // batches for the next time
	rests int     // how many writes ago it was last of use
}

// touch is what is done to a path.
type touch uint8

const (
	createdBelow touch = 1 << iota
	written
	writtenBelow
	listed
)

// take collects one call, unless it has to go in a later request.
func (j *joiner) take(call *Call, kind joinKind, limit int) bool {
	o := &call.Op
	n, size := o.parts(), o.parts()*multiHeaderSize+o.size()
	if j.ops > 0 && (j.ops+n > joinedOps || j.bytes+size > limit) {
		return false
	}
	if kind == joinedRead {
		j.paths[o.Path] |= listed
		j.reads = append(j.reads, call)
	} else {
		if j.collides(o) {
			return false
		}
		for i := range n {
			p := o.part(i)
			below := writtenBelow
			if p.creates() {
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

// collides reports whether a write must not be in one request with those that
// were collected, or must not go ahead of the listings.
func (j *joiner) collides(o *Op) bool {
	for i := range o.parts() {
		p := o.part(i)
		own, parent := j.paths[p.Path], j.paths[parentOf(p.Path)]
		switch {
		case (own|parent)&listed != 0,
			// What depends on another may fail through what is then undone.
			own&(written|writtenBelow) != 0, parent&written != 0,
			p.creates() && parent&createdBelow != 0:
			return true
		}
	}
	return false
}

// parentOf is the path of the znode whose child has this path.
func parentOf(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// rest is called with each write. One that was of no use for many lets its room go.
func (j *joiner) rest() {
	const patience = 16
	if j.rests++; j.rests == patience {
		*j = joiner{rests: patience + 1}
	}
}

// reset forgets what was collected.
func (j *joiner) reset() {
	j.rests = 0
	clear(j.writes)
	clear(j.reads)
	clear(j.paths)
	j.writes, j.reads, j.ops, j.bytes = j.writes[:0], j.reads[:0], 0, 0
}

// sendable reports whether the calls that wait may go out now.
func (c *Core) sendable() bool {
	if c.phase != connected || c.queue.first == nil {
		return false
	}
	return c.queue.plain > 0 || c.joining < c.cfg.JoinWindow
}

// sendNext encodes the first call that waits, and with it all that can be joined.
func (c *Core) sendNext(now time.Duration) {
	if first := c.queue.first; !first.joins || first.next == nil {
		c.send(c.queue.pop(), now)
		return
	}
	j, limit := &c.joiner, min(joinedBytes, c.cfg.MaxRequest-headerSize-multiHeaderSize)
	if j.paths == nil {
		j.paths = make(map[string]touch)
	}
	for call := c.queue.first; call != nil && call.joins; call = c.queue.first {
		// A listing may have lost the right to be joined since it was submitted.
		kind := c.joins(&call.Op)
		if kind == notJoined || !j.take(call, kind, limit) {
			break
		}
		c.queue.pop()
	}
	if j.ops == 0 {
		c.send(c.queue.pop(), now)
		return
	}
	c.sendJoined(wire.OpMulti, j.writes, now)
	c.sendJoined(wire.OpMultiRead, j.reads, now)
	j.reset()
}

// sendJoined encodes calls as one request.
func (c *Core) sendJoined(code wire.OpCode, calls []*Call, now time.Duration) {
	if len(calls) == 0 {
		return
	}
	if len(calls) == 1 {
		c.send(calls[0], now)
		return
	}
	b := c.joiner.batch()
	b.Op.Code = code
	b.members = append(b.members, calls...)
	c.send(b, now)
	c.joined += uint64(len(calls))
	for _, call := range calls {
		call.state = sent
		call.Result.Sent, call.Result.Conn = now, c.conn
	}
}

// batch returns an empty batch.
func (j *joiner) batch() *Call {
	if n := len(j.free); n > 0 {
		b := j.free[n-1]
		j.free = j.free[:n-1]
		return b
	}
	return &Call{joins: true}
}

// recycle keeps a batch that is over for the next time.
func (j *joiner) recycle(b *Call) {
	clear(b.members)
	b.members = b.members[:0]
	b.Result.reset()
	if len(j.free) < joinWindow && cap(b.members) <= joinedOps/2 {
		j.free = append(j.free, b)
	}
}
