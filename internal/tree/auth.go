package tree

import (
	"slices"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/sasl"
	"github.com/zklock/zklock/internal/wire"
)

// authenticate adds an identity to the connection, or refuses it and closes the
// connection. Both answers have zxid 0 and the request's own xid, which need not be
// the -4 of Java's client. A refusal closes the connection, not the session: the
// client may reconnect with other credentials.
func (t *Tree) authenticate(c *conn, h wire.RequestHeader, r *jute.Reader, out *Out) {
	var q wire.AuthPacket
	if q.Decode(r); r.Err() != nil {
		// As in Java, a malformed request is not answered.
		t.drop(c, out)
		return
	}
	if t.namesOtherEnsemble(&q) {
		// There is no answer, so that the client tries its next server.
		t.drop(c, out)
		return
	}
	if err := t.verifyCredentials(c, &q); err != wire.ErrOK {
		t.refuse(c, h.Xid, err, nil, out)
		return
	}
	out.frame(c, wire.AppendReply(nil, wire.ReplyHeader{Xid: h.Xid}, nil))
}

// verifyCredentials adds the identity that q proves. A digest proves itself: knowing
// the password gives the identity, and a wrong password is just another identity.
// Addresses and certificates are known from the transport. SASL has its own request.
func (t *Tree) verifyCredentials(c *conn, q *wire.AuthPacket) wire.ErrCode {
	switch q.Scheme {
	case schemeIP:
		return wire.ErrOK
	case schemeX509:
		for _, id := range c.ids {
			if id.scheme == schemeX509 {
				return wire.ErrOK
			}
		}
	case schemeEnsemble:
		if t.provides(schemeEnsemble, nil) {
			return wire.ErrOK
		}
	case schemeDigest:
		if q.Auth == nil {
			return wire.ErrAuthFailed
		}
		id := digestID(q.Auth)
		// Java accepts any number of identities of any length.
		if len(c.ids) >= maxIdentities || c.identityBytes()+len(id) > maxIdentityBytes {
			return wire.ErrAuthFailed
		}
		if id == t.cfg.SuperDigest {
			c.addIdentity(identity{schemeSuper, ""})
		}
		c.addIdentity(identity{schemeDigest, id})
		return wire.ErrOK
	}
	return wire.ErrAuthFailed
}

// Identities returns the session of a connection and its identities, without their
// proofs. The session is 0 for an unknown connection.
func (t *Tree) Identities(id ConnID) (session int64, users []wire.ClientInfo) {
	c, ok := t.conns[id]
	if !ok {
		return 0, nil
	}
	return c.session.id, whoAmI(c).ClientInfo
}

// namesOtherEnsemble reports whether the client names another ensemble than this one
// (EnsembleAuthenticationProvider).
func (t *Tree) namesOtherEnsemble(q *wire.AuthPacket) bool {
	return q.Scheme == schemeEnsemble && t.provides(schemeEnsemble, nil) && len(q.Auth) > 0 &&
		len(t.cfg.EnsembleNames) > 0 && !slices.Contains(t.cfg.EnsembleNames, string(q.Auth))
}

// whoAmI returns the connection's identities without their proofs, in the order in
// which they were proved.
func whoAmI(c *conn) *wire.WhoAmIResponse {
	p := &wire.WhoAmIResponse{ClientInfo: make([]wire.ClientInfo, 0, len(c.ids))}
	for _, id := range c.ids {
		p.ClientInfo = append(p.ClientInfo, wire.ClientInfo{AuthScheme: id.scheme, User: id.user()})
	}
	return p
}

// saslStep processes the next token of a connection's SASL exchange with DIGEST-MD5
// (ZooKeeperServer.processSasl). Answers have zxid 0 and the request's own xid. A
// client that succeeds gets one more identity, and may not start another exchange on
// the same connection.
//
// A client that fails gets an error with an empty token, as in Java, and its
// connection is closed. Its session lives on, and it may reconnect with another
// password. There is no lockout, which an attacker could use against a user: the
// length of the password has to protect it.
func (t *Tree) saslStep(c *conn, h wire.RequestHeader, r *jute.Reader, out *Out) {
	var q wire.GetSASLRequest
	if q.Decode(r); r.Err() != nil || q.Token == nil {
		// As in Java, a malformed request is not answered.
		t.drop(c, out)
		return
	}
	if t.cfg.SASLUsers == nil {
		t.refuseSASL(c, h, out)
		return
	}
	if c.sasl == nil {
		c.sasl = new(sasl.Server)
	}
	token, err := c.sasl.Step(q.Token, t.cfg.SASLUsers, t.cfg.Rand)
	if err != nil {
		t.refuseSASL(c, h, out)
		return
	}
	if c.sasl.Done() {
		user := c.sasl.User()
		c.addIdentity(identity{schemeSASL, user})
		if slices.Contains(t.cfg.SuperUsers, user) {
			c.addIdentity(identity{schemeSuper, ""})
		}
	}
	out.frame(c, wire.AppendReply(nil, wire.ReplyHeader{Xid: h.Xid}, &wire.SetSASLResponse{Token: token}))
}

// refuseSASL answers a token with an error and closes the connection. Java's client
// reads a token from every answer to a token, even with an error. Without one it
// takes the answer for malformed and reconnects forever.
func (t *Tree) refuseSASL(c *conn, h wire.RequestHeader, out *Out) {
	code := wire.ErrAuthFailed
	if t.acceptsScheme(schemeSASL) {
		code = wire.ErrSessionClosedRequireSASL
	}
	t.refuse(c, h.Xid, code, new(wire.SetSASLResponse), out)
}

// refuse answers with an authentication error, counts it, and closes the connection.
func (t *Tree) refuse(c *conn, xid int32, code wire.ErrCode, rec wire.Record, out *Out) {
	t.counters.AuthFailures++
	out.frame(c, wire.AppendReply(nil, wire.ReplyHeader{Xid: xid, Err: code}, rec))
	t.drop(c, out)
}

// acceptsScheme reports whether connections must have an identity, and one of this
// scheme is sufficient.
func (t *Tree) acceptsScheme(scheme string) bool {
	return slices.Contains(t.cfg.EnforceAuthSchemes, scheme)
}

// hasRequiredIdentity reports whether a connection has one of the required
// identities, if any are required (AuthenticationHelper). Pings and closeSession need
// them like other requests.
func (t *Tree) hasRequiredIdentity(c *conn) bool {
	return len(t.cfg.EnforceAuthSchemes) == 0 ||
		slices.ContainsFunc(c.ids, func(id identity) bool { return t.acceptsScheme(id.scheme) })
}
