package zk

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/zklock/internal/boottime"
	"github.com/zklock/zklock/internal/session"
)

// Client is one ZooKeeper session after another, with its connection. It is
// made by [Dial], safe for concurrent use, and must be closed.
//
// A client runs two goroutines, a reader and a writer, and for moments a third
// for a timer. They end with [Client.Close], or when authentication has failed.
type Client struct {
	opts    *Options
	servers map[string]address
	name    string // the servers, for errors
	root    chroot
	ctx     context.Context // ends with the client
	cancel  context.CancelFunc
	calls   sync.Pool   // of *call
	authed  atomic.Bool // AddAuth was called

	// mu guards the fields below. It is never held while waiting for a
	// connection or while a user's function runs.
	mu   sync.Mutex
	core *session.Core
	link *link // the connection that the core wants; nil if there is none yet
	// epoch is that of the session last told of: what requests are for.
	epoch    uint64
	shown    StateChange // the last one told
	writable *sync.Cond  // the writer waits on it
	wake     *sync.Cond  // the reader waits on it for a dial to make
	changed  *sync.Cond  // Dial and Close wait on it
	wasReady bool        // Dial has returned
	running  int         // goroutines to wait for in Close
	// dialGen and stopDial are those of the dial under way or the last one.
	dialGen  uint64
	stopDial context.CancelFunc
	timer    *time.Timer
	// The timer is set for timerAt if armed; see arm.
	armed   bool
	timerAt time.Duration

	delivering bool // a goroutine is telling
	// spare is room for notices, used again so that telling allocates nothing.
	spare []session.Notice
	room  keeper // of that

	// These belong to the goroutine that is telling.
	listeners []*listener
	// told is what shown will be or is: a listener that is added begins with it.
	told     StateChange
	watchers watchers
	warned   int64 // the session of whose timeout the log was told
}

// Dial connects to one of the servers and returns when a session is there and
// the server has taken all credentials. The connection string is
// "host:port,host:port/chroot": a missing port means 2181, an IPv6 address with
// a port is written [::1]:2181, and with a chroot all paths are below it, which
// must exist. Or it is "unix:/path" for one local server, without a chroot.
//
// Dial tries the servers in turn until ctx ends, without a deadline in ctx for
// one session timeout; it returns earlier if none of them can ever work,
// because it is no ZooKeeper server, its certificate is not trusted, or its name ends
// in .invalid, where no host has a name. The error says what became of each server. ctx bounds Dial only, not the client.
func Dial(ctx context.Context, servers string, opts *Options) (*Client, error) {
	o, err := opts.check()
	if err != nil {
		return nil, &Error{Op: "dial", Err: err, applied: AppliedNo}
	}
	list, root, err := parseServers(servers)
	if err != nil {
		return nil, &Error{Op: "dial", Err: err, applied: AppliedNo}
	}
	if opts == nil || opts.DialContext == nil {
		err = checkNames(list)
	}
	if err != nil {
		return nil, &Error{Op: "dial", Err: err, applied: AppliedNo}
	}
	if err := checkTLS(o.TLS, list); err != nil {
		return nil, &Error{Op: "dial", Err: err, applied: AppliedNo}
	}
	c := newClient(list, root, o)
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.SessionTimeout)
		defer cancel()
	}
	c.running = 2
	go c.run()   // ends when the core ends, see Close
	go c.write() // likewise
	if err := c.awaitReady(ctx); err != nil {
		_ = c.Close() // what failed is in err
		return nil, &Error{Op: "dial", Path: c.name, Err: err, applied: AppliedNo}
	}
	return c, nil
}

