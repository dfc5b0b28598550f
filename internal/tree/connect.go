package tree

import (
	"crypto/subtle"
	"io"

	"github.com/zklock/zklock/internal/wire"
)

// Connect handles the first message of connection id, which comes from peer. It
// makes a session or resumes one, and answers; a client that can't be served is
// closed:
//
//   - without an answer if it has seen a later transaction than this server has,
//     if there are as many sessions as may be, if no password could be made for
//     it, or if the Tree is read-only and the client, which is new, does not take
//     that;
//   - after an answer with session 0 if it names a session that does not exist,
//     or not by its password. The session is left alone: unlike Java, which
//     closes its connection before it looks at the password.
//
// A session that is resumed leaves its former connection, which is closed.
func (t *Tree) Connect(id ConnID, peer Peer, req *wire.ConnectRequest, now Now, out *Out) {
	t.begin(now)
	if c, ok := t.conns[id]; ok {
		// A second handshake on one connection is no message of the protocol.
		t.drop(c, out)
		return
	}
	if req.LastZxidSeen > t.zxid {
		out.Sends = append(out.Sends, Send{Conn: id, Close: true})
		return
	}
	c := &conn{id: id, share: peer.Share}
	c.ids = peer.identities(c.first[:0], t.cfg.X509SuperUser)
	timeout := min(max(req.Timeout, t.cfg.MinTimeout), t.cfg.MaxTimeout)
	var s *session
	if req.SessionID == 0 {
		if !t.sessionShares.allow(peer.Share, t.cfg.MaxSessions-len(t.sessions), t.cfg.MaxSessions) {
			t.tallies.RefusedSessions++
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
	if s.share == 0 { // it is new, or was recovered
		s.share = peer.Share
		t.sessionShares.add(s.share, 1)
	}
	t.touch(s, now)
	out.frame(c, connectFrame(s, req, t.readOnly))
}

// newSession makes a session in a transaction, nil if there is no password. The
// password is part of the record: a session must be resumable after a restart,
// or every lock in it would be lost.
func (t *Tree) newSession(timeout int32, now Now, out *Out) *session {
	x := txn{op: wire.OpCreateSession, session: t.nextSessionID(now.Wall), timeout: timeout}
	x.data = make([]byte, passwordLen)
	if _, err := io.ReadFull(t.cfg.Rand, x.data); err != nil {
		return nil
	}
	t.commit(&x, now, out)
	t.tallies.Opened++
	return t.sessions[x.session]
}

// resume finds the session of req, nil if there is none or its password is
// another, and takes it from its former connection. The password is compared in
// constant time: it is all that keeps strangers off.
func (t *Tree) resume(req *wire.ConnectRequest, timeout int32, now Now, out *Out) *session {
	s, ok := t.sessions[req.SessionID]
	if !ok || s.ending() || subtle.ConstantTimeCompare(s.password[:], req.Password) != 1 {
		return nil
	}
	if s.conn != nil {
		t.drop(s.conn, out)
	}
	if s.timeout != timeout && !t.readOnly {
		// What a client was told must hold after a restart too: it counts on
		// it for its locks. Java forgets it. It takes no transaction id.
		t.commit(&txn{op: opSessionTimeout, session: s.id, timeout: timeout}, now, out)
	}
	return s
}

// connectFrame is the answer to a handshake; the zero session is a refusal. It
// has the read-only byte if the request had it: some clients can't read an
// answer that is longer than what they know.
func connectFrame(s *session, req *wire.ConnectRequest, readOnly bool) []byte {
	return wire.AppendRecord(nil, &wire.ConnectResponse{
		Timeout: s.timeout, SessionID: s.id, Password: s.password[:], ReadOnly: readOnly, HasReadOnly: req.HasReadOnly,
	})
}
