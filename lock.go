package zklock

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
)

// A Lock names a lock of any kind, and how to acquire it. It is immutable, costs nothing
// to make, and is safe for concurrent use; an acquired lock is a [Hold]. Methods of a
// Client and [All] make Locks. The zero Lock and a nil Lock fail with ErrInvalidLock.
type Lock struct {
	client     *Client
	path       string
	components []component
	err        error // why every acquire fails

	all         bool
	inOrder     bool
	reentrant   bool
	maxHandoffs int    // how many holds in a row may share a znode; 0 means 1
	value       string // what an acquire publishes with its entry; see WithValue
}

// Mutex returns the exclusive lock with this name. The name "demo" means the znode
// /zklock/demo. A name that begins with a slash is the path of the znode. Both are below
// the chroot of the connection string. If the name is invalid, uses of the lock fail with
// ErrInvalidName.
//
// On ZooKeeper, the lock is the queue of ephemeral sequential znodes of Curator's
// InterProcessMutex. The lock is granted in order of arrival, and waits for every entry
// ahead, whichever library created it. It is not re-entrant, but see [Lock.Reentrant].
// [Options].Layout changes the names of the znodes.
func (c *Client) Mutex(name string) *Lock {
	return c.queueLock(name, queue.Exclusive, false)
}

// NodeLock returns the lock that is one ephemeral znode: the client that creates the
// znode at the path of this name holds the lock. Use it to share a lock with programs
// that already lock this way. See [Client.Mutex] for names. A znode at the path that is
// not ephemeral belongs to no client, and blocks all clients until it is deleted.
//
// A node lock is weaker than the other kinds. It has no order: when the znode is deleted,
// all waiters are notified and race. Its name is fixed, so no check tells the znode of
// one holder from that of the next. Therefore [Hold.Verify] and [Hold.Guard] fail with
// ErrInvalidLock, [Lock.Revoke] may ask the next holder instead, and a release assumes
// that only holders delete the znode. The token of a hold is the czxid of its znode.
func (c *Client) NodeLock(name string) *Lock {
	path, err := parseName(name, c.opts.Layout)
	return c.newLock(component{path: path, mode: Exclusive, node: true}, err)
}

// queueLock returns the lock of one queue.
func (c *Client) queueLock(name string, kind queue.Kind, writer bool) *Lock {
	p, err := c.queueComponent(name, kind, writer)
	return c.newLock(p, err)
}

// newLock returns the lock of one component. An error of the client takes precedence over
// err.
func (c *Client) newLock(p component, err error) *Lock {
	if c.invalid != nil {
		err = c.invalid
	}
	return &Lock{client: c, path: p.path, components: []component{p}, err: err}
}

// Path returns the path of the lock, below the chroot of the client: the path of the
// znode whose children are the queue, of the znode of a semaphore, or of the znode of a
// node lock. For an [All], Path is a human-readable list of its locks.
func (l *Lock) Path() string {
	if l == nil {
		return ""
	}
	return l.path
}

// String returns the path.
func (l *Lock) String() string { return l.Path() }

// validate returns why the lock cannot be used, or nil.
func (l *Lock) validate() error {
	if l == nil || l.err == nil && l.client == nil {
		return fmt.Errorf("%w: no client created it", ErrInvalidLock)
	}
	return l.err
}

// derive returns a copy of the lock with the changes that edit makes.
func (l *Lock) derive(edit func(*Lock) error) *Lock {
	var changed Lock
	if l != nil {
		changed = *l
	}
	if changed.err = l.validate(); changed.err == nil {
		changed.err = edit(&changed)
	}
	return &changed
}

