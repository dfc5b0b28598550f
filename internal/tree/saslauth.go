package tree

import (
	"slices"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/sasl"
	"github.com/zklock/zklock/internal/wire"
)

// saslStep takes the next token of a connection's SASL exchange, which is over
// DIGEST-MD5 (ZooKeeperServer.processSasl). Answers have zxid 0 and the
// request's own xid. A client that succeeds has one more identity; it may not
// begin again on the same connection.
//
// One that fails is told so, with an empty token behind the error as in Java,
// and its connection is closed; its session lives on, and it may come back with
// another password. How long it may try is a matter of the password's length:
// there is no state here that a stranger could use to lock a user out.
func (t *Tree) saslStep(c *conn, h wire.RequestHeader, r *jute.Reader, out *Out) {
	var q wire.GetSASLRequest
	if q.Decode(r); r.Err() != nil || q.Token == nil {
		// Java has no answer to a malformed one either.
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
// reads a token from every answer to a token, whatever its error, so there is one:
// without it that client takes the answer for broken and connects again for ever.
func (t *Tree) refuseSASL(c *conn, h wire.RequestHeader, out *Out) {
	code := wire.ErrAuthFailed
	if t.demands(schemeSASL) {
		code = wire.ErrSessionClosedRequireSASL
	}
	t.refuse(c, h.Xid, code, new(wire.SetSASLResponse), out)
}

// refuse answers with an error of authentication and closes the connection. It
// is counted.
func (t *Tree) refuse(c *conn, xid int32, code wire.ErrCode, rec wire.Record, out *Out) {
	t.tallies.AuthFailures++
	out.frame(c, wire.AppendReply(nil, wire.ReplyHeader{Xid: xid, Err: code}, rec))
	t.drop(c, out)
}

// demands reports whether a connection must have an identity, and one of scheme
// would do.
func (t *Tree) demands(scheme string) bool {
	for _, s := range t.cfg.EnforceAuthSchemes {
		if s == scheme {
			return true
		}
	}
	return false
}

// admitted reports whether a connection may have its request answered: where
// identities are demanded, it has one of them (AuthenticationHelper). Pings and
// the end of a session are requests like others here.
func (t *Tree) admitted(c *conn) bool {
	if len(t.cfg.EnforceAuthSchemes) == 0 {
		return true
	}
	for _, id := range c.ids {
		if t.demands(id.scheme) {
			return true
		}
	}
	return false
}
