package session

import (
	"fmt"

	"github.com/zklock/zklock/internal/wire"
)

// authEntry is one credential. It has the call that added it until the server
// answers.
type authEntry struct {
	auth Auth
	call *Call
}

// authList holds the credentials in the order in which they were added. Each
// connection sends all of them again. Their answers arrive in that order, possibly
// before answers to earlier requests.
type authList struct {
	all            []authEntry
	sent, answered int // on the present connection
}

// submitAuth adds a credential. The core keeps it when the connection is lost and
// sends it again on the next one.
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

// authAnswered handles the answer to the oldest unanswered credential. A refusal is
// final: the next server would refuse the same credentials, and without them later
// requests would run with fewer permissions than requested.
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
