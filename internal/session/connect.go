package session

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// Dial is a request to the driver to make a connection.
type Dial struct {
	Gen      uint64        // identifies the connection in later inputs
	Server   string        // one of Config.Servers
	Deadline time.Duration // for the connection, with TLS and the start of SASL
	Turn     time.Duration // the most of it that TLS and the start of SASL may take together
}

// Live returns the generation of the connection that the core wants, or 0 if it wants
// none. The driver abandons any other: a dial in progress and an open connection
// alike.
func (c *Core) Live() uint64 {
	if c.phase == waiting || c.phase == ended {
		return 0
	}
	return c.gen
}

// WantDial returns the connection to make now, if one is due. Each one is returned
// once. The driver reports its outcome with Dialed or Lost.
func (c *Core) WantDial(now time.Duration) (Dial, bool) {
	if c.phase != waiting || now < c.dialAt {
		return Dial{}, false
	}
	c.current = c.next
	c.next = (c.next + 1) % len(c.cfg.Servers)
	c.gen++
	c.phase = dialing
	turn := c.dialTimeout()
	c.deadline = now + turn
	if len(c.cfg.Servers) == 1 {
		// A name server can be slow, and the dial divides the time among the host's addresses.
		whole := c.sessionTime()
		if c.limitsDial() {
			whole = min(whole, c.cfg.DialLimit)
		}
		c.deadline = now + max(whole, turn)
	}
	return Dial{Gen: c.gen, Server: c.cfg.Servers[c.current], Deadline: c.deadline, Turn: turn}, true
}

// DialDue reports whether WantDial would return a connection to make.
func (c *Core) DialDue(now time.Duration) bool { return c.phase == waiting && now >= c.dialAt }

// SetServers replaces the servers, of which there must be at least one. A connection to
// a server that is not among them ends. Any other connection stays.
func (c *Core) SetServers(servers []string, now time.Duration) {
	if c.phase == ended {
		return
	}
	inUse := c.cfg.Servers[c.current]
	if c.Live() != 0 && !c.closing && !slices.Contains(servers, inUse) {
		c.dropConnection(ErrServerRemoved, now)
	}
	failed := c.failures
	c.useServers(servers)
	for i := range c.failures {
		if was := slices.IndexFunc(failed, func(f Failure) bool { return f.Server == c.failures[i].Server }); was >= 0 {
			c.failures[i].Err = failed[was].Err
		}
	}
	c.current = max(slices.Index(c.cfg.Servers, inUse), 0)
	c.next = 0
	if c.cfg.Servers[0] == inUse {
		c.next = 1 % len(c.cfg.Servers)
	}
}

// useServers stores a copy of the servers, shuffled unless their order matters, and
// forgets the failures.
func (c *Core) useServers(servers []string) {
	c.cfg.Servers = slices.Clone(servers)
	if !c.cfg.KeepOrder {
		c.cfg.Rand.Shuffle(len(servers), func(i, j int) {
			c.cfg.Servers[i], c.cfg.Servers[j] = c.cfg.Servers[j], c.cfg.Servers[i]
		})
	}
	maps.DeleteFunc(c.oldServers, func(server string, _ release) bool { return !slices.Contains(servers, server) })
	c.updateRelease()
	c.failures = nil // Dial may still read the old slice
	for _, s := range c.cfg.Servers {
		c.failures = append(c.failures, Failure{Server: s})
	}
}

// Failure is the reason why a server could not be used when it was last tried.
type Failure struct {
	Server string
	Err    error // nil if the server was not tried, or worked
}

// Failures returns the last failure of each server, in the order in which they are
// tried. The slice belongs to the core: read it before the next step.
func (c *Core) Failures() []Failure { return c.failures }

// Unfinished returns a copy of Failures. If the server of the present attempt has not failed,
// its Err says which step the attempt waits for.
func (c *Core) Unfinished() []Failure {
	list := slices.Clone(c.failures)
	if f := &list[c.current]; f.Err == nil {
		f.Err = c.awaited()
	}
	return list
}

// minDialTimeout is the minimum time for one server, however long the list is, and however
// short the timeout that a server granted.
const minDialTimeout = 100 * time.Millisecond

// minFirstDialTimeout is the minimum time for one server before the first session, however
// short Config.DialLimit is: a handshake with TLS over a slow network needs several round trips.
const minFirstDialTimeout = 1500 * time.Millisecond

// dialTimeout returns the time for one server. Within a session timeout, each server gets a turn.
// Within Config.DialLimit, more than half of the servers get one: if half are down, no quorum
// answers, and with shorter turns no healthy server of a slow ensemble could answer in time.
func (c *Core) dialTimeout() time.Duration {
	n := time.Duration(c.places())
	each := c.sessionTime() / n
	if c.limitsDial() {
		each = min(each, max(c.cfg.DialLimit/(n/2+1), minFirstDialTimeout))
	}
	return max(each, min(c.cfg.Timeout, minDialTimeout))
}

