package session

import (
	"fmt"

	"github.com/zklock/zklock/internal/wire"
)

// authEntry is one credential, and the call that added it until it is answered.
type authEntry struct {
	auth Auth
	call *Call
}

// authList are the credentials in the order in which they were added. Each
// connection sends all again; their answers come in that order, ahead of other
// answers or not.
type authList struct {
	all            []authEntry
	sent, answered int // on the present connection
}

// submitAuth adds a credential. It is kept when the connection is lost, and
// sent again on the next, so that it does not depend on luck.
func (c *Core) submitAuth(call *Call) {
	call.state = queued
	auth := Auth{Scheme: call.Op.Scheme, Data: append([]byte(nil), call.Op.Data...)}
	c.auths.all = append(c.auths.all, authEntry{auth: auth, call: call})
	if c.phase == connected {
		c.sendAuths()
	}
}

// sendAuths encodes the credentials that this connection has not sent.
func (c *Core) sendAuths() {
	for ; c.auths.sent < len(c.auths.all); c.auths.sent++ {
		a := c.auths.all[c.auths.sent].auth
		o := Op{Code: wire.OpAuth, Scheme: a.Scheme, Data: a.Data}
		c.out = appendRequest(c.out, wire.XidAuth, &o)
	}
}

// authAnswered handles the answer to the oldest unanswered credential. A
// refusal is final: with the same credentials the next server would say the
// same, and without them later requests would run with less than was asked for.
func (c *Core) authAnswered(code wire.ErrCode) error {
	if c.auths.answered == c.auths.sent {
		return fmt.Errorf("%w: answer to credentials that were not sent", ErrProtocol)
	}
	e := &c.auths.all[c.auths.answered]
	c.auths.answered++
	if code != wire.ErrOK {
		c.finish(AuthFailed, fmt.Errorf("%w: scheme %q: %w", ErrAuthFailed, e.auth.Scheme, code))
		return nil
	}
	if call := e.call; call != nil {
		e.call = nil
		call.Result.Applied = Yes
		c.finishCall(call)
	}
	return nil
}

// failAuths fails the calls whose credentials were not answered.
func (c *Core) failAuths(fault error) {
	for i := range c.auths.all {
		if call := c.auths.all[i].call; call != nil {
			c.auths.all[i].call = nil
			c.failCall(call, fault, Unknown)
		}
	}
}
