package zklock

import (
	"context"
	"fmt"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// A Lock is the name of a lock, of whatever kind, and how to take it. It is
// immutable, costs nothing to make, and is safe for concurrent use: possession
// is a [Hold]. Locks are made by a Client's methods and by [All]; the zero Lock,
// and a nil one, fail with ErrInvalidLock.
type Lock struct {
	client *Client
	path   string
	parts  []part
	err    error // why no acquire can succeed

	all       bool
	inOrder   bool
	reentrant bool
	turns     int // how many holds in a row may share a znode; 0 as 1
}

// Mutex returns the exclusive lock with this name: "demo" means the znode
// /zklock/demo, and a name that begins with a slash is the znode's path, both
// under the chroot of the connection string. A name that can't be one shows as
// ErrInvalidName when the lock is used.
//
// On ZooKeeper it is the queue of ephemeral sequential znodes of Curator's
// InterProcessMutex: it is granted in order of arrival, waits for whoever is
// ahead whatever library wrote their znodes, and is not re-entrant, but see
// [Lock.Reentrant]. [Options].Layout changes the znodes' names.
func (c *Client) Mutex(name string) *Lock {
	return c.queueLock(name, queue.Exclusive, false)
}

// queueLock returns the lock on one queue.
func (c *Client) queueLock(name string, kind queue.Kind, writer bool) *Lock {
	p, err := c.queuePart(name, kind, writer)
	return c.lock(p, err)
}

// lock returns the lock of one part. What is wrong with the client comes first.
func (c *Client) lock(p part, err error) *Lock {
	if c.invalid != nil {
		err = c.invalid
	}
	return &Lock{client: c, path: p.path, parts: []part{p}, err: err}
}

// Path returns the path that the lock's name means, below the client's chroot:
// of the znode whose children are the queue, of a semaphore's znode, of a node
// lock's znode itself. Of an [All] it is a text for people that names its locks.
func (l *Lock) Path() string {
	if l == nil {
		return ""
	}
	return l.path
}

// String returns the path.
func (l *Lock) String() string { return l.Path() }

// usable returns why the lock can't be used.
func (l *Lock) usable() error {
	if l == nil || l.err == nil && l.client == nil {
		return fmt.Errorf("%w: it was not made by a client", ErrInvalidLock)
	}
	return l.err
}

// with returns a copy of the lock that edit has changed.
func (l *Lock) with(edit func(*Lock) error) *Lock {
	var changed Lock
	if l != nil {
		changed = *l
	}
	if changed.err = l.usable(); changed.err == nil {
		changed.err = edit(&changed)
	}
	return &changed
}

// Acquire waits its turn and returns a hold. ctx bounds the wait, not the hold.
//
// If Acquire fails, nothing is held, and what it left on the servers is removed
// in the background whatever becomes of ctx. When the session expires while it
// waits, it queues again at the back, in the next session.
//
// A ctx that comes from [Hold.Context] carries that hold: an acquire that would
// have to wait for it fails at once, with ErrReentry or ErrUpgrade, or re-enters;
// see [Lock.Reentrant].
func (l *Lock) Acquire(ctx context.Context) (*Hold, error) { return l.acquire(ctx, false) }

// TryAcquire is Acquire, but fails with ErrLocked where Acquire would have to
// wait for another holder, or for whoever waits ahead.
func (l *Lock) TryAcquire(ctx context.Context) (*Hold, error) { return l.acquire(ctx, true) }

// attempt is an Acquire under way. Its fields are guarded by the client's mutex.
type attempt struct {
	id      queue.ID // of its claim; a Local lock's has none until it leads
	lock    *Lock
	try     bool
	data    []byte    // what goes into its znodes
	local   *local    // what a Local lock's belongs to
	since   time.Time // when it began, as its znodes say
	hold    *Hold
	err     error
	settled chan struct{} // closed when hold or err is set
	place   string        // where it stands, for the error's text
	story   *story        // for the hooks, if there are any
}

func (l *Lock) acquire(ctx context.Context, try bool) (*Hold, error) {
	fail := func(err error) error { return &Error{Op: "acquire", Path: l.Path(), Err: err} }
	if err := l.usable(); err != nil {
		return nil, fail(err)
	}
	if ctx.Err() != nil {
		return nil, fail(contextError(ctx))
	}
	if h, err := l.enter(ctx, try); err != nil {
		return nil, fail(err)
	} else if h != nil {
		return h, nil
	}
	if !try {
		var stop context.CancelFunc
		ctx, stop = l.limit(ctx)
		defer stop()
	}
	owner := l.client.owner()
	data, err := l.client.acquirerData(owner)
	if err != nil {
		return nil, fail(err)
	}
	a := l.client.begin(ctx, l, try, owner.Since, data)
	select {
	case <-a.settled:
	case <-ctx.Done():
		why := contextError(ctx)
		return nil, fail(fmt.Errorf("%w (%s)", why, l.client.abandon(a, why)))
	}
	if a.err != nil {
		return nil, fail(a.err)
	}
	return a.hold, nil
}

// contextError says why ctx is done: its error, and its cause where that says more.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause != nil && cause != err {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// Do acquires the lock, calls f, and releases the lock. f's context is done when
// ctx is, and when the hold is lost, with ErrLost as its cause; f should then
// return. Do returns f's error, joined with the loss of the hold if it was lost
// before the release, whatever f returned; the release itself finds out that somebody
// deleted the hold's znode. A release that the servers do not confirm within some
// seconds is no error of Do's, since f's work is done; it goes on in the background,
// and OnRelease or OnLost reports what came of it.
func Do(ctx context.Context, l *Lock, f func(ctx context.Context, h *Hold) error) error {
	h, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	return h.do(ctx, f)
}