// sessionTime returns the timeout of the session that the next connection is for.
func (c *Core) sessionTime() time.Duration {
	if c.sessionID == 0 {
		return c.cfg.Timeout // the negotiated timeout belonged to another session
	}
	return c.Timeout()
}

// places returns the number of servers that share the time for dialing. A single host name counts
// as two servers, because it can have several addresses, and the driver tries the next address
// after a failure.
func (c *Core) places() int {
	if n := len(c.cfg.Servers); n > 1 {
		return n
	}
	if _, err := netip.ParseAddrPort(c.cfg.Servers[0]); err == nil || strings.HasPrefix(c.cfg.Servers[0], "unix:") {
		return 1
	}
	return 2
}

// limitsDial reports whether Config.DialLimit applies: before the first session, if another server
// can be tried.
func (c *Core) limitsDial() bool {
	return c.cfg.DialLimit > 0 && c.conn == 0 && c.places() > 1
}

// extendDeadline begins the time for the next step of an attempt. Before the first session, each
// step has it, because a turn can be short: only a server that makes progress gets more time.
func (c *Core) extendDeadline(now time.Duration) {
	if c.limitsDial() {
		c.deadline = now + c.dialTimeout()
	}
}

// Dialed reports that the connection gen is open. It begins the handshake.
func (c *Core) Dialed(gen uint64, now time.Duration) {
	if gen != c.Live() || c.phase != dialing {
		return
	}
	c.phase = handshaking
	c.deadline = min(c.deadline, now+c.dialTimeout())
	c.extendDeadline(now)
	c.connectSent, c.lastSend = now, now
	req := wire.ConnectRequest{
		LastZxidSeen: c.lastZxid,
		// The requested timeout, not the negotiated one: another server of the
		// ensemble may grant more.
		Timeout:     int32(min(c.cfg.Timeout.Milliseconds(), math.MaxInt32)),
		SessionID:   c.sessionID,
		Password:    c.password[:],
		ReadOnly:    c.cfg.ReadOnly,
		HasReadOnly: true,
	}
	c.out = wire.AppendRecord(c.out[:0], &req)
}

// Lost reports that the connection gen could not be made or has ended, with the
// reason.
func (c *Core) Lost(gen uint64, err error, now time.Duration) {
	if gen != 0 && gen == c.Live() {
		if c.phase == connected {
			c.connectionEnded(err, now)
		}
		c.dropConnection(err, now)
	}
}

// dropConnection gives up the present connection.
func (c *Core) dropConnection(err error, now time.Duration) {
	c.failures[c.current].Err = err
	// A connection that was up for a while counts as a success. The failure after it
	// counts as the first, with a short delay.
	wasUp := c.phase == connected
	// A server that closes the connection may have sent the request on to the leader: it
	// can end before the answer, or a proxy can close the connection.
	if c.phase == handshaking && c.sessionID != 0 && !errors.Is(err, ErrRefused) {
		c.givenUp = now
	}
	if wasUp && now-c.upSince >= stableAfter {
		c.failedAttempts = 0
	}
	c.phase = waiting
	c.out = c.out[:0]
	c.pings, c.setWatches = 0, 0
	// Nothing of this connection carries over to the next one.
	c.auths.sent, c.auths.answered = 0, 0
	c.probe, c.sasl = prober{}, saslExchange{}
	if c.closing {
		c.finish(Closed, err)
		return
	}
	lost := Unknown
	if errors.Is(err, ErrOldServer) {
		c.refuseReads()
	}
	c.noReadBatches = c.pending.has(wire.OpMultiRead)
	c.failAll(&c.pending, ErrConnectionLost, lost)
	c.batchableSent = 0
	if wasUp {
		c.notifyState(Disconnected, err)
		if c.readOnlySession {
			// A server without a quorum created this session: no other server knows
			// it.
			c.endSession(err)
		}
	} else if c.readOnlySession && c.unreported {
		c.forgetSession() // as above, and no notice has reported it
	}
	c.dialAt = now + c.backoff(now)
	c.failedAttempts++
}

// minGranted is the shortest session timeout that the core accepts, unless a shorter one was
// requested. With a shorter one, pings and heartbeats would never pause.
const minGranted = 10 * time.Millisecond

