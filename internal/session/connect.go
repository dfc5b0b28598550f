package session

import (
	"fmt"
	"math"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// Dial asks the driver for a connection.
type Dial struct {
	Gen      uint64        // names the connection in what the driver puts in
	Server   string        // one of Config.Servers
	Deadline time.Duration // for connecting and the handshake together
}

// Live is the generation of the connection that is wanted, 0 if none is. The
// driver gives up any other: a dial under way as well as an open connection.
func (c *Core) Live() uint64 {
	if c.phase == waiting || c.phase == ended {
		return 0
	}
	return c.gen
}

// WantDial returns the connection to make now, if one is due. Each is asked for
// once; its outcome goes to Dialed or Lost.
func (c *Core) WantDial(now time.Duration) (Dial, bool) {
	if c.phase != waiting || now < c.dialAt {
		return Dial{}, false
	}
	c.current = c.next
	c.next = (c.next + 1) % len(c.cfg.Servers)
	c.gen++
	c.phase = dialing
	c.deadline = now + c.budget()
	return Dial{Gen: c.gen, Server: c.cfg.Servers[c.current], Deadline: c.deadline}, true
}

// DialDue reports whether WantDial would return a connection to make.
func (c *Core) DialDue(now time.Duration) bool { return c.phase == waiting && now >= c.dialAt }

// Failure is why a server could not be used when it was last tried.
type Failure struct {
	Server string
	Err    error // nil if it was not tried, or worked
}

// Failures returns the last failure of each server, in the order in which they
// are tried. The slice is the core's: read it before the next step.
func (c *Core) Failures() []Failure { return c.failures }

// minBudget keeps a long list of servers from leaving no time for any.
const minBudget = 100 * time.Millisecond

// budget is the time for one server: within a session timeout each gets a turn.
func (c *Core) budget() time.Duration {
	t := c.Timeout()
	if c.sessionID == 0 {
		t = c.cfg.Timeout // what another server granted was for another session
	}
	return max(t/time.Duration(len(c.cfg.Servers)), min(t, minBudget))
}

// Dialed tells that the connection gen is open, and begins the handshake.
func (c *Core) Dialed(gen uint64, now time.Duration) {
	if gen != c.Live() || c.phase != dialing {
		return
	}
	c.phase = greeting
	c.connectSent, c.lastSend = now, now
	req := wire.ConnectRequest{
		LastZxidSeen: c.lastZxid,
		// What was asked for, not what was got: another server of the
		// ensemble may grant more.
		Timeout:     int32(min(c.cfg.Timeout.Milliseconds(), math.MaxInt32)),
		SessionID:   c.sessionID,
		Password:    c.password[:],
		ReadOnly:    c.cfg.ReadOnly,
		HasReadOnly: true,
	}
	c.out = wire.AppendRecord(c.out[:0], &req)
}

// Lost tells that the connection gen could not be made or has ended, with the
// reason.
func (c *Core) Lost(gen uint64, err error, now time.Duration) {
	if gen != 0 && gen == c.Live() {
		c.lose(err, now)
	}
}

// lose gives the present connection up.
func (c *Core) lose(err error, now time.Duration) {
	c.failures[c.current].Err = err
	// A connection that was up for a while was a success: what follows it is a
	// first failure, with a short delay.
	wasUp := c.phase == connected
	if wasUp && now-c.upSince >= steadyAfter {
		c.attempt = 0
	}
	c.phase = waiting
	c.out = c.out[:0]
	c.pings, c.setWatches = 0, 0
	// Nothing of this connection counts for the next one.
	c.auths.sent, c.auths.answered = 0, 0
	c.probe, c.sasl = prober{}, saslExchange{}
	if c.closing {
		c.finish(Closed, err)
		return
	}
	lost := Unknown
	c.apart = c.pending.has(wire.OpMultiRead)
	c.failAll(&c.pending, ErrConnectionLost, lost)
	c.joining = 0
	if wasUp {
		c.tellState(Disconnected, err)
		if c.madeReadOnly {
			// A server without a quorum made this session up: no other
			// server knows it.
			c.endSession(err)
		}
	} else if c.madeReadOnly && c.untold {
		c.forgetSession() // as above, and nobody knows of it
	}
	c.dialAt = now + c.backoff(now)
	c.attempt++
}

// greeted handles the answer to the ConnectRequest.
func (c *Core) greeted(frame []byte, now time.Duration) {
	if err := c.errorReply(frame); err != nil {
		c.lose(err, now)
		return
	}
	var r wire.ConnectResponse
	c.rd.Reset(frame)
	r.Decode(&c.rd)
	resuming := c.sessionID != 0
	switch {
	// Each refusal below is of one kind: "expired" only where a server has
	// spoken about the session itself, else the next server may know better.
	case c.rd.Finish() != nil:
		c.lose(fmt.Errorf("%w: answer to the connect request: %w", ErrProtocol, c.rd.Finish()), now)
	case (r.SessionID == 0 || r.Timeout <= 0) && resuming:
		c.expire(ErrSessionExpired, now)
	case r.SessionID == 0 || r.Timeout <= 0:
		c.lose(fmt.Errorf("%w: no session given", ErrRefused), now)
	case len(r.Password) != passwordSize:
		c.lose(fmt.Errorf("%w: session password of %d bytes, want %d", ErrProtocol, len(r.Password), passwordSize), now)
	case r.ReadOnly && !c.cfg.ReadOnly:
		c.lose(ErrReadOnly, now)
	case resuming && r.SessionID != c.sessionID:
		c.expire(fmt.Errorf("%w: the server answered with session %#x instead of %#x",
			ErrSessionExpired, uint64(r.SessionID), uint64(c.sessionID)), now)
	case !resuming && r.SessionID == c.formerID:
		c.lose(fmt.Errorf("%w: the new session has the id of the one before", ErrProtocol), now)
	default:
		c.accepted(&r, now)
	}
}

// errorReply returns the error that a server sent in place of the answer to the
// connect request, nil if there is none. Java's sends a reply's bare header, for one
// if it is read-only and keeps no local sessions. Any other answer is longer.
func (c *Core) errorReply(frame []byte) error {
	var h wire.ReplyHeader
	c.rd.Reset(frame)
	h.Decode(&c.rd)
	switch {
	case c.rd.Finish() != nil || h.Err >= wire.ErrOK: // all errors are negative
		return nil
	case h.Err == wire.ErrNotReadOnly:
		return fmt.Errorf("%w and begins no session", ErrReadOnly)
	}
	return fmt.Errorf("%w: answer to the connect request: %w", ErrRefused, h.Err)
}

// expire ends a session that the server did not resume.
func (c *Core) expire(err error, now time.Duration) {
	c.lose(err, now)
	switch {
	case c.phase == ended:
	case c.untold:
		// It ended while its first connection authenticated: no call was made in it.
		c.forgetSession()
	default:
		c.endSession(err)
	}
}

// accepted takes the session that a server gave or resumed.
func (c *Core) accepted(r *wire.ConnectResponse, now time.Duration) {
	resumed := c.sessionID != 0
	c.untold = c.untold || !resumed
	c.sessionID = r.SessionID
	copy(c.password[:], r.Password)
	c.negotiated = time.Duration(r.Timeout) * time.Millisecond
	c.lastRecv = now
	c.readOnly = r.ReadOnly
	c.madeReadOnly = c.readOnly && !resumed
	if c.cfg.SASL != nil {
		c.beginSASL()
		return
	}
	c.up(now)
}

// up begins work on a connection: credentials, watches, then what waits.
func (c *Core) up(now time.Duration) {
	c.phase, c.conn = connected, c.conn+1
	c.upSince, c.lastRecv, c.untold = now, now, false
	c.failures[c.current].Err = nil
	// The order is the promise: rights before anything that needs them, and
	// watches, whose missed events precede their answer, before any read.
	c.sendAuths()
	c.out, c.setWatches = c.watches.frames(c.out, c.lastZxid)
	if c.readOnly {
		c.probe.start(now)
		c.tellState(ConnectedReadOnly, nil)
		return
	}
	c.tellState(Connected, nil)
}

// steadyAfter is how long a connection must have lasted to count as success:
// one that a server drops at once must not be made again without delay.
const steadyAfter = time.Second

// The bounds of the delay before a server is dialled: short while the session
// may be saved, long when nobody has answered for longer than it lasts, but never
// more than a quarter of the session timeout.
const (
	firstDelay = 20 * time.Millisecond
	longDelay  = 3 * time.Second
	shortDelay = time.Second
)

// backoff is the delay before the next dial: anything from nothing to a bound
// that doubles with each failure (full jitter), so that clients cut off together
// don't come back together.
func (c *Core) backoff(now time.Duration) time.Duration {
	limit := min(max(c.Timeout()/16, firstDelay), shortDelay)
	if now-c.lastRecv > c.Timeout() {
		limit = max(min(c.Timeout()/4, longDelay), firstDelay)
	}
	bound := min(firstDelay<<min(c.attempt, 10), limit)
	return time.Duration(c.cfg.Rand.Int64N(int64(bound)))
}
