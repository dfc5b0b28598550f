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

// A Client takes locks in one ZooKeeper session after another. It is safe for
// concurrent use. All its holds share one session: when that is lost, so are
// they.
//
// A client asks a quorum of the servers about its entries every eighth of the
// session's timeout, with one write however many locks it holds, and also when
// it holds none, so that the next acquire takes one round trip.
type Client struct {
	zk   *zk.Client
	own  bool // Dial made zk
	opts Options
	log  *slog.Logger
	stop func() // ends the listening
	name Owner
	form ownerForm // name, ready to be written
	// flights has the *flight that are not under way.
	flights sync.Pool
	// unproven is set when the servers know none of the client's credentials.
	unproven atomic.Bool
	// invalid is why no lock can be used: what is wrong with the options.
	invalid error

	// mu guards what follows. It is never held while another lock is taken, nor
	// across a call into zk, a channel operation or a hook.
	mu       sync.Mutex
	core     *queue.Core
	attempts map[queue.ID]*attempt
	holds    map[queue.ID]*possession
	began    uint64              // how many attempts have a story
	locals   map[localKey]*local // the Local locks that are wanted or held
	again    []*local            // those that have neither claim nor hold any more
	asking   map[uint64]*call    // what the core has not answered
	calls    uint64              // how many there were
	session  int64               // the last one
	sessions int                 // how many there were
	timer    *time.Timer
	timerAt  time.Duration // when the timer goes off, if armed
	armed    bool
	closing  bool       // Close was called
	over     bool       // Close is done: the timer stays stopped
	closeErr error      // what it returns
	changed  *sync.Cond // the core may have become idle, or Close be done
	outbox   []queue.Request
	sending  []queue.Request // room for the outbox while it is being sent
	flushing bool            // somebody is sending the outbox
	flushes  bool            // a goroutine is about to flush the core
	told     []queue.Signal  // room for the core's signals
	after    []deed          // what to do once mu is let go
	hooks    []func()        // what the hooks' goroutine has to do
	hooking  bool            // there is one
}

// Dial connects to one of the servers, "host:port,host:port/chroot" or
// "unix:/path/to.sock", and returns when a session is there. ctx bounds Dial
// only. A nil opts means the zero Options.
func Dial(ctx context.Context, servers string, opts *Options) (*Client, error) {
	if opts == nil {
		opts = &Options{}
	}
	if err := opts.check(); err != nil {
		return nil, &Error{Op: "dial", Err: err}
	}
	c, err := zk.Dial(ctx, servers, opts.client())
	if err != nil {
		return nil, &Error{Op: "dial", Err: err}
	}
	if err := opts.checkTimeout(c.SessionTimeout()); err != nil {
		_ = c.Close() // nothing is in the session
		return nil, &Error{Op: "dial", Err: err}
	}
	return newClient(c, true, opts), nil
}

// New returns a client that shares the session of c, which stays the caller's to
// close, after this client. Of opts, what concerns the session is not used; nil
// means the zero Options. Invalid opts, which Dial would refuse, show as
// ErrInvalidOptions when a lock is used.
//
// In a session that has lasted for a while the first acquire takes about a third
// of the session's timeout: so long it takes to prove until when a hold is safe.
func New(c *zk.Client, opts *Options) *Client {
	if opts == nil {
		opts = &Options{}
	}
	return newClient(c, false, opts)
}

