package zklock

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// A Client acquires locks in one ZooKeeper session after another. It is safe for
// concurrent use. All its holds share one session: when that is lost, so are
// they.
//
// Every eighth of the session timeout, a client sends two syncs, and a write that asks
// a quorum of the servers about its entries, however many locks it holds. A client
// that neither holds nor waits sends no writes. Its next acquire still takes one
// round trip.
type Client struct {
	zk            *zk.Client
	ownsSession   bool // Dial made zk
	opts          Options
	log           *slog.Logger
	stop          func() // ends the listening
	ticks         tickLearner
	identity      Owner
	ownerTemplate ownerTemplate // identity, ready to be written
	// requestPool has the *pendingRequest that are not in flight.
	requestPool sync.Pool
	// noCredentials is set when the servers accept none of the client's credentials.
	noCredentials atomic.Bool
	// unwatches is set when the servers of this connection are known to remove watches. Older
	// ones would close the connection.
	unwatches atomic.Bool
	// invalid is why no lock can be used: what is wrong with the options.
	invalid error

	ending chan struct{} // closed when Close begins

	// mu guards what follows. It is never held while another lock is acquired, nor
	// during a channel operation, a hook, or a call into zk other than Authenticates.
	mu           sync.Mutex
	core         *queue.Core
	acquisitions map[queue.ID]*acquisition
	grants       map[queue.ID]*grant
	acquireCount uint64                  // how many acquisitions have a timeline
	handoffs     map[handoffKey]*handoff // the handoffs that are wanted or held
	idleHandoffs []*handoff              // those that have neither a leader nor a grant
	calls        map[uint64]*call        // those that the core has not answered
	lastCall     uint64                  // how many there were
	session      int64                   // the last one
	sessions     int                     // how many there were
	timer        *time.Timer
	timerAt      time.Duration // when the timer goes off, if it is set
	timerSet     bool
	closing      bool       // Close was called, and ending is closed
	closed       bool       // Close is done: the timer stays stopped
	closeErr     error      // what it returns
	cond         *sync.Cond // the core may have become idle, or Close may be done
	outbox       []queue.Request
	requests     []zk.Request     // backs the requests of the outbox in the form of zk
	sending      []queue.Request  // backs the outbox while it is being sent
	flushing     bool             // a goroutine is sending the outbox
	flushPending bool             // a goroutine is about to flush the core
	signals      []queue.Signal   // backs the signals of the core
	deferred     []deferredAction // what to do after mu is released
	hookCalls    []func()         // what the goroutine of the hooks has to do
	hooksRunning bool             // that goroutine is running
}

// Dial connects to one of the servers, "host:port,host:port/chroot" or
// "unix:/path/to.sock", and returns when it has a session. ctx bounds Dial only. A nil
// opts means the zero Options.
func Dial(ctx context.Context, servers string, opts *Options) (*Client, error) {
	if opts == nil {
		opts = &Options{}
	}
	if err := opts.check(); err != nil {
		return nil, &Error{Op: "dial", Err: err}
	}
	c, err := zk.Dial(ctx, servers, opts.sessionOptions())
	if err != nil {
		return nil, &Error{Op: "dial", Err: err}
	}
	if err := opts.checkTimeout(c.SessionTimeout()); err != nil {
		closed := make(chan struct{})
		go func() { // ends with Close, which waits for the server for at most 5 s
			_ = c.Close() // nothing is in the session
			close(closed)
		}()
		select {
		case <-closed:
		case <-ctx.Done():
		}
		return nil, &Error{Op: "dial", Err: err}
	}
	return newClient(c, true, opts), nil
}

// New returns a client that shares the session of c. The caller still closes c, after
// this client. New ignores the options that concern the session; a nil opts means the
// zero Options. If opts are invalid, so that Dial would reject them, uses of the locks
// fail with ErrInvalidOptions. The exception is a session that is too short for
// SyncHeartbeat: its heartbeats are writes. If c accepts read-only servers
// (zk.Options.ReadOnly), an acquire fails with ErrInvalidOptions, and locks can only be read: such
// a server can report changes that the ensemble undoes.
//
// If the program adds the first credentials of the session by [zk.Client.AddAuth], do so before
// the first acquire. [Options].ACL describes the ACL of the znodes that the client creates from
// then on. Znodes that it created earlier stay open to everyone, and so does the znode that
// replaces such an entry in a [Hold.Downgrade].
//
// In a session that is not new, the first acquire takes about a third of the session
// timeout: the client needs that long to prove a deadline.
func New(c *zk.Client, opts *Options) *Client {
	if opts == nil {
		opts = &Options{}
	}
	return newClient(c, false, opts)
}