// Acquire waits until the lock is granted and returns a hold. ctx bounds the wait, not
// the hold. If ctx ends before the grant, the error says what Acquire waited for. It names
// the holder after a wait of a second, or of half of the time that ctx allowed, but of at
// least 100 ms. If permits of a semaphore are missing, it names the znode of one of them.
//
// If Acquire fails, the caller holds nothing. The client deletes what it created on the
// servers in the background, even if ctx is done. If the session expires while Acquire
// waits, Acquire enqueues again at the end of the queue, in the next session.
//
// If ctx comes from [Hold.Context], it carries that hold. An acquire that would wait for
// a hold in its own context fails at once with ErrReentry or ErrUpgrade, or re-enters;
// see [Lock.Reentrant].
func (l *Lock) Acquire(ctx context.Context) (*Hold, error) { return l.acquire(ctx, false) }

// TryAcquire acquires the lock like Acquire, but fails with ErrLocked where Acquire would
// wait for a holder or for a waiter ahead. If a holder is the reason and one read of its
// entry succeeds, the text of the error names the holder and the age of its entry.
func (l *Lock) TryAcquire(ctx context.Context) (*Hold, error) { return l.acquire(ctx, true) }

// An acquisition is one Acquire in progress. The mutex of the client guards its fields.
type acquisition struct {
	id   queue.ID // of the acquire in the core; an acquisition that waits for a handoff has none
	lock *Lock
	try  bool
	data []byte // what its znodes contain
	// tellAfter is how long it waits before it reads whose entry it waits for; see
	// [Client.tellAfter].
	tellAfter time.Duration
	handoff   *handoff  // the handoff that it belongs to; nil if the lock has none
	started   time.Time // when the acquire began, as its znodes say
	hold      *Hold
	err       error
	done      chan struct{} // closed when hold or err is set
	wait      wait          // its last known position in the queue
	blocker   string        // the znode of the holder because of which a try failed, if known
	timeline  *timeline     // of its calls of hooks; nil if there are no hooks
}

// errReadOnlySession is the error of an acquire in a session that can connect to a read-only
// server. Such a server can report the deletion of an entry that was never committed.
var errReadOnlySession = fmt.Errorf("%w: the session has zk.Options.ReadOnly; "+
	"a read-only server can report changes that the ensemble undoes", ErrInvalidOptions)

func (l *Lock) acquire(ctx context.Context, try bool) (*Hold, error) {
	fail := func(err error) error { return &Error{Op: "acquire", Path: l.Path(), Err: err} }
	if err := l.validate(); err != nil {
		return nil, fail(err)
	}
	if l.client.zk.ReadOnly() {
		return nil, fail(errReadOnlySession)
	}
	if ctx.Err() != nil {
		return nil, fail(contextError(ctx))
	}
	if h, err := l.reenter(ctx, try); err != nil {
		return nil, fail(err)
	} else if h != nil {
		return h, nil
	}
	if !try {
		var stop context.CancelFunc
		ctx, stop = l.withAllTimeout(ctx)
		defer stop()
	}
	owner := l.client.newOwner()
	data, err := l.client.encodeEntry(owner, l.value)
	if err != nil {
		return nil, fail(err)
	}
	a := l.client.start(ctx, l, try, owner.Since, data)
	select {
	case <-a.done:
	case <-ctx.Done():
		why := contextError(ctx)
		return nil, fail(fmt.Errorf("%w (%s)", why, l.client.cancel(a, why)))
	}
	if a.blocker != "" {
		return nil, fail(l.holderError(ctx, a.blocker))
	}
	if a.err != nil {
		return nil, fail(a.err)
	}
	return a.hold, nil
}

// start starts an acquire. Locks with a handoff go through handoff.go; all others
// directly to the core.
func (c *Client) start(ctx context.Context, l *Lock, try bool, since time.Time, data []byte) *acquisition {
	a := &acquisition{lock: l, try: try, data: data, tellAfter: c.tellAfter(ctx), started: since, done: make(chan struct{})}
	c.step(func(core *queue.Core, now time.Duration) {
		if c.opts.hasHooks() {
			c.acquireCount++
			a.timeline = &timeline{number: c.acquireCount, ctx: ctx, started: now}
		}
		if l.maxHandoffs > 1 {
			c.enqueueLocal(core, now, a)
		} else {
			c.enqueue(core, now, a)
		}
	})
	return a
}

