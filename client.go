package zklock

import (
	"context"
	"crypto/rand"
	"log/slog"
	mathrand "math/rand/v2"
	"sync"
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

	// mu guards what follows. It is never held while another lock is taken, nor
	// across a call into zk, a channel operation or a hook.
	mu       sync.Mutex
	core     *queue.Core
	attempts map[queue.ID]*attempt
	holds    map[queue.ID]*Hold
	verifies map[uint64]chan<- error
	calls    uint64
	timer    *time.Timer
	closed   bool
	idle     *sync.Cond // the core may have become idle
	outbox   []queue.Request
	flushing bool     // somebody is sending the outbox
	after    []func() // what to do once mu is let go
	hooks    []func() // what the hooks' goroutine has to do
	hooking  bool     // there is one
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
	return newClient(c, true, opts), nil
}

// New returns a client that shares the session of c, which stays the caller's to
// close, after this client. Of opts, what concerns the session is not used; nil
// means the zero Options. It panics if opts are invalid, as Dial would refuse.
func New(c *zk.Client, opts *Options) *Client {
	if opts == nil {
		opts = &Options{}
	}
	return newClient(c, false, opts)
}

func newClient(conn *zk.Client, own bool, opts *Options) *Client {
	c := &Client{
		zk: conn, own: own, opts: *opts, log: opts.Logger, name: thisProcess(),
		attempts: map[queue.ID]*attempt{}, holds: map[queue.ID]*Hold{}, verifies: map[uint64]chan<- error{},
	}
	c.idle = sync.NewCond(&c.mu)
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if opts.Owner != nil {
		c.name = *opts.Owner
	}
	c.core = queue.New(queue.Config{
		GUID:       newGUID,
		Jitter:     mathrand.Float64,
		Drift:      opts.ClockDrift,
		Persistent: opts.PersistentParents,
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
func (c *Client) Close() error {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.mu.Unlock()
	if again {
		return nil
	}
	c.step(func(core *queue.Core, now time.Duration) { core.Shut(now) })
	var err error
	if c.own {
		err = c.zk.Close()
	} else {
		c.awaitIdle(max(c.zk.SessionTimeout(), time.Second))
	}
	c.stop()
	c.step(func(core *queue.Core, now time.Duration) {
		core.Session(now, queue.SessionChange{State: queue.Closed})
	})
	c.mu.Lock()
	c.timer.Stop()
	c.mu.Unlock()
	if err != nil {
		return &Error{Op: "close", Err: err}
	}
	return nil
}

// awaitIdle waits until no znode is left, or for this long.
func (c *Client) awaitIdle(limit time.Duration) {
	over := false
	t := time.AfterFunc(limit, func() {
		c.mu.Lock()
		over = true
		c.mu.Unlock()
		c.idle.Broadcast()
	})
	defer t.Stop()
	c.mu.Lock()
	for !c.core.Idle() && !over {
		c.idle.Wait()
	}
	c.mu.Unlock()
}

// ownerData returns what goes into a znode.
func (c *Client) ownerData() ([]byte, error) {
	if c.opts.Anonymous {
		return []byte{}, nil
	}
	return c.name.data(time.Now())
}

// begin makes a claim.
func (c *Client) begin(l *Lock, try bool, data []byte) *attempt {
	a := &attempt{lock: l, settled: make(chan struct{}), place: "no server answered yet"}
	c.step(func(core *queue.Core, now time.Duration) {
		a.begun = now
		a.id = core.Acquire(now, l.path, l.kind, try, data)
		c.attempts[a.id] = a
	})
	return a
}

// abandon gives up a claim whose context is done, even if it was granted just now.
func (c *Client) abandon(a *attempt) {
	c.step(func(core *queue.Core, now time.Duration) {
		delete(c.attempts, a.id)
		delete(c.holds, a.id)
		core.Cancel(now, a.id)
	})
}

// release ends a hold, and returns an error if it was lost before.
func (c *Client) release(h *Hold) (err error) {
	c.step(func(core *queue.Core, now time.Duration) {
		core.Tick(now)
		c.apply(core)
		switch {
		case h.err == nil:
			h.giving = true
			c.end(h, &Error{Op: "hold", Path: h.lock.path, Err: ErrReleased})
			core.Release(now, h.id)
		case !h.giving:
			err = h.err
		}
	})
	return err
}

// verify asks a quorum about a hold; the answer comes on the channel.
func (c *Client) verify(h *Hold) <-chan error {
	answer := make(chan error, 1) // one answer, so that sending never blocks
	c.step(func(core *queue.Core, now time.Duration) {
		c.calls++
		c.verifies[c.calls] = answer
		core.Verify(now, h.id, c.calls)
	})
	return answer
}

// end marks a hold as over, and wakes who waits for that.
func (c *Client) end(h *Hold, why error) {
	h.err = why
	contexts := h.contexts
	h.contexts = nil
	c.after = append(c.after, func() {
		h.closeDone.Do(func() { close(h.done) })
		for hc := range contexts {
			hc.cancel(why)
		}
	})
}