func newClient(conn *zk.Client, own bool, opts *Options) *Client {
	c := &Client{
		zk: conn, ownsSession: own, opts: *opts, log: opts.Logger, identity: currentProcess(),
		invalid: opts.check(), ending: make(chan struct{}),
		acquisitions: map[queue.ID]*acquisition{}, grants: map[queue.ID]*grant{}, calls: map[uint64]*call{},
	}
	c.cond = sync.NewCond(&c.mu)
	c.opts.ACL = slices.Clone(opts.ACL)
	if timeout := conn.SessionTimeout(); c.invalid == nil && timeout > 0 {
		c.invalid = opts.checkTick(timeout)
	}
	if c.invalid != nil {
		c.opts.ClockDrift = 0 // refused options must not be used in a calculation
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if opts.Owner != nil {
		c.identity = *opts.Owner
		c.identity.Token = 0
	}
	c.identity.Layout = Layout{}
	if opts.Layout.isCustom() && c.invalid == nil {
		named := c.identity
		named.Layout = opts.Layout
		if data, err := named.encode(); err == nil && len(data) <= maxOwnerSize-len(time.RFC3339Nano) {
			c.identity = named
		}
	}
	if !c.opts.Anonymous {
		c.ownerTemplate = newOwnerTemplate(c.identity)
	}
	c.core = queue.New(queue.Config{
		GUID:       newGUID,
		Jitter:     mathrand.Float64,
		Drift:      c.opts.ClockDrift,
		Ours:       waitsForKnownLayouts,
		Persistent: opts.PersistentParents || opts.Layout.needsPersistentParents(),
		Inherit:    conn.Authenticates,
		Sync:       opts.SyncHeartbeat,
		Tick:       opts.ServerTick,
		OwnSession: own,
	})
	// The function of the timer runs on a goroutine of its own and ends by itself.
	// Close stops the timer.
	c.timer = time.AfterFunc(time.Hour, c.tick)
	c.ticks.client, c.ticks.began = c, time.Now()
	c.stop = conn.Listen(zk.Listener{State: c.onState, Event: c.onEvent, Drained: c.onDrained})
	return c
}

// waitsForKnownLayouts reports whether data are those of a client of this package that waits for
// the entries of all known layouts.
func waitsForKnownLayouts(data []byte) bool {
	o, ok := decodeOwner(data)
	return ok && !o.Layout.isCustom()
}

func newGUID() (g [16]byte) {
	rand.Read(g[:]) // never fails, according to its documentation
	return g
}

// Close ends all holds and waiting acquires, and deletes their znodes. If Dial made the
// session, Close ends the session, which takes a bounded time. Otherwise it deletes the
// znodes one by one, for at most a session timeout. Holds that were not released are then
// lost.
//
// An error means that znodes may be left. It wraps zk.ErrNotConfirmed if the servers did
// not confirm the end of the session; the session then ends by its timeout. Another Close
// waits for the first and returns its outcome.
func (c *Client) Close() (err error) {
	c.mu.Lock()
	if c.closing {
		defer c.mu.Unlock()
		for !c.closed {
			c.cond.Wait()
		}
		return c.closeErr
	}
	c.closing = true
	c.mu.Unlock()
	close(c.ending)
	// Deferred, because the handler of the logger may panic.
	defer func() {
		if err != nil {
			err = &Error{Op: "close", Err: err}
		}
		c.mu.Lock()
		c.closed, c.closeErr = true, err
		c.timer.Stop()
		c.mu.Unlock()
		c.cond.Broadcast()
	}()
	c.shutDown(&err)
	return err
}

// errZnodesLeft is why Close could not delete all znodes in a shared session.
var errZnodesLeft = errors.New("znodes of this client are left; close the shared session to delete them")

// shutDown does the work of Close, and sets err to its error. Its parts are deferred, because the
// handler of the logger may panic in each of them.
func (c *Client) shutDown(err *error) {
	defer c.step(func(core *queue.Core, now time.Duration) {
		core.Session(now, queue.SessionChange{State: queue.Closed, Left: *err})
	})
	defer c.ticks.close()
	defer c.stop()
	defer func() {
		if c.ownsSession {
			*err = c.zk.Close()
		} else if !c.awaitIdle(max(c.zk.SessionTimeout(), time.Second)) {
			*err = errZnodesLeft
		}
	}()
	c.step(func(core *queue.Core, now time.Duration) { core.Shut(now) })
}

// awaitIdle waits until no znode is left, or until the limit, and reports whether none is
// left.
func (c *Client) awaitIdle(limit time.Duration) bool {
	over := false
	t := time.AfterFunc(limit, func() {
		c.mu.Lock()
		over = true
		c.mu.Unlock()
		c.cond.Broadcast()
	})
	defer t.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.core.Idle() && !over {
		c.cond.Wait()
	}
	return c.core.Idle()
}

// newOwner returns the owner for a znode that is created now.
func (c *Client) newOwner() Owner {
	o := c.identity
	if o.Since.IsZero() {
		o.Since = time.Now().Round(time.Millisecond)
	}
	return o
}

// encodeEntry returns the data of the znodes of an acquire.
func (c *Client) encodeEntry(o Owner, value string) ([]byte, error) {
	if value == "" {
		return c.encodeOwnerFast(o)
	}
	return c.encodeData(o, value)
}

// encodeOwnerFast returns the data of the znodes of an acquire, without encoding what is
// always the same.
func (c *Client) encodeOwnerFast(o Owner) ([]byte, error) {
	if data := c.ownerTemplate.encode(o.Since); data != nil {
		return data, nil
	}
	return c.encodeOwner(o)
}

// encodeOwner returns the data of a znode. Even without an owner, the data are a JSON
// object, so that the znode differs from those of other libraries. A custom layout is
// part of them, so that tools recognize the entry.
func (c *Client) encodeOwner(o Owner) ([]byte, error) {
	if c.opts.Anonymous {
		o = o.anonymous()
	}
	return o.encode()
}

// A Health is the state of the session of a client at one moment: for metrics, and for
// the readiness checks of programs that need their locks.
type Health struct {
	// State is the state of the session and its connection.
	State zk.State
	// Session is the id of the session; 0 before the first one, and after one has expired
	// until the next begins.
	Session int64
	// Timeout is the negotiated session timeout: if servers granted the session different
	// timeouts, the shortest. It is 0 before the first session.
	Timeout time.Duration
	// Heartbeat is how long ago the servers last answered a heartbeat; the client sends one
	// in every eighth of Timeout. If that is more than a third of Timeout, holds are in jeopardy.
	// It is 0 while there is no session.
	Heartbeat time.Duration
	// Remaining is how long holds stay safe if the servers do not answer any more, as
	// [Hold.Remaining] returns for each hold; 0 if nothing is proven.
	Remaining time.Duration
	// Err is why the client has no connection, with the last failure of each server. It is
	// nil while there is a connection, and before a server has failed.
	Err error
	// Sessions is how many sessions the client has had.
	Sessions int
	// Holds is how many locks the client holds, and Waiting how many acquires are in
	// progress.
	Holds, Waiting int
}

// Health returns the state of the client. It sends no request.
func (c *Client) Health() Health {
	h := Health{State: c.zk.State(), Session: c.zk.SessionID(), Timeout: c.zk.SessionTimeout(), Err: c.zk.ConnectError()}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := now()
	if timeout := c.core.SessionTimeout(); timeout > 0 {
		h.Timeout = timeout
	}
	if heard, ok := c.core.Heard(); ok {
		h.Heartbeat = max(0, at-heard)
	}
	if deadline, ok := c.core.Deadline(); ok {
		h.Remaining = max(0, deadline-at)
	}
	h.Sessions, h.Waiting = c.sessions, len(c.acquisitions)
	for _, g := range c.handoffs {
		h.Waiting += len(g.waiting)
	}
	for _, p := range c.grants {
		if !p.over {
			h.Holds++
		}
	}
	return h
}

// A tickLearner finds out the tick of the servers behind each connection: a client that
// knows it proves later deadlines. A new client asks when it has existed for an eighth to a
// quarter of the session timeout, because some servers can be asked only by a session of its
// own: short commands do not ask.
type tickLearner struct {
	client *Client
	began  time.Time
	active sync.WaitGroup // attempts that have not ended

	mu     sync.Mutex
	timer  *time.Timer        // begins the attempt for the present connection
	cancel context.CancelFunc // ends that attempt; nil if there is none
	closed bool
}

// connected plans an attempt for a new connection.
func (t *tickLearner) connected(s zk.StateChange) {
	if t.client.opts.ServerTick > 0 {
		return // the core knows it
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stop()
	if t.closed {
		return
	}
	// Clients that start together do not all ask at the same moment, nor do the clients of a server
	// that restarts.
	wait := max(s.Timeout/8+upTo(s.Timeout/8)-time.Since(t.began), upTo(s.Timeout/16))
	ctx, cancel := context.WithCancel(context.Background())
	t.cancel = cancel
	t.active.Add(1)
	t.timer = time.AfterFunc(wait, func() { // ends within a quarter of the timeout, or soon after stop
		defer t.active.Done()
		ctx, cancel := context.WithTimeout(ctx, s.Timeout/4)
		defer cancel()
		tick, err := t.client.zk.ServerTick(ctx)
		if err != nil {
			t.client.log.Debug("the servers' tick is unknown", "error", err)
			return
		}
		t.client.step(func(core *queue.Core, now time.Duration) { core.HalfTick(now, s.Conn, tick/2) })
	})
}

// upTo returns a random duration of at most limit.
func upTo(limit time.Duration) time.Duration {
	return time.Duration(mathrand.Int64N(int64(limit) + 1))
}

// stop ends the attempt that is planned or active. The mutex is held.
func (t *tickLearner) stop() {
	if t.cancel == nil {
		return
	}
	t.cancel()
	t.cancel = nil
	if t.timer.Stop() {
		t.active.Done()
	}
}

// close ends the attempts, and waits for them.
func (t *tickLearner) close() {
	t.mu.Lock()
	t.closed = true
	t.stop()
	t.mu.Unlock()
	t.active.Wait()
}
