package session

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zklock/zklock/internal/sasl"
	"github.com/zklock/zklock/internal/wire"
)

// SASL is who every connection authenticates as by DIGEST-MD5, behind the
// handshake and before anything else.
type SASL struct {
	User, Password string
	// Rand gives the nonces. They must be none that the server can foretell.
	Rand io.Reader
}

// saslExchange is that of the present connection.
type saslExchange struct {
	client *sasl.Client
	xid    int32 // of the token that is unanswered
}

// beginSASL sends the empty token that asks the server for its challenge.
func (c *Core) beginSASL() {
	c.phase = authenticating
	c.sasl.client = sasl.NewClient(c.cfg.SASL.User, c.cfg.SASL.Password)
	c.sendToken([]byte{})
}

// sendToken sends the next token of the exchange. Like Java's client it numbers
// tokens as it does requests.
func (c *Core) sendToken(token []byte) {
	c.nextXid()
	c.sasl.xid = c.xid
	c.out = wire.AppendRequest(c.out, c.xid, wire.OpSASL, &wire.GetSASLRequest{Token: token})
}

// saslAnswered handles a frame while the exchange is under way: nothing but
// the answer to the last token may come, for nothing else was asked.
//
// A refusal is final, as that of other credentials: the same password would
// fail everywhere, and trying it again and again would only fill logs. So is a
// server that can't prove that it knows the password, and one that has no SASL.
// What is broken in other ways costs the connection.
func (c *Core) saslAnswered(frame []byte, now time.Duration) {
	var h wire.ReplyHeader
	var resp wire.SetSASLResponse
	c.rd.Reset(frame)
	h.Decode(&c.rd)
	switch {
	case c.rd.Err() != nil || h.Xid != c.sasl.xid:
		c.lose(fmt.Errorf("%w: something else than the answer to the SASL token", ErrProtocol), now)
		return
	case h.Err == wire.ErrAuthFailed || h.Err == wire.ErrSessionClosedRequireSASL:
		c.finish(AuthFailed, fmt.Errorf("%w: SASL: %w", ErrAuthFailed, h.Err))
		return
	case h.Err != wire.ErrOK:
		c.lose(fmt.Errorf("%w: SASL: %w", ErrRefused, h.Err), now)
		return
	}
	if resp.Decode(&c.rd); c.rd.Finish() != nil {
		c.lose(fmt.Errorf("%w: answer to the SASL token: %w", ErrProtocol, c.rd.Finish()), now)
		return
	}
	if resp.Token == nil {
		// Java's server says so where it has no section for SASL.
		c.finish(AuthFailed, fmt.Errorf("%w: the server does not do SASL", ErrAuthFailed))
		return
	}
	token, err := c.sasl.client.Step(resp.Token, c.cfg.SASL.Rand)
	switch {
	case errors.Is(err, sasl.ErrMalformed) || errors.Is(err, sasl.ErrUnsupported) || errors.Is(err, sasl.ErrServerProof):
		c.finish(AuthFailed, fmt.Errorf("%w: %w", ErrAuthFailed, err))
	case err != nil:
		c.lose(err, now)
	case token != nil:
		c.sendToken(token)
	default:
		c.up(now)
	}
}

// shutOut handles an answer that says that the server demands an identity which
// this client did not prove. Like Java's client it does not try again: nothing
// would be different the next time.
func (c *Core) shutOut(h wire.ReplyHeader, now time.Duration) error {
	if call := c.pending.first; call != nil && call.xid == h.Xid {
		if err := c.answer(h, now); err != nil || c.phase == ended {
			return err
		}
	}
	c.finish(AuthFailed, fmt.Errorf("%w: the server demands another identity: %w", ErrAuthFailed, h.Err))
	return nil
}