// tellAfter returns how long an acquire waits before it reads whose entry it waits for. The
// error of an acquire that ends earlier does not name the holder, so one whose context ends
// soon reads in half of the time left. A read does not pay in a wait of less than 100 ms.
func (c *Client) tellAfter(ctx context.Context) time.Duration {
	const least, most = 100 * time.Millisecond, time.Second
	deadline, ok := ctx.Deadline()
	switch {
	case c.opts.OnWait != nil:
		return 0
	case !ok:
		return most
	}
	return min(max(time.Until(deadline)/2, least), most)
}

// enqueue passes the acquire to the core, whose requests send puts on the wire. The mutex
// is held.
func (c *Client) enqueue(core *queue.Core, now time.Duration, a *acquisition) {
	a.id = core.Acquire(now, a.lock.spec(a.try, a.data, a.tellAfter))
	c.acquisitions[a.id] = a
}

// cancel cancels an acquire whose context is done, even if it has just been granted. It
// returns its last known position in the queue, and why the servers answer no writes.
func (c *Client) cancel(a *acquisition, why error) (place string) {
	offline := c.zk.ConnectError()
	c.step(func(core *queue.Core, now time.Duration) {
		if a.wait.node == "" && a.id != 0 {
			a.wait.ahead = core.EntriesAhead(a.id)
		}
		if place = a.position(); offline != nil {
			place += "; " + offline.Error()
		}
		if h := a.hold; h != nil && h.err == nil {
			// The hooks were told of the grant, so the hold ends for them
			// too.
			c.releaseHold(core, now, h, false)
			return
		}
		if a.hold == nil && a.err == nil {
			c.notifyFailed(a, why)
			if a.handoff != nil {
				c.cancelLocal(core, now, a)
				return
			}
			delete(c.acquisitions, a.id)
		}
		if a.handoff == nil {
			core.Cancel(now, a.id)
		}
	})
	return place
}

// A wait is the position of an acquire in the queue. It has the data of the blocker as
// they were read: parsing them costs more than the rest of a wait, and few callers ask.
type wait struct {
	local int    // how many acquires of this client waited for the handoff, with this one; 0 for none
	ahead int    // how many entries are ahead in the queue
	node  string // the znode of the blocker, "" while it is not known
	data  []byte // of that znode, or only their beginning, if this package cannot have written them
}

// setPosition records the position of an acquire in the queue. The mutex is held.
func (c *Client) setPosition(a *acquisition, s queue.Signal) {
	a.wait.ahead, a.wait.node, a.wait.data = s.Ahead, s.Blocker, s.Data
	if len(s.Data) > maxDataSize {
		a.wait.data = bytes.Clone(s.Data[:maxDataSize+1]) // still too long for an owner
	}
	c.notifyWaiting(a)
}

// notifyWaiting queues a call of OnWait, if it is set. The mutex is held.
func (c *Client) notifyWaiting(a *acquisition) {
	if c.opts.OnWait != nil {
		blocker, _, _ := a.blockingEntry()
		c.queueWaiting(a, a.wait.ahead, blocker)
	}
}

// blockingEntry returns the entry that an acquire waits for, and the component that it
// belongs to. If entry is false, it is the record of a lost holder.
func (a *acquisition) blockingEntry() (blocker Entry, of component, entry bool) {
	w := &a.wait
	owner, text := parseOwner(w.data)
	of, entry = a.lock.componentOf(w.node)
	if !entry {
		of = a.lock.componentOfRecord(w.node)
	}
	return Entry{
		Path: of.path, Node: w.node, Name: path.Base(w.node), Mode: of.modeOf(w.node),
		Owner: owner, Data: text, Revoked: queue.ReleaseRequested(w.data),
	}, of, entry
}

