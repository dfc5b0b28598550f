package zk

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/zklock/internal/boottime"
	"github.com/zklock/zklock/internal/netutil"
	"github.com/zklock/zklock/internal/session"
)

// Client manages one ZooKeeper session after another, and the connection. [Dial]
// returns a Client. It is safe for concurrent use and must be closed.
//
// A client runs two goroutines, a reader and a writer, and at times a third one for a
// timer. They end after [Client.Close], or when authentication has failed.
type Client struct {
	opts   *Options
	root   chroot
	ctx    context.Context // ends with the client
	cancel context.CancelFunc
	calls  sync.Pool   // of *call
	authed atomic.Bool // AddAuth was called
	silent netutil.SilentSet

	// mu guards the fields below. It is never held while the client waits for a
	// connection or while a user's function runs.
	mu   sync.Mutex
	core *session.Core
	link *link // the connection that the core wants; nil if there is none yet
	// epoch is the epoch of the session that was last reported. Requests are made for
	// it.
	epoch        uint64
	watchUsers   map[string]watchUsers // of this session, by server path
	lastState    StateChange           // the state that was last reported
	writable     *sync.Cond            // the writer waits on it
	wake         *sync.Cond            // the reader waits on it for a dial to make
	changed      *sync.Cond            // Dial and Close wait on it
	dialReturned bool                  // Dial has returned
	unusable     map[string][]string   // until then: see atAddress
	running      int                   // goroutines to wait for in Close
	// dialGen and stopDial belong to the dial in progress, or to the last one.
	dialGen  uint64
	stopDial context.CancelFunc
	timer    *time.Timer
	// If armed, the timer is set for timerAt; see arm.
	armed   bool
	timerAt time.Duration

	spare       []byte // a buffer for the next write
	spareWrites bufferPolicy

	delivering bool // a goroutine is in deliver
	// spareNotices is a buffer for notices. Reusing it avoids an allocation per
	// delivery.
	spareNotices []session.Notice
	spareBuffer  bufferPolicy // for spareNotices

	// Only the delivering goroutine uses the fields below.
	listeners []*listener
	// deliveringState is the state that lastState becomes or is. A listener that is
	// added starts with it.
	deliveringState StateChange
	watchers        watchers
	timeoutWarned   int64 // the session whose timeout was logged
}

// Dial connects to one of the servers. It returns when a session exists and the
// server has accepted all credentials. The connection string is
// "host:port,host:port/chroot". A missing port means 2181. An IPv6 address with a
// port is written [::1]:2181. With a chroot, all paths are relative to it, and it
// must exist. Alternatively, the connection string is "unix:/path" for one local
// server, without a chroot.
//
// If a host has several addresses, and the server at one of them does not accept the connection
// in time, does not answer, stops answering, or cannot be used, for example because its certificate
// has expired, the next attempt at this host uses another address.
//
// Dial tries the servers in turn until ctx ends. If ctx has no deadline, Dial tries for one
// session timeout. It waits at least 1.5 s for a server that does not answer. Then it leaves
// the server early enough to try more than half of the servers. If servers is a single host
// name, Dial has time for two of its addresses after the lookup. Dial returns earlier if no
// server can ever work: because it is not a ZooKeeper server, its certificate is not
// trusted, its name ends in .invalid, or the files of a SASL mechanism are not usable. For a host
// name, that must be the case at each address that accepts a connection; an address that does not
// answer at all can delay the return until ctx ends. The error has the failure of each server that
// was tried. ctx bounds only Dial, not the client.
func Dial(ctx context.Context, servers string, opts *Options) (*Client, error) {
	o, err := opts.check()
	if err != nil {
		return nil, &Error{Op: "dial", Err: err, applied: AppliedNo}
	}
	list, root, err := o.servers(servers)
	if err != nil {
		return nil, &Error{Op: "dial", Err: err, applied: AppliedNo}
	}
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.SessionTimeout)
		defer cancel()
	}
	end, _ := ctx.Deadline()
	c := newClient(list, root, o, time.Until(end))
	c.running = 2
	go c.run()   // ends when the core ends, see Close
	go c.write() // ends when the core ends
	if err := c.awaitReady(ctx); err != nil {
		c.abandon()
		return nil, &Error{Op: "dial", Path: strings.Join(list, ","), Err: err, applied: AppliedNo}
	}
	return c, nil
}

