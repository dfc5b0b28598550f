package session

import (
	"fmt"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// Frame processes the body of a frame that arrived on the connection gen and was read
// at now. The core keeps no reference to it. A frame that violates the protocol ends
// the connection; see Live.
func (c *Core) Frame(gen uint64, frame []byte, now time.Duration) {
	if gen == 0 || gen != c.Live() {
		return
	}
	switch c.phase {
	case handshaking:
		c.connectAnswered(frame, now)
	case authenticating:
		c.lastRecv = now
		c.saslAnswered(frame, now)
	case connected:
		c.lastRecv = now
		if err := c.received(frame, now); err != nil {
			c.dropConnection(err, now)
		}
	default:
		c.dropConnection(fmt.Errorf("%w: the server sent data before the connect request", ErrProtocol), now)
	}
}

// ReplyTooLarge processes the header of a frame that arrived on the connection gen at now and
// is larger than the driver accepts. Other clients decide how long a listing is, so it
// fails only the call that it answers. Any other frame of that size ends the connection.
func (c *Core) ReplyTooLarge(gen uint64, h wire.ReplyHeader, now time.Duration) {
	if gen == 0 || gen != c.Live() {
		return
	}
	call := c.pending.first
	if c.phase != connected || call == nil || h.Xid != call.xid || h.Err != wire.ErrOK || !call.Op.lists() {
		c.dropConnection(fmt.Errorf("%w: frame of the server larger than the client accepts", ErrProtocol), now)
		return
	}
	c.lastRecv = now
	call.Result.Fault = ErrReplyTooLarge
	h.Err = wire.ErrQuotaExceeded // as of a server with such a limit: the calls of a batch are repeated
	if err := c.answer(h, now); err != nil {
		c.dropConnection(err, now)
	}
}

// received handles a frame after the handshake.
func (c *Core) received(frame []byte, now time.Duration) error {
	var h wire.ReplyHeader
	c.rd.Reset(frame)
	h.Decode(&c.rd)
	if err := c.rd.Err(); err != nil {
		return fmt.Errorf("%w: header: %w", ErrProtocol, err)
	}
	if h.Err == wire.ErrSessionClosedRequireSASL && h.Xid != wire.XidEvent {
		return c.identityDemanded(h, now)
	}
	switch h.Xid {
	case wire.XidEvent:
		return c.event(h.Zxid, now)
	// Servers may answer these three out of order, before requests that were sent
	// earlier.
	case wire.XidPing:
		return countDown(&c.pings, "ping")
	case wire.XidAuth:
		return c.authAnswered(h.Err)
	case wire.XidSetWatches:
		if h.Err == wire.ErrUnimplemented && c.watches.hasPersistent() {
			c.learn(since(wire.OpSetWatches2) - 1)
		}
		if h.Err != wire.ErrOK {
			// Without its watches, the session would wait for events that never come.
			return fmt.Errorf("%w: watches not set again: %w", ErrRefused, h.Err)
		}
		return countDown(&c.setWatches, "setWatches")
	}
	return c.answer(h, now)
}

// countDown subtracts one answer from the number of answers due.
func countDown(due *int, what string) error {
	if *due == 0 {
		return fmt.Errorf("%w: answer to a %s request that was not sent", ErrProtocol, what)
	}
	*due--
	return nil
}

// event handles a watch event. It does not update lastZxid, because other events of
// the same change may still be on their way.
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
	c.notifyEvent(e.Type, e.Path, zxid, now)
	return nil
}

