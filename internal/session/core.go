package session

import (
	"math/rand/v2"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// Auth is a credential that is sent at the start of every connection.
type Auth struct {
	Scheme string
	Data   []byte
}

// Config configures a core.
type Config struct {
	// Servers are the addresses, in the form that the driver dials. At least one is
	// required.
	Servers []string
	// Timeout is the session timeout to request. Values below 1 ms count as 1 ms.
	Timeout time.Duration
	// DialLimit is how long the driver waits for the first session. 0 means Timeout.
	DialLimit time.Duration
	// ReadOnly accepts servers that have lost their quorum.
	ReadOnly bool
	// KeepOrder keeps the order of the servers. Otherwise they are shuffled.
	KeepOrder bool
	// MaxRequest is the maximum size of a frame body to send, in bytes. 0 means
	// wire.DefaultMaxFrame.
	MaxRequest int
	// BatchWindow is how many requests with batchable calls may be unanswered before
	// the core keeps further batchable calls back. 0 means 8.
	BatchWindow int
	Auth        []Auth
	// SASL says that every connection authenticates by SASL after the handshake and
	// before anything else.
	SASL bool
	// Rand is the only source of randomness, for the shuffle and the backoff.
	Rand *rand.Rand
}

// phase is the phase of the present connection.
type phase uint8

const (
	waiting        phase = iota // until dialAt
	dialing                     // the driver is connecting
	handshaking                 // ConnectRequest sent, waiting for its answer
	authenticating              // exchanging SASL tokens
	connected                   // requests go out
	ended                       // final
)

// passwordSize is the length of a session password on the wire.
const passwordSize = 16

// Core manages one session after another. It is not safe for concurrent use.
type Core struct {
	cfg   Config
	phase phase
	state State // as last reported

	// The connection.
	current int // index of the server in use or last tried
	// failures has one entry per server. A failing Dial reports them.
	failures       []Failure
	next           int    // index of the server to dial next
	gen            uint64 // counts dials
	conn           uint64 // counts successful handshakes
	failedAttempts int    // consecutive failed connections
	dialAt         time.Duration
	deadline       time.Duration // for dial, handshake and SASL together; see extendDeadline
	sasl           saslExchange
	// connectSent is when the connect request was encoded. The server starts to count
	// the session timeout at this moment or later.
	connectSent time.Duration
	// givenUp is when a connection last ended before the server had answered the request to
	// resume the session. 0 if there was none.
	givenUp    time.Duration
	upSince    time.Duration // when the handshake succeeded
	lastSend   time.Duration
	lastRecv   time.Duration
	pings      int  // unanswered
	setWatches int  // unanswered frames
	readOnly   bool // the server has no quorum
	probe      prober

	// The session.
	sessionID  int64
	password   [passwordSize]byte
	previousID int64 // of the previous session
	unreported bool  // no notice has reported this session yet
	// readOnlySession: a server without a quorum created the session.
	readOnlySession bool
	negotiated      time.Duration // 0 before the first session
	epoch           uint64
	lastZxid        int64
	xid             int32
	watches         watches
	auths           authList

	queue         callList // not encoded; all belong to the present session
	pending       callList // encoded, in wire order
	batcher       batcher
	batchableSent int    // how many calls in pending are batches or batchable
	batchedCalls  uint64 // counts the calls that were sent in batches
	// release is the release of the oldest server in oldServers, or the newest.
	release     release
	oldServers  map[string]release
	releaseCall Call // see askRelease
	leader      leader
	leaderCall  Call // see askLeader
	// noReadBatches: this connection sends no batch of listings, because the one
	// before ended without an answer to such a request. That answer may have been too
	// long.
	noReadBatches bool
	// out holds the bytes for the present connection that the driver has not taken:
	// encoded calls, and requests without a call, such as pings.
	out         []byte
	reason      error // why the core ended
	notices     []Notice
	noticeBytes int // of the paths of the events in notices
	rd          jute.Reader

	// closing: no more calls are accepted, and closeCall is the last one in the
	// queue.
	closing   bool
	closeAt   time.Duration
	closeCall Call
}

// New returns a core that dials immediately.
func New(cfg Config, now time.Duration) *Core {
	cfg.Timeout = max(cfg.Timeout, time.Millisecond)
	if cfg.MaxRequest <= 0 {
		cfg.MaxRequest = wire.DefaultMaxFrame
	}
	if cfg.BatchWindow <= 0 {
		cfg.BatchWindow = defaultBatchWindow
	}
	c := &Core{cfg: cfg, dialAt: now, lastRecv: now, release: newest}
	c.useServers(cfg.Servers)
	for _, a := range cfg.Auth {
		c.auths.all = append(c.auths.all, authEntry{auth: a})
	}
	return c
}

// State returns the state as last reported.
func (c *Core) State() State { return c.state }

// Timeout returns the negotiated session timeout, or the requested one before the
// first session.
func (c *Core) Timeout() time.Duration {
	if c.negotiated > 0 {
		return c.negotiated
	}
	return c.cfg.Timeout
}

// Ready reports whether the core is connected and the server has accepted all
// credentials.
func (c *Core) Ready() bool {
	return c.phase == connected && c.auths.answered == c.auths.sent
}

// Ended reports whether the core has ended: closed, or failed permanently.
func (c *Core) Ended() bool { return c.phase == ended }

// Reason returns why the core ended. It is nil if the core runs or Close ended it.
func (c *Core) Reason() error { return c.reason }

// Submit queues a call for the session of an epoch. The call comes back in a notice,
// immediately if it cannot be sent.
func (c *Core) Submit(call *Call, epoch uint64) {
	call.Result.reset()
	call.refused = false
	switch {
	case c.phase == ended && c.state == AuthFailed:
		c.failCall(call, ErrAuthFailed, No)
	case c.phase == ended || c.closing:
		c.failCall(call, ErrClosed, No)
	case epoch != c.epoch:
		c.failCall(call, ErrSessionExpired, No)
	case !call.Op.valid():
		c.failCall(call, ErrInvalidOp, No)
	// The estimate is never below the exact size, so most calls need no exact
	// measurement.
	case headerSize+call.Op.size() > c.cfg.MaxRequest && c.tooLarge(&call.Op):
		c.failCall(call, ErrTooLarge, No)
	case c.unknown(&call.Op):
		c.refuse(call)
	case call.Op.Code == wire.OpAuth:
		c.submitAuth(call)
	default:
		call.state = queued
		call.batchable = c.batchKindOf(&call.Op) != notBatched
		c.queue.push(call)
	}
}

// tooLarge measures a request exactly, by encoding it. It is used only for requests
// whose estimated size is close to the limit. A request that sets a watch is also too large
// if the next connection could not set the watch again.
func (c *Core) tooLarge(o *Op) bool {
	size := headerSize + len(o.appendTo(nil))
	if o.setsWatch() {
		size = max(size, setWatchesOverhead+setWatchSize(o.Path))
	}
	return size > c.cfg.MaxRequest
}

// Withdraw removes a call that has not been encoded. It reports whether it did. If
// so, the call belongs to the submitter again and appears in no notice.
func (c *Core) Withdraw(call *Call) bool {
	if call.state != queued || call.Op.Code == wire.OpAuth {
		return false
	}
	c.queue.remove(call)
	call.state = idle
	return true
}

// maxWrite is how many bytes are collected into one write. That is enough to make the
// number of writes irrelevant, and few enough that a queued call can still be
// withdrawn.
const maxWrite = 64 << 10

// HasOutput reports whether TakeOutput would return any bytes.
func (c *Core) HasOutput() bool {
	return len(c.out) > 0 || c.sendable()
}

// Unanswered returns how many calls were encoded and have no answer yet.
func (c *Core) Unanswered() int { return c.pending.n }

// TakeOutput encodes queued calls and returns the bytes to write next on the
// connection Live. The core reuses spare for the bytes after them.
func (c *Core) TakeOutput(spare []byte, now time.Duration) []byte {
	c.batcher.shrinkIfIdle()
	for len(c.out) < maxWrite && c.sendable() {
		c.sendNext(now)
	}
	out := c.out
	c.out = spare[:0]
	if len(out) > 0 {
		c.lastSend = now
	}
	return out
}

// send encodes a call and adds it to the pending calls. For old servers, it replaces a
// create2 by a create, whose answer has no Stat.
func (c *Core) send(call *Call, now time.Duration) {
	if call.Op.Code == wire.OpCreate2 && (c.leader.old || c.release < release35) {
		call.Op.Code = wire.OpCreate
	}
	c.nextXid()
	call.xid, call.state = c.xid, sent
	call.Result.Sent, call.Result.Conn = now, c.conn
	if len(call.members) > 0 {
		c.out = appendBatch(c.out, call)
	} else {
		c.out = appendRequest(c.out, call.xid, &call.Op)
	}
	c.pending.push(call)
	if call.batchable {
		c.batchableSent++
	}
}

// nextXid advances the number of the next request.
func (c *Core) nextXid() {
	c.xid++
	if c.xid <= 0 { // wrap around: numbers below zero have other meanings
		c.xid = 1
	}
}

// closeWait bounds how long Close waits for the server's answer.
const closeWait = 5 * time.Second

// Close ends the session. The server first answers the calls already submitted and is
// then asked to close the session. If there is no connection, or no answer arrives
// within 5 s or the session timeout, the session ends by its timeout. Err of the
// state Closed then says why.
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

// Abandon ends the core without the server's answer to Close.
func (c *Core) Abandon() {
	if c.phase != ended {
		c.finish(Closed, ErrConnectionLost)
	}
}

// finish ends the core. Every call fails.
func (c *Core) finish(s State, err error) {
	fault := ErrClosed
	if s == AuthFailed {
		fault = ErrAuthFailed
	}
	c.phase, c.out, c.reason = ended, nil, err
	c.failAll(&c.pending, fault, Unknown)
	c.failAll(&c.queue, fault, No)
	c.failAuths(fault)
	c.notifyState(s, err)
}

// failAll fails the calls of a list, in order.
func (c *Core) failAll(l *callList, fault error, applied Outcome) {
	for call := l.pop(); call != nil; call = l.pop() {
		switch {
		case len(call.members) > 0:
			c.failBatch(call, fault, applied)
		case call == &c.closeCall, call == &c.releaseCall, call == &c.leaderCall:
			call.state = idle
		case call.refused:
			call.Result.Resend = true
			c.failCall(call, fault, No)
		default:
			c.failCall(call, fault, applied)
		}
	}
}

// endSession reports that the session has expired. The next connection begins a new
// one. Queued calls fail, because they must not run in another session.
func (c *Core) endSession(err error) {
	c.failAll(&c.queue, ErrSessionExpired, No)
	c.previousID = c.sessionID
	c.epoch++
	c.notifyState(Expired, err)
	c.forgetSession()
}

// forgetSession lets the next connection begin a new session.
func (c *Core) forgetSession() {
	c.sessionID, c.password = 0, [passwordSize]byte{}
	c.watches = watches{}
	c.forgetOldServers()
	c.readOnlySession, c.unreported = false, false
	c.givenUp = 0
}
