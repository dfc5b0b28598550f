package tree

import (
	"slices"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// authenticate adds an identity to the connection, or refuses and closes it.
// Both answers have zxid 0 and the request's own xid, which need not be the -4
// that Java's client uses. A refusal closes the connection, not the session:
// the client may come back and try another way.
func (t *Tree) authenticate(c *conn, h wire.RequestHeader, r *jute.Reader, out *Out) {
	var q wire.AuthPacket
	if q.Decode(r); r.Err() != nil {
		// Java has no answer to a malformed one either.
		t.drop(c, out)
		return
	}
	if t.anotherEnsemble(&q) {
		// Without an answer, so that the client tries its next server.
		t.drop(c, out)
		return
	}
	if err := t.prove(c, &q); err != wire.ErrOK {
		t.refuse(c, h.Xid, err, nil, out)
		return
	}
	out.frame(c, wire.AppendReply(nil, wire.ReplyHeader{Xid: h.Xid}, nil))
}

// prove adds what q proves of the client. A digest proves itself: whoever knows
// the password has the identity, and a wrong one is just another identity. An
// address and a certificate were known when the connection came; SASL has a
// request of its own.
func (t *Tree) prove(c *conn, q *wire.AuthPacket) wire.ErrCode {
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
		// Java takes any number, of any length.
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

// Who returns the session of a connection and the names of its users, without their
// proofs; 0 for one that the Tree does not know.
func (t *Tree) Who(id ConnID) (session int64, users []string) {
	c, ok := t.conns[id]
	if !ok {
		return 0, nil
	}
	for _, i := range c.ids {
		name := i.user()
		if i.scheme == schemeSuper {
			name = schemeSuper
		}
		users = append(users, name)
	}
	return c.session.id, users
}

// anotherEnsemble reports whether a client means another ensemble than this
// (EnsembleAuthenticationProvider).
func (t *Tree) anotherEnsemble(q *wire.AuthPacket) bool {
	return q.Scheme == schemeEnsemble && t.provides(schemeEnsemble, nil) && len(q.Auth) > 0 &&
		len(t.cfg.EnsembleNames) > 0 && !slices.Contains(t.cfg.EnsembleNames, string(q.Auth))
}

// whoAmI lists the connection's identities without their proofs, in the order
// in which they were proved.
func whoAmI(c *conn) *wire.WhoAmIResponse {
	p := &wire.WhoAmIResponse{ClientInfo: make([]wire.ClientInfo, 0, len(c.ids))}
	for _, id := range c.ids {
		p.ClientInfo = append(p.ClientInfo, wire.ClientInfo{AuthScheme: id.scheme, User: id.user()})
	}
	return p
}
