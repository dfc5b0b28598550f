package tree

import (
	"io"

	"github.com/zklock/zklock/internal/wire"
)

// SetReadOnly makes the Tree answer only reads, for a server that cannot make
// anything durable any more. Call it after Restore and Replay, instead of
// StartClocks. As with Java's ReadOnlyZooKeeperServer:
//
//   - a write or a sync is answered with ErrNotReadOnly and changes nothing;
//   - a new session is given only to a client whose handshake accepts a read-only
//     server. The session is local: it leaves no record and is unknown after a
//     restart;
//   - the answer to a handshake says that the server is read-only.
//
// A known session may be resumed, with its present timeout. No known session ends, by
// timeout or by request, because its end could not be recorded. Containers and TTL
// nodes stay too. No call writes a record. The counters continue from those of the
// Tree that this one replaces.
func (t *Tree) SetReadOnly(tallies Counters) { t.readOnly, t.counters = true, tallies }

// ReadOnly reports whether SetReadOnly was called.
func (t *Tree) ReadOnly() bool { return t.readOnly }

// refusedReadOnly reports whether a read-only Tree refuses an operation
// (ReadOnlyRequestProcessor). It refuses sync, because the answer would claim that
// the server is up to date. It also refuses the end of a session that is not local.
func (t *Tree) refusedReadOnly(c *conn, op wire.OpCode) bool {
	switch op {
	case wire.OpSync, wire.OpCheck, wire.OpDeleteContainer:
		return true
	case wire.OpCloseSession:
		return !t.isLocal(c.session)
	}
	return isWrite(op)
}

// isLocal reports whether a session exists only in this read-only server.
func (t *Tree) isLocal(s *session) bool {
	_, ok := t.localSessions[s.id]
	return ok
}

// localSession creates a session that leaves no record. It returns nil if the client
// does not accept a read-only server, or if no password could be generated.
func (t *Tree) localSession(req *wire.ConnectRequest, timeout int32, now Now) *session {
	if !req.HasReadOnly || !req.ReadOnly {
		return nil
	}
	password := make([]byte, passwordLen)
	if _, err := io.ReadFull(t.cfg.Rand, password); err != nil {
		return nil
	}
	s := t.addSession(t.nextSessionID(now.Wall), timeout, password)
	t.localSessions[s.id] = struct{}{}
	return s
}
