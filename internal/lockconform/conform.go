// Package lockconform tests what package zklock promises against a server of any
// kind: the same tests run on the embedded server and on Apache ZooKeeper.
package lockconform

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// A Target is where the tests find servers.
type Target struct {
	// Servers is the connection string, without a chroot.
	Servers string
	// DialContext reaches them; nil means by the network.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
	// SessionTimeout is a short one that the servers accept.
	SessionTimeout time.Duration
}

// InBubbles runs all tests, each in a testing/synctest bubble of its own, with
// the target that start makes inside of it.
func InBubbles(t *testing.T, start func(t *testing.T) Target) {
	run(t, func(t *testing.T, test func(*testing.T, Target)) {
		synctest.Test(t, func(t *testing.T) { test(t, start(t)) })
	})
}

// limit bounds every wait in these tests: far more than any of them needs on a
// busy machine.
const limit = 60 * time.Second

// Run runs all tests, each on paths of its own.
func Run(t *testing.T, target Target) {
	run(t, func(t *testing.T, test func(*testing.T, Target)) { test(t, target) })
}

func run(t *testing.T, within func(t *testing.T, test func(*testing.T, Target))) {
	for _, test := range []struct {
		name string
		run  func(*env)
	}{
		{"Acquire", testAcquire},
		{"Try", testTry},
		{"Order", testOrder},
		{"Tokens", testTokens},
		{"CancelledLeavesNothing", testCancel},
		{"ReleaseOutlivesContext", testReleaseContext},
		{"Do", testDo},
		{"Context", testContext},
		{"Verify", testVerify},
		{"HolderDeleted", testHolderDeleted},
		{"WaiterDeleted", testWaiterDeleted},
		{"ParentDeleted", testParentDeleted},
		{"SessionClosed", testSessionClosed},
		{"Crash", testCrash},
		{"Close", testClose},
		{"SharedSession", testSharedSession},
		{"Inspect", testInspect},
		{"OtherLayouts", testOtherLayouts},
		{"WriterBecomesReader", testWriterBecomesReader},
		{"SequenceLimit", testMalformed},
		{"Hooks", testHooks},
		{"NoPermission", testNoPermission},
		{"Contention", testContention},
		{"ReadWrite", testReadWrite},
		{"Semaphore", testSemaphore},
		{"All", testAll},
		{"NodeLock", testNodeLock},
		{"Guard", testGuard},
		{"Revoke", testRevoke},
		{"Layouts", testLayouts},
		{"LockDelay", testLockDelay},
		{"KindsContend", testKindsContend},
	} {
		t.Run(test.name, func(t *testing.T) {
			within(t, func(t *testing.T, target Target) {
				ctx, cancel := context.WithTimeout(context.Background(), limit)
				defer cancel()
				test.run(&env{T: t, target: target, ctx: ctx, name: fmt.Sprintf("%s-%d", test.name, unique.Add(1))})
			})
		})
	}
}

// unique tells runs on one server apart.
var unique atomic.Int64

// env is what a test has.
type env struct {
	*testing.T
	target Target
	ctx    context.Context
	name   string // a lock name of this test's own
}

func (e *env) options() *zklock.Options {
	return &zklock.Options{SessionTimeout: e.target.SessionTimeout, DialContext: e.target.DialContext}
}

// dial returns a client that the test's end closes.
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

// operator returns a plain client, for looking and for meddling.
func (e *env) operator() *zk.Client {
	e.Helper()
	c, err := zk.Dial(e.ctx, e.target.Servers, &zk.Options{SessionTimeout: e.target.SessionTimeout, DialContext: e.target.DialContext})
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { c.Close() })
	return c
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

// acquiring starts an Acquire and returns when its entry is in the queue; the
// hold comes on the channel, nil if the acquire failed.
func (e *env) acquiring(ctx context.Context, l *zklock.Lock) <-chan *zklock.Hold {
	e.Helper()
	before := e.entries(l)
	got := make(chan *zklock.Hold, 1)
	go func() { // ends with the acquire, whose ctx the test bounds
		h, err := l.Acquire(ctx)
		if err != nil && ctx.Err() == nil {
			e.Error(err)
		}
		got <- h
	}()
	e.until("the waiter is in the queue", func() bool { return e.entries(l) > before })
	return got
}

func (e *env) entries(l *zklock.Lock) int {
	e.Helper()
	entries, err := l.Inspect(e.ctx)
	if err != nil {
		e.Fatal(err)
	}
	return len(entries)
}

// empty waits until nobody holds or waits.
func (e *env) empty(l *zklock.Lock) {
	e.Helper()
	e.until("the queue is empty", func() bool { return e.entries(l) == 0 })
}

// until asks again and again, each time over the wire, until it holds.
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

// wait returns what comes on the channel.
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

// pending checks that nothing has come on the channel.
func pending[T any](e *env, what string, c <-chan T) {
	e.Helper()
	select {
	case <-c:
		e.Fatalf("%s came too early", what)
	default:
	}
}