// newClient returns a client that has not started. Dial waits at most limit for its first session.
func newClient(servers []string, root chroot, o *Options, limit time.Duration) *Client {
	c := &Client{opts: o, root: root}
	cfg := session.Config{Servers: servers, Timeout: o.SessionTimeout, DialLimit: limit, ReadOnly: o.ReadOnly, KeepOrder: o.KeepOrder,
		MaxRequest: o.MaxRequest, SASL: o.SASL != nil, Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	for _, a := range o.Auth {
		cfg.Auth = append(cfg.Auth, session.Auth{Scheme: a.Scheme, Data: append([]byte(nil), a.Data...)})
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.writable, c.wake, c.changed = sync.NewCond(&c.mu), sync.NewCond(&c.mu), sync.NewCond(&c.mu)
	c.timer = time.AfterFunc(maxTimeout, c.tick)
	c.timer.Stop()
	c.core = session.New(cfg, boottime.Now())
	return c
}

// awaitReady waits for the first session.
func (c *Client) awaitReady(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.changed.Broadcast()
	})
	defer stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		switch {
		case c.core.Ready() && c.lastState.Conn > 0:
			c.dialReturned, c.unusable = true, nil
			return nil
		case c.core.Ended():
			return stateError(c.core.Reason())
		case ctx.Err() != nil:
			return dialError(ctx.Err(), c.core.Unfinished())
		// A server that speaks another protocol will not change.
		case allPermanent(c.core.Failures()):
			return dialError(nil, c.core.Failures())
		}
		c.changed.Wait()
	}
}

// allPermanent reports whether every server failed with a permanent error.
func allPermanent(failures []session.Failure) bool {
	for _, f := range failures {
		if f.Err == nil || !permanent(f.Err) {
			return false
		}
	}
	return true
}

