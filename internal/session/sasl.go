package session

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zklock/zklock/internal/sasl"
	"github.com/zklock/zklock/internal/wire"
)

// SASL is the user as whom every connection authenticates by DIGEST-MD5, after the
// handshake and before anything else.
type SASL struct {
	User, Password string
	// Rand provides the nonces. The server must not be able to predict them.
	Rand io.Reader
}

// saslExchange is the exchange on the present connection.
type saslExchange struct {
	client *sasl.Client
	xid    int32 // of the unanswered token
}

// beginSASL sends the empty token that asks the server for its challenge.
func (c *Core) beginSASL() {
	c.phase = authenticating
	c.sasl.client = sasl.NewClient(c.cfg.SASL.User, c.cfg.SASL.Password)
	c.sendToken([]byte{})
}

// sendToken sends the next token of the exchange. Tokens and requests share one
// numbering, as in Java's client.
func (c *Core) sendToken(token []byte) {
	c.nextXid()
	c.sasl.xid = c.xid
	c.out = wire.AppendRequest(c.out, c.xid, wire.OpSASL, &wire.GetSASLRequest{Token: token})
}

// saslAnswered handles a frame during the exchange. Only the answer to the last token
// may arrive, because nothing else was requested.
//
// A refusal is final, like a refusal of other credentials: the same password would
// fail everywhere, and repeated attempts would only fill logs. Also final are a
// server that cannot prove that it knows the password, and a server without SASL. Any
// other error ends only the connection.
func (c *Core) saslAnswered(frame []byte, now time.Duration) {
	var h wire.ReplyHeader
	var resp wire.SetSASLResponse
	c.rd.Reset(frame)
	h.Decode(&c.rd)
	switch {
	case c.rd.Err() != nil || h.Xid != c.sasl.xid:
		c.dropConnection(fmt.Errorf("%w: unexpected frame instead of the answer to the SASL token", ErrProtocol), now)
		return
	case h.Err == wire.ErrAuthFailed || h.Err == wire.ErrSessionClosedRequireSASL:
		c.finish(AuthFailed, fmt.Errorf("%w: SASL: %w", ErrAuthFailed, h.Err))
		return
	case h.Err != wire.ErrOK:
		c.dropConnection(fmt.Errorf("%w: SASL: %w", ErrRefused, h.Err), now)
		return
	}
	if resp.Decode(&c.rd); c.rd.Finish() != nil {
		c.dropConnection(fmt.Errorf("%w: answer to the SASL token: %w", ErrProtocol, c.rd.Finish()), now)
		return
	}
	if resp.Token == nil {
		// Java's server answers so if it has no JAAS section for SASL.
		c.finish(AuthFailed, fmt.Errorf("%w: the server does not support SASL", ErrAuthFailed))
		return
	}
	token, err := c.sasl.client.Step(resp.Token, c.cfg.SASL.Rand)
	switch {
	case errors.Is(err, sasl.ErrMalformed) || errors.Is(err, sasl.ErrUnsupported) || errors.Is(err, sasl.ErrServerProof):
		c.finish(AuthFailed, fmt.Errorf("%w: %w", ErrAuthFailed, err))
	case err != nil:
		c.dropConnection(err, now)
	case token != nil:
		c.sendToken(token)
	default:
		c.startConnected(now)
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
