package locktest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// A LockTarget configures the servers and the kind of lock of the tests.
type LockTarget struct {
	// Servers is the connection string, without a chroot.
	Servers string
	// DialContext opens connections; nil means net.Dialer.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// SessionTimeout is a timeout that the servers accept. In real time, sessions must survive
	// stalls of the machine.
	SessionTimeout time.Duration
	// Expiry is the timeout of a session whose expiry a test waits for. Zero means
	// SessionTimeout.
	Expiry time.Duration
	// Kind is the kind of lock. The zero Kind is the mutex.
	Kind Kind
}

// RunLocksInBubbles runs all tests, each in its own testing/synctest bubble. It calls start
// inside the bubble.
func RunLocksInBubbles(t *testing.T, start func(t *testing.T) LockTarget) {
	run(t, func(t *testing.T, test func(*testing.T, LockTarget)) {
		synctest.Test(t, func(t *testing.T) { test(t, start(t)) })
	})
}

// limit bounds every wait in these tests. Only a test that hangs reaches it.
const limit = 5 * time.Minute

// RunLocks runs all tests in real time and in parallel, each with its own paths.
func RunLocks(t *testing.T, target LockTarget) {
	run(t, func(t *testing.T, test func(*testing.T, LockTarget)) {
		t.Parallel()
		test(t, target)
	})
}

func run(t *testing.T, within func(t *testing.T, test func(*testing.T, LockTarget))) {
	for _, test := range tests() {
		t.Run(test.name, func(t *testing.T) {
			within(t, func(t *testing.T, target LockTarget) {
				if !target.Kind.has(test.needs) {
					t.SkipNow() // the kind lacks a feature
				}
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				defer cancel()
				test.run(&env{T: t, target: target, ctx: ctx, name: fmt.Sprintf("%s-%d", test.name, unique.Add(1))})
			})
		})
	}
}

// conformance is a test and the features that it needs.
type conformance struct {
	name  string
	needs needs
	run   func(*env)
}

func tests() []conformance {
	return []conformance{
		{"Acquire", anything, testAcquire},
		{"Try", anything, testTry},
		{"Order", ordered, testOrder},
		{"Tokens", queued, testTokens},
		{"CancelledLeavesNothing", ordered | counted, testCancel},
		{"ReleaseOutlivesContext", anything, testReleaseContext},
		{"Do", anything, testDo},
		{"Context", anything, testContext},
		{"Verify", guarded, testVerify},
		{"HolderDeleted", anything, testHolderDeleted},
		{"BrokenHold", anything, testBrokenHold},
		{"WaiterDeleted", queued, testWaiterDeleted},
		{"ParentDeleted", queued, testParentDeleted},
		{"SessionClosed", ordered, testSessionClosed},
		{"Crash", ordered, testCrash},
		{"Close", ordered | counted, testClose},
		{"SharedSession", anything, testSharedSession},
		{"SoleUse", mutex, testSoleUse},
		{"Inspect", mutex, testInspect},
		{"OtherLayouts", mutex, testOtherLayouts},
		{"WriterBecomesReader", mutex, testWriterBecomesReader},
		{"SequenceLimit", mutex, testMalformed},
		{"Hooks", queued | ordered, testHooks},
		{"NoPermission", mutex, testNoPermission},
		{"UnreadableBlocker", mutex, testUnreadableBlocker},
		{"Contention", anything, testContention},
		{"ReadWrite", mutex, testReadWrite},
		{"Semaphore", mutex, testSemaphore},
		{"Resize", mutex, testResize},
		{"All", mutex, testAll},
		{"NodeLock", mutex, testNodeLock},
		{"Guard", mutex, testGuard},
		{"OncePer", mutex, testOncePer},
		{"Revoke", mutex, testRevoke},
		{"Value", mutex, testValue},
		{"Watch", mutex, testWatch},
		{"Layouts", mutex, testLayouts},
		{"LockDelay", mutex, testLockDelay},
		{"KindsContend", mutex, testKindsContend},
	}
}

// unique distinguishes runs on one server.
var unique atomic.Int64

// env is the environment of a test.
type env struct {
	*testing.T
	target      LockTarget
	ctx         context.Context
	name        string // a unique lock name
	waits       atomic.Int64
	syncClients []*zk.Client // one connected to each server of an ensemble
}

func (e *env) options() *zklock.Options {
	o := e.target.Kind.Options
	o.SessionTimeout, o.DialContext = e.target.SessionTimeout, e.target.DialContext
	o.OnWait = func(zklock.Event) { e.waits.Add(1) }
	return &o
}

// lock returns the lock with this name, of the target's kind.
func (e *env) lock(c *zklock.Client, name string) *zklock.Lock {
	if e.target.Kind.Lock == nil {
		return c.Mutex(name)
	}
	return e.target.Kind.Lock(c, name)
}

// dial returns a client, which is closed when the test ends.
func (e *env) dial() *zklock.Client {
	e.Helper()
	return e.dialWith(e.options())
}

func (e *env) dialWith(o *zklock.Options) *zklock.Client {
	e.Helper()
	c, err := zklock.Dial(e.ctx, e.target.Servers, o)
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { c.Close() })
	return c
}