func newClient(conn *zk.Client, own bool, opts *Options) *Client {
	c := &Client{
		zk: conn, own: own, opts: *opts, log: opts.Logger, name: thisProcess(),
		invalid:  opts.check(),
		attempts: map[queue.ID]*attempt{}, holds: map[queue.ID]*possession{}, asking: map[uint64]*call{},
	}
	c.changed = sync.NewCond(&c.mu)
	c.opts.ACL = slices.Clone(opts.ACL)
	if c.invalid != nil {
		c.opts.ClockDrift = 0 // nothing is to be reckoned with what was refused
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if opts.Owner != nil {
		c.name = *opts.Owner
		c.name.Token = 0
	}
	c.name.Layout = Layout{}
	if opts.Layout.custom() && c.invalid == nil {
		named := c.name
		named.Layout = opts.Layout
		if data, err := named.data(); err == nil && len(data) <= maxOwner-len(time.RFC3339Nano) {
			c.name = named
		}
	}
	if !c.opts.Anonymous {
		c.form = formOf(c.name)
	}
	c.core = queue.New(queue.Config{
		GUID:       newGUID,
		Jitter:     mathrand.Float64,
		Drift:      c.opts.ClockDrift,
		Ours:       func(data []byte) bool { _, ok := ours(data); return ok },
		Persistent: opts.PersistentParents || opts.Layout.persistent(),
		Inherit:    opts.ACL == nil && conn.Authenticates(),
		Sync:       opts.SyncHeartbeat,
		Tick:       opts.ServerTick,
	})
	// The timer's function runs on a goroutine of its own and ends by itself;
	// Close stops the timer.
	c.timer = time.AfterFunc(time.Hour, c.tick)
	c.stop = conn.Listen(zk.Listener{State: c.onState, Event: c.onEvent, Drained: c.onDrained})
	return c
}

func newGUID() (g [16]byte) {
	rand.Read(g[:]) // never fails, says its documentation
	return g
}

// Close ends all holds and waiting acquires, and deletes their znodes: by ending
// the session if Dial made it, which takes a bounded time; else one by one, for
// at most a session's timeout. Holds that had not been released are then lost.
//
// An error says that znodes may be left: it wraps zk.ErrNotConfirmed if the
// servers did not confirm the end of the session, which then ends by its timeout.
// Closing again waits for the first Close and returns what it did.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closing {
		defer c.mu.Unlock()
		for !c.over {
			c.changed.Wait()
		}
		return c.closeErr
	}
	c.closing = true
	c.mu.Unlock()
	err := c.shut()
	if err != nil {
		err = &Error{Op: "close", Err: err}
	}
	c.mu.Lock()
	c.over, c.closeErr = true, err
	c.timer.Stop()
	c.mu.Unlock()
	c.changed.Broadcast()
	return err
}

// errLeft is why a client on a shared session could not be closed in order.
var errLeft = errors.New("znodes of this client are left; they go with the shared session, so close that")

// shut does the work of Close.
func (c *Client) shut() (err error) {
	c.step(func(core *queue.Core, now time.Duration) { core.Shut(now) })
	if c.own {
		err = c.zk.Close()
	} else if !c.awaitIdle(max(c.zk.SessionTimeout(), time.Second)) {
		err = errLeft
	}
	c.stop()
	c.step(func(core *queue.Core, now time.Duration) {
		core.Session(now, queue.SessionChange{State: queue.Closed, Left: err})
	})
	return err
}

// awaitIdle waits until no znode is left, or for this long, and reports whether
// none is.
func (c *Client) awaitIdle(limit time.Duration) bool {
	over := false
	t := time.AfterFunc(limit, func() {
		c.mu.Lock()
		over = true
		c.mu.Unlock()
		c.changed.Broadcast()
	})
	defer t.Stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.core.Idle() && !over {
		c.changed.Wait()
	}
	return c.core.Idle()
}

// owner returns what a znode made at this moment says.
func (c *Client) owner() Owner {
	o := c.name
	if o.Since.IsZero() {
		o.Since = time.Now().Round(time.Millisecond)
	}
	return o
}

// acquirerData returns what goes into the znodes of an acquire, without the cost
// of encoding what is always the same.
func (c *Client) acquirerData(o Owner) ([]byte, error) {
	if data := c.form.at(o.Since); data != nil {
		return data, nil
	}
	return c.ownerData(o)
}

// ownerData returns what goes into a znode. Even without an owner it is a JSON
// object, so that the znode can be told from another library's.
func (c *Client) ownerData(o Owner) ([]byte, error) {
	if c.opts.Anonymous {
		o = Owner{Token: o.Token}
	}
	return o.data()
}

// begin makes a claim.
func (c *Client) begin(ctx context.Context, l *Lock, try bool, since time.Time, data []byte) *attempt {
	a := &attempt{lock: l, try: try, data: data, since: since, settled: make(chan struct{}), place: "no server answered yet"}
	c.step(func(core *queue.Core, now time.Duration) {
		if c.opts.hooked() {
			c.began++
			a.story = &story{number: c.began, ctx: ctx, begun: now}
		}
		if l.turns > 1 {
			c.joinLocal(core, now, a)
		} else {
			c.claim(core, now, a)
		}
	})
	return a
}

// abandon gives up a claim whose context is done, even if it was granted just
// now, and returns what is known of its place in the queue.
func (c *Client) abandon(a *attempt, why error) (place string) {
	c.step(func(core *queue.Core, now time.Duration) {
		place = a.place
		if h := a.hold; h != nil && h.err == nil {
			// The hooks were told of it, so it ends for them as well.
			c.giveUp(core, now, h, false)
			return
		}
		if a.hold == nil && a.err == nil {
			c.tellFailed(a, why)
			if a.local != nil {
				c.leaveLocal(core, now, a)
				return
			}
			delete(c.attempts, a.id)
		}
		if a.local == nil {
			core.Cancel(now, a.id)
		}
	})
	return place
}