// connectAnswered handles the answer to the ConnectRequest.
func (c *Core) connectAnswered(frame []byte, now time.Duration) {
	if err := c.errorReply(frame); err != nil {
		c.dropConnection(err, now)
		return
	}
	var r wire.ConnectResponse
	c.rd.Reset(frame)
	r.Decode(&c.rd)
	resuming := c.sessionID != 0
	switch {
	// Only a server that answered about the session itself can expire it. After any
	// other refusal, the next server may know better.
	case c.rd.Finish() != nil:
		c.dropConnection(fmt.Errorf("%w: answer to the connect request: %w", ErrProtocol, c.rd.Finish()), now)
	case (r.SessionID == 0 || r.Timeout <= 0) && resuming:
		c.expire(ErrSessionExpired, now)
	case r.SessionID == 0 || r.Timeout <= 0:
		c.dropConnection(fmt.Errorf("%w: the server opened no session", ErrRefused), now)
	case time.Duration(r.Timeout)*time.Millisecond < min(c.cfg.Timeout, minGranted):
		c.dropConnection(fmt.Errorf("%w: session timeout of %d ms", ErrProtocol, r.Timeout), now)
	case len(r.Password) != passwordSize:
		c.dropConnection(fmt.Errorf("%w: session password of %d bytes, want %d", ErrProtocol, len(r.Password), passwordSize), now)
	case r.ReadOnly && !c.cfg.ReadOnly:
		c.dropConnection(ErrReadOnly, now)
	case resuming && r.SessionID != c.sessionID:
		c.expire(fmt.Errorf("%w: the server answered with session %#x instead of %#x",
			ErrSessionExpired, uint64(r.SessionID), uint64(c.sessionID)), now)
	case !resuming && r.SessionID == c.previousID:
		c.dropConnection(fmt.Errorf("%w: the new session has the ID of the previous one", ErrProtocol), now)
	default:
		c.acceptSession(&r, now)
	}
}

// errorReply returns the error that a server sent instead of an answer to the connect
// request, or nil. Java's server sends a bare reply header, for example if it is
// read-only and keeps no local sessions. Any other answer is longer.
func (c *Core) errorReply(frame []byte) error {
	var h wire.ReplyHeader
	c.rd.Reset(frame)
	h.Decode(&c.rd)
	switch {
	case c.rd.Finish() != nil || h.Err >= wire.ErrOK: // all errors are negative
		return nil
	case h.Err == wire.ErrNotReadOnly:
		return fmt.Errorf("%w and opens no session", ErrReadOnly)
	}
	return fmt.Errorf("%w: answer to the connect request: %w", ErrRefused, h.Err)
}

// expire ends a session that the server did not resume.
func (c *Core) expire(err error, now time.Duration) {
	c.dropConnection(err, now)
	switch {
	case c.phase == ended:
	case c.unreported:
		// It ended while its first connection authenticated, so no call was made in
		// it.
		c.forgetSession()
	default:
		c.endSession(err)
	}
}

// acceptSession stores the session that a server created or resumed.
func (c *Core) acceptSession(r *wire.ConnectResponse, now time.Duration) {
	resumed := c.sessionID != 0
	c.unreported = c.unreported || !resumed
	c.sessionID = r.SessionID
	copy(c.password[:], r.Password)
	c.negotiated = time.Duration(r.Timeout) * time.Millisecond
	c.lastRecv = now
	c.readOnly = r.ReadOnly
	c.readOnlySession = c.readOnly && !resumed
	if c.cfg.SASL {
		c.beginSASL()
		c.extendDeadline(now)
		return
	}
	c.startConnected(now)
}

// startConnected begins the work on a connection: credentials, watches, then queued
// calls.
func (c *Core) startConnected(now time.Duration) {
	c.phase, c.conn = connected, c.conn+1
	c.upSince, c.lastRecv, c.unreported = now, now, false
	c.failures[c.current].Err = nil
	// This order is guaranteed: credentials before anything that needs them, and
	// watches before any read. The events that were missed precede the answer that
	// sets the watches.
	c.sendAuths()
	var dropped []string
	if c.release < release36 {
		dropped = c.watches.dropPersistent()
	}
	c.out, c.setWatches = c.watches.frames(c.out, c.lastZxid, c.cfg.MaxRequest)
	if c.readOnly {
		c.probe.start(now)
		c.notifyState(ConnectedReadOnly, nil)
	} else {
		c.askRelease(now)
		c.askLeader(now)
		c.notifyState(Connected, nil)
	}
	for _, path := range dropped {
		c.notifyEvent(wire.EventPersistentWatchRemoved, path, -1, now)
	}
	c.refuseUnknown()
}

// stableAfter is how long a connection must last to count as a success. Otherwise a
// server that closes each connection at once would be dialed again without delay.
const stableAfter = time.Second

// Limits of the delay before a dial. The limit is low while the session may still be
// saved. It is high when no server has answered for longer than the session timeout,
// but at most a quarter of that timeout.
const (
	minBackoff        = 20 * time.Millisecond
	maxBackoff        = 3 * time.Second
	maxSessionBackoff = time.Second
)

// backoff returns the delay before the next dial: a random time up to a limit that
// doubles with each failure (full jitter). So clients that lost their connections at
// the same time do not reconnect at the same time.
func (c *Core) backoff(now time.Duration) time.Duration {
	limit := min(max(c.Timeout()/16, minBackoff), maxSessionBackoff)
	if now-c.lastRecv > c.Timeout() {
		limit = max(min(c.Timeout()/4, maxBackoff), minBackoff)
	}
	bound := min(minBackoff<<min(c.failedAttempts, 10), limit)
	return time.Duration(c.cfg.Rand.Int64N(int64(bound)))
}