// position describes the position of an acquire in the queue. The mutex is held.
func (a *acquisition) position() string {
	w := &a.wait
	switch {
	case w.node == "" && w.local > 0:
		return fmt.Sprintf("position %d among the waiters of this client", w.local)
	case w.node == "" && w.ahead == 1:
		return "one entry ahead in the queue"
	case w.node == "" && w.ahead > 1:
		return fmt.Sprintf("%d entries ahead in the queue", w.ahead)
	case w.node == "":
		return "no answer from a server yet"
	}
	blocker, of, entry := a.blockingEntry()
	which := ""
	if a.lock.all {
		which = " for " + of.path
	}
	switch {
	case !entry:
		return fmt.Sprintf("position 1%s, after the lock-delay of the lost holder %s", which, blocker.Name)
	case of.mode == Permit && path.Dir(w.node) == queue.LeasesPath(of.path):
		return fmt.Sprintf("waits for the release of permits%s, such as %s", which, blocker.shortName())
	case w.ahead == 1 && of.mode == Permit:
		return fmt.Sprintf("one entry ahead in the queue%s, of %s", which, blocker.shortName())
	case w.ahead == 1:
		return fmt.Sprintf("position 1%s, held by %s", which, blocker.shortName())
	}
	// How many of them hold is not known, so the position among the waiters is not either.
	return fmt.Sprintf("%d entries ahead in the queue%s, the last of %s", w.ahead, which, blocker.shortName())
}

// holderTimeout bounds the read by which a failed TryAcquire names the holder.
const holderTimeout = time.Second

// maxHolderName bounds the name of a holder in an error, in bytes.
const maxHolderName = 100

// shortName returns the name of the owner for an error, or if that is too long, the name of
// the znode.
func (e Entry) shortName() string {
	if name := e.ownerName(); len(name) <= maxHolderName {
		return name
	}
	return legible.Path(e.Name)
}

// holderError returns the error of a try that failed because of the holder with this
// znode: ErrLocked, with the name of the holder if one read returns it.
func (l *Lock) holderError(ctx context.Context, node string) error {
	of, ok := l.componentOf(node)
	if !ok {
		return ErrLocked
	}
	ctx, cancel := context.WithTimeout(ctx, holderTimeout)
	defer cancel()
	results, err := l.client.doAll(ctx, zk.GetOp(node, false))
	if err != nil || results[0].Err != nil {
		return ErrLocked
	}
	e := Entry{Path: of.path, Node: node, Name: path.Base(node), Mode: of.modeOf(node), Holder: true}.decode(results[0]).Entry
	if e.Session == 0 {
		return ErrLocked
	}
	holder := e.ownerName()
	if holder == e.Name || len(holder) > maxHolderName {
		holder = fmt.Sprintf("session %#x", uint64(e.Session))
	} else if e.Owner.Command != "" && len(holder)+len(e.Owner.Command) <= maxHolderName {
		holder += " (" + e.Owner.Command + ")"
	}
	return &lockedError{holder: holder, age: time.Since(e.Since)}
}

// contextError returns why ctx is done: its error, and its cause if that is different.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	// Go cannot compare errors of some types, even inside a struct.
	differs := reflect.TypeOf(cause) != reflect.TypeOf(err) || reflect.ValueOf(cause).Comparable() && cause != err
	if cause != nil && differs {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}

// Do acquires the lock, calls f, and releases the lock. The context of f is done when ctx
// is done or the hold is lost; if the hold is lost, its cause wraps ErrLost. f should then
// return. Do returns the error of f. If the hold was lost, Do joins the loss to that
// error, also a loss that only the release detects, such as a znode that another client
// deleted. If the servers do not confirm the release within a few seconds, Do does not
// report an error, because the work of f is done. The release continues in the
// background, and OnRelease or OnLost reports its outcome.
func Do(ctx context.Context, l *Lock, f func(ctx context.Context, h *Hold) error) error {
	h, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	return h.do(ctx, f)
}

// A component is one lock as the servers have it: a queue, a semaphore, or a node lock.
// An All has several components, every other Lock has one.
type component struct {
	path      string // what Lock.Path returns for it
	mode      Mode
	member    queue.Member    // for a queue
	semaphore queue.Semaphore // for mode Permit
	node      bool            // the component is a node lock; its znode is path
}

