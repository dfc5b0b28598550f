package tree

import (
	"crypto/subtle"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/zklock/zklock/internal/sasl"
	"github.com/zklock/zklock/internal/wire"
)

// Connect handles the first message of connection id from peer. It creates or resumes
// a session and answers. It closes a connection that cannot be served:
//
//   - without an answer if the client has seen a later transaction than this server,
//     if there are already as many sessions as permitted, if no password could be
//     generated, or if the Tree is read-only and a new client does not accept that;
//   - after an answer with session 0 if the client names a session that does not
//     exist, or gives a wrong password. Unlike in Java, the connection of that
//     session is not closed.
//
// A resumed session leaves its previous connection, which is closed.
func (t *Tree) Connect(id ConnID, peer Peer, req *wire.ConnectRequest, now Now, out *Out) {
	t.beginCall(now)
	if c, ok := t.conns[id]; ok {
		// A second handshake on a connection violates the protocol.
		t.drop(c, out)
		return
	}
	if req.LastZxidSeen > t.zxid {
		out.Sends = append(out.Sends, Send{Conn: id, Close: true})
		return
	}
	c := &conn{id: id, share: peer.Share}
	c.ids = peer.identities(c.inlineIDs[:0], t.cfg.X509SuperUser)
	c.credentials = newCredentials(c.ids)
	timeout := min(max(req.Timeout, t.cfg.MinTimeout), t.cfg.MaxTimeout)
	var s *session
	if req.SessionID == 0 {
		all, has := int64(t.cfg.MaxSessions), t.sessionShares[peer.Share]
		if !t.sessionShares.mayUse(peer.Share, has, 1, all-int64(len(t.sessions)), all) {
			t.counters.RefusedSessions++
		} else if t.readOnly {
			s = t.localSession(req, timeout, now)
		} else {
			s = t.newSession(timeout, now, out)
		}
		if s == nil {
			out.Sends = append(out.Sends, Send{Conn: id, Close: true})
			return
		}
	} else if s = t.resume(req, timeout, now, out); s == nil {
		frame := connectFrame(&session{}, req, t.readOnly)
		out.Sends = append(out.Sends, Send{Conn: id, Frame: frame, Close: true})
		return
	}
	t.conns[id] = c
	c.session, s.conn = s, c
	if s.share == 0 { // the session is new, or was recovered
		s.share = peer.Share
		t.sessionShares.add(s.share, 1)
		t.stopExpiry(s) // the class of a session in a heap must not change
		s.class = uint8(bits.Len32(uint32(t.sessionShares[s.share])))
	}
	t.touch(s, now)
	out.frame(c, connectFrame(s, req, t.readOnly))
}

// newSession creates a session in a transaction. It returns nil if no password could
// be generated. The record contains the password, because a session must be resumable
// after a restart; otherwise every lock in it would be lost.
func (t *Tree) newSession(timeout int32, now Now, out *Out) *session {
	x := txn{op: wire.OpCreateSession, session: t.nextSessionID(now.Wall), timeout: timeout}
	x.data = make([]byte, passwordLen)
	if _, err := io.ReadFull(t.cfg.Rand, x.data); err != nil {
		return nil
	}
	t.commit(&x, now, out)
	t.counters.Opened++
	return t.sessions[x.session]
}

// resume returns the session of req after detaching it from its previous connection,
// or nil if it does not exist or its password differs. The password is compared in
// constant time, because it is the only protection of the session.
func (t *Tree) resume(req *wire.ConnectRequest, timeout int32, now Now, out *Out) *session {
	s, ok := t.sessions[req.SessionID]
	if !ok || s.ending() || subtle.ConstantTimeCompare(s.password[:], req.Password) != 1 {
		return nil
	}
	if s.conn != nil {
		t.drop(s.conn, out)
	}
	if s.timeout != timeout && !t.readOnly {
		// The negotiated timeout must also hold after a restart, because the client
		// relies on it for its locks. Java forgets it. This transaction has no ID.
		t.commit(&txn{op: opSessionTimeout, session: s.id, timeout: timeout}, now, out)
	}
	return s
}

// connectFrame returns the answer to a handshake. A zero session means a refusal. The
// answer has the read-only byte only if the request had it, because some clients
// cannot read a longer answer.
func connectFrame(s *session, req *wire.ConnectRequest, readOnly bool) []byte {
	return wire.AppendRecord(nil, &wire.ConnectResponse{
		Timeout: s.timeout, SessionID: s.id, Password: s.password[:], ReadOnly: readOnly, HasReadOnly: req.HasReadOnly,
	})
}

// conn is one connection after its handshake. Identities and watches belong to the
// connection, not to the session: a client sets them again on a new connection.
type conn struct {
	id          ConnID
	session     *session
	ids         []identity
	inlineIDs   [1]identity // storage for ids: most connections have at most one
	credentials credentials
	sasl        *sasl.Server  // created with the first token
	share       Share         // see shares
	watched     *watchedPaths // nil before the first watch
	// lastChange is the number of the last change that the connection was notified
	// of, or overflow.
	lastChange uint64
}

// overflow is the value of conn.lastChange after an event was dropped. The connection
// gets no more events, and closes at the end of the call.
const overflow = math.MaxUint64

// addIdentity adds an identity that was proved, once.
func (c *conn) addIdentity(id identity) {
	if !slices.Contains(c.ids, id) {
		c.ids = append(c.ids, id)
		c.credentials.add(id)
	}
}

// identityBytes returns the total length of the connection's identities.
func (c *conn) identityBytes() int {
	n := 0
	for _, id := range c.ids {
		n += len(id.id)
	}
	return n
}

// forget removes the connection and its watches. Watches for which the call has no
// time are left to the backlog, as are all of them if it has those of other
// connections: calls for many connections in a row share one part. Its session lives on. If another connection has taken
// over the session, it is not touched.
func (t *Tree) forget(c *conn) {
	c.lastChange = overflow // no events for watches that are still to be removed
	delete(t.watchRestores, c)
	if c.watched.len() > 0 && (len(t.backlog.closedConns) > 0 || !t.removeWatchesOf(c)) {
		t.backlog.closedConns = append(t.backlog.closedConns, c)
	}
	if c.session != nil && c.session.conn == c {
		c.session.conn = nil
	}
	delete(t.conns, c.id)
}

// drop removes the connection, and requests that it is closed after the frames
// already sent to it.
func (t *Tree) drop(c *conn, out *Out) {
	t.forget(c)
	if n := len(out.Sends); n > 0 && out.Sends[n-1].Conn == c.id {
		// The usual case: an answer and the close are one Send.
		out.Sends[n-1].Close = true
		return
	}
	out.Sends = append(out.Sends, Send{Conn: c.id, Close: true})
}

// Disconnect reports that a connection has ended for any reason. Its session lives on
// until its timeout. An unknown connection is not an error. Many connections may end
// together: Disconnect leaves all but a few of their watches to Tick.
func (t *Tree) Disconnect(id ConnID, now Now) {
	if c, ok := t.conns[id]; ok {
		t.beginCall(now)
		t.steps = partSteps - disconnectSteps
		t.forget(c)
	}
}
