package session

import (
	"fmt"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// Challenge is a token that the driver passes to the SASL mechanism. It reports the
// mechanism's answer with Respond, Refuse, or Lost.
type Challenge struct {
	Gen   uint64 // the connection
	Token []byte // empty at the beginning of the exchange
}

// saslExchange is the exchange on the present connection.
type saslExchange struct {
	state     saslState
	challenge []byte
	xid       int32 // of the unanswered token
}

type saslState uint8

const (
	saslNone      saslState = iota
	saslChallenge           // the challenge waits for the driver
	saslStep                // the driver has the challenge
	saslSent                // a token is unanswered
	saslLast                // the last token is unanswered
)

// WantStep returns the challenge for the mechanism, if there is one. Each one is
// returned once.
func (c *Core) WantStep() (Challenge, bool) {
	if c.phase != authenticating || c.sasl.state != saslChallenge {
		return Challenge{}, false
	}
	c.sasl.state = saslStep
	return Challenge{Gen: c.gen, Token: c.sasl.challenge}, true
}

// Respond continues the exchange on the connection gen with the mechanism's token.
// done says that the exchange is over for the mechanism. Then a token that is not nil
// is the last one, and the server must accept it.
func (c *Core) Respond(gen uint64, token []byte, done bool, now time.Duration) {
	if gen == 0 || gen != c.Live() || c.phase != authenticating || c.sasl.state != saslStep {
		return
	}
	if done && token == nil {
		c.startConnected(now)
		return
	}
	if n := headerSize + 4 + len(token); n > c.cfg.MaxRequest {
		c.Refuse(gen, fmt.Errorf("%w: a SASL token of %d bytes", ErrTooLarge, len(token)))
		return
	}
	c.sasl.state = saslSent
	if done {
		c.sasl.state = saslLast
	}
	// Tokens and requests share one numbering, as in Java's client.
	c.nextXid()
	c.sasl.xid = c.xid
	c.out = wire.AppendRequest(c.out, c.xid, wire.OpSASL, &wire.GetSASLRequest{Token: token})
}

// Refuse ends the core, because authentication on the connection gen can never
// succeed.
func (c *Core) Refuse(gen uint64, err error) {
	if gen != 0 && gen == c.Live() {
		c.finish(AuthFailed, fmt.Errorf("%w: %w", ErrAuthFailed, err))
	}
}

// beginSASL asks the mechanism for its first token.
func (c *Core) beginSASL() {
	c.phase = authenticating
	c.sasl = saslExchange{state: saslChallenge}
}

// saslAnswered handles a frame during the exchange. Only the answer to the last token
// may arrive, because nothing else was requested.
//
// A refusal is final, like a refusal of other credentials: the same password would
// fail everywhere, and repeated attempts would only fill logs. Also final is a server
// without SASL. Any other error ends only the connection.
func (c *Core) saslAnswered(frame []byte, now time.Duration) {
	var h wire.ReplyHeader
	var resp wire.SetSASLResponse
	c.rd.Reset(frame)
	h.Decode(&c.rd)
	last := c.sasl.state == saslLast
	switch {
	case c.rd.Err() != nil || h.Xid != c.sasl.xid || c.sasl.state != saslSent && !last:
		c.dropConnection(fmt.Errorf("%w: unexpected frame instead of the answer to the SASL token", ErrProtocol), now)
		return
	case h.Err == wire.ErrAuthFailed || h.Err == wire.ErrSessionClosedRequireSASL:
		c.finish(AuthFailed, fmt.Errorf("%w: SASL: the server refused the client: %w", ErrAuthFailed, h.Err))
		return
	case h.Err != wire.ErrOK:
		c.dropConnection(fmt.Errorf("%w: SASL: %w", ErrRefused, h.Err), now)
		return
	}
	if resp.Decode(&c.rd); c.rd.Finish() != nil {
		c.dropConnection(fmt.Errorf("%w: answer to the SASL token: %w", ErrProtocol, c.rd.Finish()), now)
		return
	}
	switch {
	case last && len(resp.Token) > 0:
		c.dropConnection(fmt.Errorf("%w: the server continues SASL after the last token", ErrProtocol), now)
	case last:
		c.startConnected(now)
	case resp.Token == nil:
		// Java's server answers so if it has no JAAS section for SASL.
		c.finish(AuthFailed, fmt.Errorf("%w: the server does not support SASL", ErrAuthFailed))
	default:
		c.sasl.state, c.sasl.challenge = saslChallenge, append([]byte(nil), resp.Token...)
	}
}

// identityDemanded handles an answer that says that the server requires an identity
// that this client did not prove. Like Java's client, the core does not try again:
// the result would be the same.
func (c *Core) identityDemanded(h wire.ReplyHeader, now time.Duration) error {
	if call := c.pending.first; call != nil && call.xid == h.Xid {
		if err := c.answer(h, now); err != nil || c.phase == ended {
			return err
		}
	}
	c.finish(AuthFailed, fmt.Errorf("%w: the server requires another identity: %w", ErrAuthFailed, h.Err))
	return nil
}
