package tree

import (
	"io"

	"github.com/zklock/zklock/internal/wire"
)

// SetReadOnly makes the Tree answer reads alone, for a server that can't make
// anything durable any more. Call it after Restore and Replay, in place of
// StartClocks. As with Java's ReadOnlyZooKeeperServer
//
//   - a write, and a sync, is answered with ErrNotReadOnly and changes nothing;
//   - a new session is given only to a client whose handshake says that it takes
//     a read-only server. It is local: it leaves no record, and no other life of
//     the server knows it;
//   - the answer to a handshake says that the server is read-only.
//
// A session that is known may be resumed, with the timeout that it has. None of
// them ends, neither by its time nor by its client: its end could not be kept.
// Containers and TTL nodes stay as well. No call leaves a record. The tallies go
// on from those of the Tree that this one stands in for.
func (t *Tree) SetReadOnly(tallies Tallies) { t.readOnly, t.tallies = true, tallies }

// ReadOnly reports whether SetReadOnly was called.
func (t *Tree) ReadOnly() bool { return t.readOnly }

// refusedReadOnly reports whether a request is refused while the Tree is
// read-only (ReadOnlyRequestProcessor). A sync is: it would vouch for being up to
// date. So is the end of a session that others know of.
func (t *Tree) refusedReadOnly(c *conn, op wire.OpCode) bool {
	switch op {
	case wire.OpSync, wire.OpCheck, wire.OpDeleteContainer:
		return true
	case wire.OpCloseSession:
		return !t.local(c.session)
	}
	return isWrite(op)
}

// local reports whether a session is known to this life of a read-only server alone.
func (t *Tree) local(s *session) bool {
	_, ok := t.locals[s.id]
	return ok
}

// localSession makes a session that leaves no record, nil if the client does not
// take a read-only server or there is no password.
func (t *Tree) localSession(req *wire.ConnectRequest, timeout int32, now Now) *session {
	if !req.HasReadOnly || !req.ReadOnly {
		return nil
	}
	password := make([]byte, passwordLen)
	if _, err := io.ReadFull(t.cfg.Rand, password); err != nil {
		return nil
	}
	s := t.addSession(t.nextSessionID(now.Wall), timeout, password)
	t.locals[s.id] = struct{}{}
	return s
}
