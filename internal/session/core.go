package session

import (
	"math/rand/v2"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// Auth is a credential that every connection begins with.
type Auth struct {
	Scheme string
	Data   []byte
}

// Config is what a core is made from.
type Config struct {
	// Servers are the addresses, in whatever form the driver dials; at least
	// one.
	Servers []string
	// Timeout is the session timeout to ask for. Below 1 ms counts as 1 ms.
	Timeout time.Duration
	// ReadOnly takes servers that have lost their quorum.
	ReadOnly bool
	// KeepOrder keeps the servers' order, else they are shuffled.
	KeepOrder bool
	// MaxRequest is the longest frame body to send, in bytes. 0 means
	// wire.DefaultMaxFrame.
	MaxRequest int
	// JoinWindow is how many requests with calls that permit joining may be
	// unanswered before others of that kind are kept back. 0 means 8.
	JoinWindow int
	Auth       []Auth
	// SASL, if not nil, is who every connection authenticates as.
	SASL *SASL
	// Rand is the source of all chance: shuffle and backoff.
	Rand *rand.Rand
}

// phase is what the core is about.
type phase uint8

const (
	waiting        phase = iota // until dialAt
	dialing                     // the driver makes a connection
	greeting                    // ConnectRequest sent, its answer awaited
	authenticating              // a SASL token sent, its answer awaited
	connected                   // requests go out
	ended                       // for good
)

// passwordSize is the length of a session password on the wire.
const passwordSize = 16

// Core is one session after another. It is not safe for concurrent use.
type Core struct {
	cfg   Config
	phase phase
	state State // as last told

	// The connection.
	current int // index of the server in use or last tried
	// failures has one entry a server: what a dial that never succeeds tells.
	failures []Failure
	next     int    // index of the server to dial next
	gen      uint64 // counts dials
	conn     uint64 // counts successful handshakes
	attempt  int    // failures in a row
	dialAt   time.Duration
	deadline time.Duration // for dial, handshake and SASL together
	sasl     saslExchange
	// connectSent is when the connect request was encoded: the earliest moment
	// from which the server may count the session timeout.
	connectSent time.Duration
	upSince     time.Duration // when the handshake succeeded
	lastSend    time.Duration
	lastRecv    time.Duration
	pings       int  // unanswered
	setWatches  int  // unanswered frames
	readOnly    bool // the server has no quorum
	probe       prober

	// The session.
	sessionID int64
	password  [passwordSize]byte
	formerID  int64 // of the session before
	untold    bool  // nobody was told of this session yet
	// madeReadOnly: a server without a quorum made the session up.
	madeReadOnly bool
	negotiated   time.Duration // 0 before the first session
	epoch        uint64
	lastZxid     int64
	xid          int32
	watches      watches
	auths        authList

	queue   callList // not encoded, all of the present session
	pending callList // encoded, in the order of the wire
	joiner  joiner
	joining int    // how many in pending are, or could have been, joined
	joined  uint64 // counts the calls that were
	// noMultiRead: a server did not know the request by which listings are joined.
	noMultiRead bool
	// apart: none are joined on this connection, as the one before ended without
	// the answer to such a request. It may have been too long.
	apart bool
	// out are the bytes for the present connection that the driver has not
	// taken: encoded requests, and those without a call, such as pings.
	out     []byte
	reason  error // why the core ended
	notices []Notice
	rd      jute.Reader

	// closing: no more calls are taken, and closeCall is the last in the queue.
	closing   bool
	closeAt   time.Duration
	closeCall Call
}

// New returns a core that wants to dial at once.
func New(cfg Config, now time.Duration) *Core {
	cfg.Servers = append([]string(nil), cfg.Servers...)
	cfg.Timeout = max(cfg.Timeout, time.Millisecond)
	if cfg.MaxRequest <= 0 {
		cfg.MaxRequest = wire.DefaultMaxFrame
	}
	if cfg.JoinWindow <= 0 {
		cfg.JoinWindow = joinWindow
	}
	c := &Core{cfg: cfg, dialAt: now, lastRecv: now}
	if !cfg.KeepOrder {
		cfg.Rand.Shuffle(len(cfg.Servers), func(i, j int) {
			cfg.Servers[i], cfg.Servers[j] = cfg.Servers[j], cfg.Servers[i]
		})
	}
	// Credentials and failures keep the order given and that of the servers.
	for _, s := range cfg.Servers {
		c.failures = append(c.failures, Failure{Server: s})
	}
	for _, a := range cfg.Auth {
		c.auths.all = append(c.auths.all, authEntry{auth: a})
	}
	return c
}

// State is the state as last told.
func (c *Core) State() State { return c.state }

// SessionID is the id of the present session, 0 if there is none.
func (c *Core) SessionID() int64 { return c.sessionID }

// Timeout is the negotiated session timeout, before the first session the one
// that is asked for.
func (c *Core) Timeout() time.Duration {
	if c.negotiated > 0 {
		return c.negotiated
	}
	return c.cfg.Timeout
}

// Epoch counts the sessions that have ended: what calls are submitted with.
func (c *Core) Epoch() uint64 { return c.epoch }

// Ready reports whether the core is connected and the server has taken all
// credentials.
func (c *Core) Ready() bool {
	return c.phase == connected && c.auths.answered == c.auths.sent
}

// Ended reports whether the core is closed or failed for good.
func (c *Core) Ended() bool { return c.phase == ended }

// Reason is why the core has ended, nil before and after Close.
func (c *Core) Reason() error { return c.reason }

// Submit queues a call for the session of an epoch. It comes back in a notice,
// at once if it can't be sent.
func (c *Core) Submit(call *Call, epoch uint64) {
	call.Result.reset()
	switch {
	case c.phase == ended && c.state == AuthFailed:
		c.failCall(call, ErrAuthFailed, No)
	case c.phase == ended || c.closing:
		c.failCall(call, ErrClosed, No)
	case epoch != c.epoch:
		c.failCall(call, ErrSessionExpired, No)
	case !call.Op.valid():
		c.failCall(call, ErrInvalidOp, No)
	// The estimate is never below the truth: most calls need no more than it.
	case headerSize+call.Op.size() > c.cfg.MaxRequest && c.tooLarge(&call.Op):
		c.failCall(call, ErrTooLarge, No)
	case call.Op.Code == wire.OpAuth:
		c.submitAuth(call)
	default:
		call.state = queued
		call.joins = c.joins(&call.Op) != notJoined
		c.queue.push(call)
	}
}

// tooLarge measures a request exactly, by encoding it: for the few whose
// estimated size is not clearly below the limit.
func (c *Core) tooLarge(o *Op) bool {
	return headerSize+len(o.appendTo(nil)) > c.cfg.MaxRequest
}

// Withdraw takes back a call that was not encoded yet. It reports whether it
// did; then the call is the submitter's again and is in no notice.
func (c *Core) Withdraw(call *Call) bool {
	if call.state != queued || call.Op.Code == wire.OpAuth {
		return false
	}
	c.queue.remove(call)
	call.state = idle
	return true
}

// writeChunk is how many bytes are collected into one write: enough to make the
// number of writes immaterial, and few enough that a call which waits for its
// turn can still be withdrawn.
const writeChunk = 64 << 10

// HasOutput reports whether TakeOutput would return any bytes.
func (c *Core) HasOutput() bool {
	return len(c.out) > 0 || c.sendable()
}

// TakeOutput encodes calls that wait and returns the bytes to write next on the
// connection Live; spare becomes the room for the bytes after them.
func (c *Core) TakeOutput(spare []byte, now time.Duration) []byte {
	c.joiner.rest()
	for len(c.out) < writeChunk && c.sendable() {
		c.sendNext(now)
	}
	out := c.out
	c.out = spare[:0]
	if len(out) > 0 {
		c.lastSend = now
	}
	return out
}

// send encodes a call and awaits its answer.
func (c *Core) send(call *Call, now time.Duration) {
	c.nextXid()
	call.xid, call.state = c.xid, sent
	call.Result.Sent, call.Result.Conn = now, c.conn
	if len(call.members) > 0 {
		c.out = appendJoined(c.out, call)
	} else {
		c.out = appendRequest(c.out, call.xid, &call.Op)
	}
	c.pending.push(call)
	if call.joins {
		c.joining++
	}
}

// nextXid numbers the next request.
func (c *Core) nextXid() {
	c.xid++
	if c.xid <= 0 { // past the last number; those below zero mean other things
		c.xid = 1
	}
}

// closeWait bounds how long Close waits for the server's word.
const closeWait = 5 * time.Second

// Close ends the session: calls already submitted are still answered, then the
// server is asked to close it. Without a connection, and when no answer comes
// within 5 s or the session timeout, the server is left to expire it, and the
// Err of the state Closed says why.
func (c *Core) Close(now time.Duration) {
	if c.phase == ended || c.closing {
		return
	}
	c.closing = true
	if c.phase != connected {
		c.finish(Closed, ErrConnectionLost)
		return
	}
	c.closeCall = Call{Op: Op{Code: wire.OpCloseSession}, state: queued}
	c.queue.push(&c.closeCall)
	c.closeAt = now + min(closeWait, c.negotiated)
}

// finish ends the core: every call fails.
func (c *Core) finish(s State, err error) {
	fault := ErrClosed
	if s == AuthFailed {
		fault = ErrAuthFailed
	}
	c.phase, c.out, c.reason = ended, nil, err
	c.failAll(&c.pending, fault, Unknown)
	c.failAll(&c.queue, fault, No)
	c.failAuths(fault)
	c.tellState(s, err)
}

// failAll fails the calls of a list in order.
func (c *Core) failAll(l *callList, fault error, applied Outcome) {
	for call := l.pop(); call != nil; call = l.pop() {
		switch {
		case len(call.members) > 0:
			c.failBatch(call, fault, applied)
		case call != &c.closeCall:
			c.failCall(call, fault, applied)
		}
	}
}

// endSession tells that the session is over; the next connection begins a new
// one. What waits in it fails: it must not run in another.
func (c *Core) endSession(err error) {
	c.failAll(&c.queue, ErrSessionExpired, No)
	c.formerID = c.sessionID
	c.epoch++
	c.tellState(Expired, err)
	c.forgetSession()
}

// forgetSession lets the next connection begin a new session.
func (c *Core) forgetSession() {
	c.sessionID, c.password = 0, [passwordSize]byte{}
	c.watches = watches{}
	c.madeReadOnly, c.untold = false, false
}