// operator returns a client without locks.
func (e *env) operator() *zk.Client {
	e.Helper()
	c, err := zk.Dial(e.ctx, e.target.Servers, &zk.Options{SessionTimeout: e.target.SessionTimeout, DialContext: e.target.DialContext})
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { c.Close() })
	return c
}

// create creates a znode and returns its path.
func (e *env) create(op *zk.Client, path string, data []byte, mode zk.CreateMode) string {
	e.Helper()
	made, _, err := op.Create(e.ctx, path, data, nil, mode)
	if err != nil {
		e.Fatal(err)
	}
	return made
}

// remove deletes a znode.
func (e *env) remove(op *zk.Client, path string) {
	e.Helper()
	if err := op.Delete(e.ctx, path, -1); err != nil {
		e.Fatal(err)
	}
}

// token returns the hold's fencing token. An All in order has none; then it returns the token
// of the lock e.name.
func (e *env) token(h *zklock.Hold) int64 {
	if t := h.Token(); t != 0 {
		return t
	}
	path, err := zklock.PathOf(e.name)
	if err != nil {
		e.Fatal(err)
	}
	return h.TokenOf(path)
}

func (e *env) acquire(l *zklock.Lock) *zklock.Hold {
	e.Helper()
	h, err := l.Acquire(e.ctx)
	if err != nil {
		e.Fatal(err)
	}
	return h
}

func (e *env) release(h *zklock.Hold) {
	e.Helper()
	if err := h.Release(e.ctx); err != nil {
		e.Fatal(err)
	}
}

// acquiring starts an Acquire, and returns when its entry is in the queue. If entries do not
// show that, it returns when OnWait was called. The channel receives the hold, or nil if the
// acquire failed.
func (e *env) acquiring(ctx context.Context, l *zklock.Lock) <-chan *zklock.Hold {
	e.Helper()
	if e.target.Kind.has(counted) {
		return e.acquiringUntil(ctx, l, func() int { return e.entries(l) })
	}
	return e.acquiringPermits(ctx, l)
}

// acquiringPermits is acquiring for semaphores. It waits for OnWait, because an acquire has one
// additional entry for a moment.
func (e *env) acquiringPermits(ctx context.Context, l *zklock.Lock) <-chan *zklock.Hold {
	e.Helper()
	return e.acquiringUntil(ctx, l, func() int { return int(e.waits.Load()) })
}

func (e *env) acquiringUntil(ctx context.Context, l *zklock.Lock, waiting func() int) <-chan *zklock.Hold {
	e.Helper()
	before := waiting()
	got := make(chan *zklock.Hold, 1)
	go func() { // ends with the acquire, whose ctx the test bounds
		h, err := l.Acquire(ctx)
		if err != nil && ctx.Err() == nil {
			e.Error(err)
		}
		got <- h
	}()
	e.until("the waiter is in the queue", func() bool { return waiting() > before })
	return got
}

func (e *env) entries(l *zklock.Lock) int {
	e.Helper()
	return len(e.inspect(l)) / max(1, e.target.Kind.Width)
}

// inspect returns the current entries.
func (e *env) inspect(l *zklock.Lock) []zklock.Entry {
	e.Helper()
	e.catchUp()
	entries, err := l.Inspect(e.ctx)
	if err != nil {
		e.Fatal(err)
	}
	return entries
}

// catchUp waits until every server of an ensemble has applied all acknowledged changes.
// Otherwise, a client connected to another server may read an earlier state.
func (e *env) catchUp() {
	e.Helper()
	servers := strings.Split(e.target.Servers, ",")
	if len(servers) == 1 {
		return
	}
	for _, server := range servers[len(e.syncClients):] {
		c, err := zk.Dial(e.ctx, server, &zk.Options{SessionTimeout: e.target.SessionTimeout, DialContext: e.target.DialContext})
		if err != nil {
			e.Fatal(err)
		}
		e.Cleanup(func() { c.Close() })
		e.syncClients = append(e.syncClients, c)
	}
	for _, c := range e.syncClients {
		if err := c.Sync(e.ctx, "/"); err != nil {
			e.Fatal(err)
		}
	}
}

// empty waits until no client holds or waits.
func (e *env) empty(l *zklock.Lock) {
	e.Helper()
	e.until("the queue is empty", func() bool { return e.entries(l) == 0 })
}

// until calls holds until it returns true.
func (e *env) until(what string, holds func() bool) {
	e.Helper()
	for !holds() {
		select {
		case <-e.ctx.Done():
			e.Fatalf("timed out waiting until %s", what)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// wait returns the next value of the channel.
func wait[T any](e *env, what string, c <-chan T) T {
	e.Helper()
	select {
	case v := <-c:
		return v
	case <-e.ctx.Done():
		e.Fatalf("timed out waiting for %s", what)
		panic("unreachable")
	}
}

// pending checks that the channel has no value.
func pending[T any](e *env, what string, c <-chan T) {
	e.Helper()
	select {
	case <-c:
		e.Fatalf("%s came too early", what)
	default:
	}
}
