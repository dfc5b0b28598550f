package session

import (
	"fmt"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// Frame puts in a frame's body that arrived on the connection gen, read at now.
// The core keeps nothing of it. A frame that breaks the protocol costs the
// connection; see Live.
func (c *Core) Frame(gen uint64, frame []byte, now time.Duration) {
	if gen == 0 || gen != c.Live() {
		return
	}
	switch c.phase {
	case greeting:
		c.greeted(frame, now)
	case authenticating:
		c.lastRecv = now
		c.saslAnswered(frame, now)
	case connected:
		c.lastRecv = now
		if err := c.received(frame, now); err != nil {
			c.lose(err, now)
		}
	default:
		c.lose(fmt.Errorf("%w: the server spoke first", ErrProtocol), now)
	}
}

// received handles a frame behind the handshake.
func (c *Core) received(frame []byte, now time.Duration) error {
	var h wire.ReplyHeader
	c.rd.Reset(frame)
	h.Decode(&c.rd)
	if err := c.rd.Err(); err != nil {
		return fmt.Errorf("%w: header: %w", ErrProtocol, err)
	}
	if h.Err == wire.ErrSessionClosedRequireSASL && h.Xid != wire.XidEvent {
		return c.shutOut(h, now)
	}
	switch h.Xid {
	case wire.XidEvent:
		return c.event(h.Zxid, now)
	// These three are out of the order of the requests: servers may answer
	// them before requests that were sent earlier.
	case wire.XidPing:
		return countDown(&c.pings, "ping")
	case wire.XidAuth:
		return c.authAnswered(h.Err)
	case wire.XidSetWatches:
		if h.Err != wire.ErrOK {
			// Without its watches a session waits for what it will never hear.
			return fmt.Errorf("%w: watches not set again: %w", ErrRefused, h.Err)
		}
		return countDown(&c.setWatches, "setWatches")
	}
	return c.answer(h, now)
}

// countDown takes one answer off the number of those that are due.
func countDown(due *int, what string) error {
	if *due == 0 {
		return fmt.Errorf("%w: answer to a %s that was not sent", ErrProtocol, what)
	}
	*due--
	return nil
}

// event handles a watch event. Its zxid is not taken as seen: the change's
// other events may still be on their way.
func (c *Core) event(zxid int64, now time.Duration) error {
	var e wire.WatcherEvent
	e.Decode(&c.rd)
	if err := c.rd.Finish(); err != nil {
		return fmt.Errorf("%w: event: %w", ErrProtocol, err)
	}
	if e.Type < wire.EventNodeCreated || e.Type > wire.EventPersistentWatchRemoved {
		return fmt.Errorf("%w: event of unknown type %d", ErrProtocol, int32(e.Type))
	}
	c.watches.fired(e.Type, e.Path)
	c.tellEvent(e.Type, e.Path, zxid, now)
	return nil
}

// answer handles the answer to the oldest request. An answer that can't be
// decoded leaves the request unanswered: its fate is the connection's.
func (c *Core) answer(h wire.ReplyHeader, now time.Duration) error {
	call := c.pending.first
	if call == nil {
		return fmt.Errorf("%w: answer %d without a request", ErrProtocol, h.Xid)
	}
	if h.Xid != call.xid {
		return fmt.Errorf("%w: answer %d instead of %d", ErrProtocol, h.Xid, call.xid)
	}
	// The result is filled before the call leaves the list: if the body is
	// broken it is still there to fail with the connection.
	res := &call.Result
	if h.Err == wire.ErrOK {
		if len(call.members) > 0 {
			decodeJoined(&c.rd, call)
		} else {
			decodeResult(&c.rd, &call.Op, res)
		}
		if err := c.rd.Finish(); err != nil {
			call.forget()
			return fmt.Errorf("%w: answer to %s: %w", ErrProtocol, call.Op.Code, err)
		}
	} else {
		res.Code = h.Err
	}
	res.Zxid, res.Received = h.Zxid, now
	res.Applied = outcomeOf(res.Code)
	// A server's zxid never goes back; one that says so is not believed, for
	// watches set again relative to it would tell of old changes.
	c.lastZxid = max(c.lastZxid, h.Zxid)
	c.pending.remove(call)
	if call.joins {
		c.joining--
	}
	if len(call.members) > 0 {
		c.joinedAnswer(call)
		return nil
	}
	if call == &c.closeCall {
		c.finish(Closed, closeRefusal(res.Code))
		return nil
	}
	// From here on the server holds the watch, whoever still wants the answer.
	c.watches.answered(&call.Op, res.Code)
	if call.Op.Code == wire.OpRemoveWatches && res.Code == wire.ErrOK {
		c.watchesRemoved(&call.Op, now)
	}
	c.finishCall(call)
	return nil
}

// closeRefusal is what the answer to closing a session says against it, nil if
// the session is over. A server without a quorum, for one, can't close any.
func closeRefusal(code wire.ErrCode) error {
	switch code {
	case wire.ErrOK, wire.ErrSessionExpired, wire.ErrUnknownSession:
		return nil
	}
	return fmt.Errorf("%w: the session was not closed: %w", ErrRefused, code)
}

// watchesRemoved tells, as Java's client does, of each kind of watch that the
// server has just removed at the user's request.
func (c *Core) watchesRemoved(o *Op, now time.Duration) {
	had := c.watches.remove(o.Path, removedKinds(o.Type))
	if had&(dataWatch|existWatch) != 0 {
		c.tellEvent(wire.EventDataWatchRemoved, o.Path, -1, now)
	}
	if had&childWatch != 0 {
		c.tellEvent(wire.EventChildWatchRemoved, o.Path, -1, now)
	}
	if had&(persistentWatch|recursiveWatch) != 0 {
		c.tellEvent(wire.EventPersistentWatchRemoved, o.Path, -1, now)
	}
}