// answer handles the answer to the oldest request. If the answer cannot be decoded,
// the request stays unanswered and fails with the connection.
func (c *Core) answer(h wire.ReplyHeader, now time.Duration) error {
	call := c.pending.first
	if call == nil {
		return fmt.Errorf("%w: answer %d without a request", ErrProtocol, h.Xid)
	}
	var leave error // why the core gives up the connection
	if h.Err == wire.ErrUnimplemented {
		if refused := c.pending.find(h.Xid); refused != nil && refused.Op.proves() {
			finished, err := c.unknownRequest(refused)
			if !finished {
				return err
			}
			leave = err
		}
	}
	if h.Xid != call.xid {
		return fmt.Errorf("%w: answer %d instead of %d", ErrProtocol, h.Xid, call.xid)
	}
	// The result is filled before the call leaves the list. If the body is malformed,
	// the call is still there to fail with the connection.
	res := &call.Result
	if h.Err == wire.ErrOK {
		if len(call.members) > 0 {
			decodeBatch(&c.rd, call)
		} else {
			decodeResult(&c.rd, &call.Op, res)
		}
		if err := c.rd.Finish(); err != nil {
			call.discardAnswer()
			return fmt.Errorf("%w: answer to %s: %w", ErrProtocol, call.Op.Code, err)
		}
		if call.Op.Code == wire.OpCreate {
			res.Stat = c.createdStat(&call.Op, h.Zxid)
		}
	} else {
		res.Code = h.Err
	}
	if h.Err == wire.ErrMarshalling && call.Op.Code == wire.OpMulti && call.Op.since() > release34 {
		// The server could not decode an operation in the multi.
		c.learn(call.Op.since() - 1)
		res.Code = wire.ErrUnimplemented
	}
	if h.Err == wire.ErrMarshalling && call.Op.Code == wire.OpRemoveWatches && call.Op.Type >= wire.WatcherPersistent {
		res.Code = wire.ErrUnimplemented // before 3.9, servers cannot decode these types
	}
	if res.Code != wire.ErrUnimplemented && c.leader.endings > 0 && call.Op.newWrite() {
		c.leader = leader{}
	}
	if res.Code == wire.ErrSessionMoved && !c.closing {
		// Only a new connection moves the session to this server again. ZooKeeper 3.4 keeps this
		// one open if the request is a multi, and refuses each later write but a closeSession.
		leave = fmt.Errorf("%w: %w", ErrRefused, res.Code)
	}
	res.Zxid, res.Received = h.Zxid, now
	res.Applied = outcomeOf(res.Code)
	// A server's zxid never decreases. A lower one is ignored: watches set again
	// relative to it would report old changes.
	c.lastZxid = max(c.lastZxid, h.Zxid)
	c.pending.remove(call)
	if call.batchable {
		c.batchableSent--
	}
	switch {
	case len(call.members) > 0:
		c.batchAnswered(call)
		return leave
	case call == &c.leaderCall:
		call.state = idle
		return leave
	case call == &c.releaseCall:
		c.releaseAnswered(res.Code)
		return nil
	case call == &c.closeCall:
		c.finish(Closed, closeRefusal(res.Code))
		return nil
	}
	// From here on the server holds the watch, even if nothing waits for the answer
	// any more.
	c.watches.answered(&call.Op, res.Code)
	if call.Op.Code == wire.OpRemoveWatches && res.Code == wire.ErrOK {
		c.watchesRemoved(&call.Op, now)
	}
	c.finishCall(call)
	return leave
}

// closeRefusal returns the error in the answer to a closeSession, or nil if the
// session is over. For example, a server without a quorum cannot close a session.
func closeRefusal(code wire.ErrCode) error {
	switch code {
	case wire.ErrOK, wire.ErrSessionExpired, wire.ErrUnknownSession:
		return nil
	}
	return fmt.Errorf("%w: the session was not closed: %w", ErrRefused, code)
}

// watchesRemoved reports, as Java's client does, each kind of watch that the server
// has just removed on request.
func (c *Core) watchesRemoved(o *Op, now time.Duration) {
	had := c.watches.remove(o.Path, removedKinds(o.Type))
	if had&(dataWatch|existWatch) != 0 {
		c.notifyEvent(wire.EventDataWatchRemoved, o.Path, -1, now)
	}
	if had&childWatch != 0 {
		c.notifyEvent(wire.EventChildWatchRemoved, o.Path, -1, now)
	}
	if had&(persistentWatch|recursiveWatch) != 0 {
		c.notifyEvent(wire.EventPersistentWatchRemoved, o.Path, -1, now)
	}
}