// key identifies what a component contends for: components with the same key exclude each
// other.
func (p component) key() string {
	switch {
	case p.mode == Permit:
		return "semaphore " + p.semaphore.Path
	case p.node:
		return "node " + p.path
	}
	return "queue " + p.queue()
}

// queue returns the path of the queue. If a parent has several queues, the name of the
// queue is added.
func (p component) queue() string {
	if p.member.Names.Only {
		return path.Join(p.member.Path, p.member.Names.Prefix)
	}
	return p.member.Path
}

// paths returns the paths that the component uses. If two components of one lock shared a
// path, the lock would wait for itself.
func (p component) paths() []string {
	if p.mode == Permit {
		return []string{p.path, queue.GatePath(p.path), queue.LeasesPath(p.path), queue.SizePath(p.path)}
	}
	return []string{p.path}
}

// owns reports whether the znode with this path is an entry of the component.
func (p component) owns(node string) bool {
	dir, base := path.Dir(node), path.Base(node)
	switch {
	case p.node:
		return node == p.path
	case p.mode == Permit:
		return dir == queue.LeasesPath(p.path) || dir == queue.GatePath(p.path)
	case dir != p.member.Path:
		return false
	}
	_, class := p.member.Names.Parse(base)
	return class == queue.Contender
}

// spec returns what the core acquires.
func (l *Lock) spec(try bool, data []byte, tellAfter time.Duration) queue.Spec {
	s := queue.Spec{InOrder: l.inOrder, Try: try, Data: data, Delay: l.client.opts.LockDelay, TellAfter: tellAfter}
	for _, p := range l.components {
		switch {
		case p.node:
			s.Node = p.path
		case p.mode == Permit:
			s.Semaphores = append(s.Semaphores, p.semaphore)
		default:
			s.Members = append(s.Members, p.member)
		}
	}
	// All clients use the same order, so that no two of them wait for each other.
	slices.SortFunc(s.Semaphores, func(a, b queue.Semaphore) int { return strings.Compare(a.Path, b.Path) })
	return s
}

// onlySemaphores reports whether the lock consists of several semaphores: each is
// acquired in a transaction of its own, and there is no common queue.
func (l *Lock) onlySemaphores() bool {
	return len(l.components) > 1 && !slices.ContainsFunc(l.components, func(p component) bool { return p.mode != Permit })
}

// componentOf returns the component that has this znode as an entry.
func (l *Lock) componentOf(node string) (component, bool) {
	i := slices.IndexFunc(l.components, func(p component) bool { return p.owns(node) })
	if i < 0 {
		return component{}, false
	}
	return l.components[i], true
}

// componentOfRecord returns the component that a lock-delay's record belongs to.
func (l *Lock) componentOfRecord(record string) component {
	i := slices.IndexFunc(l.components, func(p component) bool { return queue.Held(p.path) == path.Dir(record) })
	if i < 0 {
		return component{}
	}
	return l.components[i]
}

// modeOf returns the mode of the entry with this path; a record is a stray.
func (p component) modeOf(node string) Mode {
	switch {
	case !p.owns(node):
		return Stray
	case p.node || p.mode == Permit:
		return p.mode
	}
	if e, _ := p.member.Names.Parse(path.Base(node)); e.Kind == queue.Shared {
		return Shared
	}
	return Exclusive
}

// isNodeLock reports whether the lock is one znode with a fixed name.
func (l *Lock) isNodeLock() bool { return !l.all && l.components[0].node }

// hasReusableNames reports whether the name of a deleted znode of the lock can be used
// again for the znode of another client. That holds for fixed names, and for layouts
// without GUIDs.
func (l *Lock) hasReusableNames() bool {
	return slices.ContainsFunc(l.components, func(p component) bool {
		return p.node || p.mode != Permit && p.member.Names.HasReusableNames()
	})
}