// newClient makes a client that does nothing yet.
func newClient(list []address, root chroot, o *Options) *Client {
	c := &Client{opts: o, root: root, servers: make(map[string]address)}
	cfg := session.Config{Timeout: o.SessionTimeout, ReadOnly: o.ReadOnly, KeepOrder: o.KeepOrder,
		MaxRequest: o.MaxRequest, Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	for i, a := range list {
		c.servers[a.String()] = a
		cfg.Servers = append(cfg.Servers, a.String())
		if i > 0 {
			c.name += ","
		}
		c.name += a.String()
	}
	for _, a := range o.Auth {
		cfg.Auth = append(cfg.Auth, session.Auth{Scheme: a.Scheme, Data: append([]byte(nil), a.Data...)})
	}
	if o.SASL != nil {
		cfg.SASL = &session.SASL{User: o.SASL.User, Password: o.SASL.Password, Rand: crand.Reader}
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
		case c.core.Ready() && c.shown.Conn > 0:
			c.wasReady = true
			return nil
		case c.core.Ended():
			return fmt.Errorf("%w (%w)", ErrAuthFailed, stateError(c.core.Reason()))
		case ctx.Err() != nil:
			return dialError(ctx.Err(), c.core.Failures())
		// A server that speaks another protocol will not learn ours.
		case hopeless(c.core.Failures()):
			return dialError(nil, c.core.Failures())
		}
		c.changed.Wait()
	}
}

// hopeless reports whether each server failed in a way that does not mend.
func hopeless(failures []session.Failure) bool {
	for _, f := range failures {
		if f.Err == nil || !permanent(f.Err) {
			return false
		}
	}
	return true
}

// dialError joins why a Dial ended with what became of the servers.
func dialError(why error, failures []session.Failure) error {
	var all []error
	if why != nil {
		all = append(all, why)
	}
	for _, f := range failures {
		if f.Err != nil {
			all = append(all, fmt.Errorf("%s: %w", f.Server, stateError(f.Err)))
		}
	}
	if len(all) == 1 {
		return all[0]
	}
	return &dialErrors{all}
}

// dialErrors is a list of errors in one line.
type dialErrors struct{ all []error }

// Error joins the texts by semicolons: servers are told apart by their names.
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

// Unwrap lets errors.Is find each of them.
func (d *dialErrors) Unwrap() []error { return d.all }

// Close ends the session: requests already made are still answered, then the
// server deletes the session's ephemeral znodes. It waits for the server's word
// for 5 s or the session timeout, whichever is less, and then for the listeners
// to be told. Without a connection it does not wait for one: the session then
// ends by its timeout, and the error says so. A second Close does nothing but
// wait for the first. It must not be called by the functions of a [Listener]
// or of [Client.Go].
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
	// The core has let go of its connection, so reader and writer end by
	// themselves; a probe under way ends with the context.
	c.cancel()
	c.timer.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.running > 0 || c.delivering || c.core.HasNotices() {
		c.changed.Wait()
	}
	if c.shown.State == Closed && c.shown.Err != nil {
		return &Error{Op: "close", Err: fmt.Errorf("%w: %w", ErrNotConfirmed, c.shown.Err)}
	}
	return nil
}

// Go queues op and returns at once. done, if not nil, is called with the result
// when it is known: in the order of the wire, one at a time with the functions
// of listeners, on a goroutine of the client with no lock held. It must not
// block and may call Go. Requests leave in the order of the calls, those of one
// moment in one write.
//
// The request belongs to the session of which the last [StateChange] told, and
// fails with [ErrSessionExpired] if that is over. Without a connection it waits
// for one. If the connection is lost between sending and answer, it fails with
// [ErrConnectionLost], and [Applied] says unknown. After [ErrClosed] and
// [ErrAuthFailed] every further request fails at once: a done that repeats its
// request must not do so then.
func (c *Client) Go(op Op, done func(Result)) { c.GoIn(0, op, done) }

// GoIn is Go for the session with this id: the request fails with
// ErrSessionExpired, and is not sent, if the last StateChange told of another or
// of the end of this one. It is for what was decided on in one session and would
// do harm in the next, such as deleting a znode by a name that others use. Id 0
// means whichever session it is, as with Go.
func (c *Client) GoIn(session int64, op Op, done func(Result)) {
	k := c.newCall()
	k.done = done
	if err := k.prepare(&op); err != nil {
		k.refused(err)
		return
	}
	c.submit(k, session)
}

// SessionID is the id of the session that was last told of, see [StateChange];
// 0 after it has expired.
func (c *Client) SessionID() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shown.State == Expired {
		return 0
	}
	return c.shown.SessionID
}

// SessionTimeout is the session timeout that was last negotiated.
func (c *Client) SessionTimeout() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown.Timeout
}

// State is the state that was last told of.
func (c *Client) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown.State
}