// dialError combines the reason why Dial ended with the failures of the servers.
func dialError(why error, failures []session.Failure) error {
	var all []error
	if why != nil {
		all = append(all, why)
	}
	for _, f := range failures {
		if f.Err != nil {
			all = append(all, newServerError(f, len(failures) > 1))
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return &dialErrors{all}
}

// serverError is what became of one server.
type serverError struct {
	text string
	err  error
}

// newServerError names the server once, if there are several: the error of Dial names all.
func newServerError(f session.Failure, several bool) error {
	err := stateError(f.Err)
	text := err.Error()
	for _, network := range []string{"tcp", "unix"} {
		text = strings.TrimPrefix(text, "dial "+network+" "+f.Server+": ")
	}
	if several {
		text = f.Server + ": " + text
	}
	return &serverError{text, err}
}

// Error returns the text.
func (e *serverError) Error() string { return e.text }

// Unwrap returns the session's error.
func (e *serverError) Unwrap() error { return e.err }

// dialErrors is a list of errors that prints as one line.
type dialErrors struct{ all []error }

// Error joins the texts with semicolons. The server names tell the failures apart.
func (d *dialErrors) Error() string {
	s := ""
	for i, err := range d.all {
		if i > 0 {
			s += "; "
		}
		s += err.Error()
	}
	return s
}

// Unwrap returns the errors, for errors.Is.
func (d *dialErrors) Unwrap() []error { return d.all }

// Close ends the session. The server first answers the requests already made, and
// then deletes the session's ephemeral znodes. Close waits for the server's
// confirmation for 5 s or the session timeout, whichever is less, and then until the
// listeners have been called. Without a connection it does not wait for one: the
// session then ends by its timeout, and the error says so. A second Close only waits
// for the first. The functions of a [Listener] or of [Client.Go] must not call Close.
func (c *Client) Close() error {
	now := boottime.Now()
	c.mu.Lock()
	c.core.Close(now)
	c.unlock(now, true)
	c.mu.Lock()
	for !c.core.Ended() {
		c.changed.Wait()
	}
	c.mu.Unlock()
	c.awaitEnd()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastState.State == Closed && c.lastState.Err != nil {
		return &Error{Op: "close", Err: fmt.Errorf("%w: %w", ErrNotConfirmed, c.lastState.Err)}
	}
	return nil
}

// awaitEnd waits for the client's goroutines and for the delivery, after the core has ended.
func (c *Client) awaitEnd() {
	// The core has dropped its connection, so the reader and the writer end by
	// themselves. A probe in progress ends with the context.
	c.cancel()
	c.timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.running > 0 || c.delivering || c.core.HasNotices() {
		c.changed.Wait()
	}
}

// abandon is Close without waiting for the server, which may never answer. It asks the server to
// end the session only if it can write at once. Otherwise the session ends by its timeout.
func (c *Client) abandon() {
	now := boottime.Now()
	c.mu.Lock()
	c.core.Close(now)
	c.writeDirectly()
	c.core.Abandon()
	c.unlock(now, true)
	c.awaitEnd()
}

// Go queues op and returns immediately. done, if not nil, is called with the result.
// The client calls it in wire order, never concurrently with the functions of
// listeners, and on its own goroutine with no lock held. done must not block, must not
// end its goroutine, and may call Go. Requests are sent in the order of the calls. Requests that are queued at
// the same time are sent in one write.
//
// The request belongs to the session of the last [StateChange], and fails with
// [ErrSessionExpired] if that session is over. Without a connection, the request
// waits for one. If the connection is lost between sending and answer, the request
// fails with [ErrConnectionLost], and [Applied] returns [AppliedUnknown]. After
// [ErrClosed] and [ErrAuthFailed], every further request fails immediately: a done
// that repeats its request must not do so then.
func (c *Client) Go(op Op, done func(Result)) { c.GoIn(0, op, done) }

// GoIn is like Go, but only for the session with this ID. If the last StateChange
// reported another session or the end of this one, the request is not sent and fails
// with ErrSessionExpired. Use it for a decision that was made in one session and
// would do harm in the next one, such as deleting a znode by a name that others
// reuse. ID 0 means any session, as with Go.
func (c *Client) GoIn(session int64, op Op, done func(Result)) {
	c.GoAll(Request{Session: session, Op: op, Done: done})
}

// A Request is an operation that GoAll sends.
type Request struct {
	Session int64 // as for [Client.GoIn]
	Op      Op
	Done    func(Result)
}

// GoAll is like GoIn for each request, in this order. It sends them with one write, if
// it can. It does not keep the slice.
func (c *Client) GoAll(requests ...Request) {
	var first, last *call
	for i := range requests {
		r := &requests[i]
		k := c.newCall()
		k.done, k.sessionID = r.Done, r.Session
		if err := k.prepare(&r.Op); err != nil {
			k.refuse(err)
			continue
		}
		if last == nil {
			first = k
		} else {
			last.following = k
		}
		last = k
	}
	c.mu.Lock()
	for k := first; k != nil; {
		following := k.following
		k.following = nil
		c.core.Submit(&k.Call, c.epochOf(k.sessionID))
		k = following
	}
	c.flush()
}

// DoAll sends operations as GoAll does, and waits for their results, which it returns in the
// order of the operations. Each result has the error of its operation. If ctx ends before, DoAll
// returns only an error. It then takes back the operations that were not sent; those that were
// sent may still be applied, see [Applied].
func (c *Client) DoAll(ctx context.Context, ops ...Op) ([]Result, error) {
	results := make([]Result, len(ops))
	if err := c.doAll(ctx, ops, results); err != nil {
		return nil, err
	}
	return results, nil
}

// SessionID returns the ID of the session that was last reported, see [StateChange],
// or 0 after the session has expired.
func (c *Client) SessionID() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastState.State == Expired {
		return 0
	}
	return c.lastState.SessionID
}

// SessionTimeout returns the session timeout that was last negotiated.
func (c *Client) SessionTimeout() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastState.Timeout
}

// ReadOnly reports whether the session accepts read-only servers, see [Options].ReadOnly.
func (c *Client) ReadOnly() bool { return c.opts.ReadOnly }

// Server returns the server that answers, as the connection string names it, or "" while
// there is no connection.
func (c *Client) Server() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastState.Server
}

// ConnectError returns why the client has no connection, with the last failure of each
// server. It returns nil while there is a connection, and before a server has failed.
func (c *Client) ConnectError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	failed := slices.ContainsFunc(c.core.Failures(), func(f session.Failure) bool { return f.Err != nil })
	if c.lastState.Server != "" || !failed {
		return nil
	}
	return dialError(nil, c.core.Failures())
}

// State returns the state that was last reported.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastState.State
}
