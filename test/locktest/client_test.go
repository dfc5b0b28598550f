package locktest

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/zk"
)

// ClientTarget configures the servers of the tests of package zk.
type ClientTarget struct {
	// Servers is the connection string, without a chroot.
	Servers string
	// DialContext opens connections; nil means net.Dialer.
	DialContext func(ctx context.Context, network, address string) (net.Conn, error)
}

// clientTimeout is the session timeout of the clients.
const clientTimeout = 6 * time.Second

// fixture has the client and the znode of one test.
type fixture struct {
	*testing.T
	env   ClientTarget
	ctx   context.Context
	base  string // the znode of the test
	c     *zk.Client
	conns *clientNetwork // of c
}

// newFixture connects a client and creates the test's znode.
func newFixture(t *testing.T, env ClientTarget) *fixture {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	f := &fixture{T: t, env: env, ctx: ctx, conns: &clientNetwork{inner: env.DialContext}}
	name := strings.Map(func(r rune) rune {
		if r == '/' {
			return '-'
		}
		return r
	}, t.Name())
	f.c = f.dial("", &zk.Options{DialContext: f.conns.dial})
	path, _, err := f.c.Create(ctx, "/"+name+"-", nil, nil, zk.ModePersistentSequential)
	f.ok(err)
	f.base = path
	t.Cleanup(f.removeBase)
	return f
}

// dial connects another client, which is closed with the test.
func (f *fixture) dial(chroot string, opts *zk.Options) *zk.Client {
	f.Helper()
	if opts == nil {
		opts = &zk.Options{}
	}
	opts.SessionTimeout = clientTimeout
	if opts.DialContext == nil {
		opts.DialContext = f.env.DialContext
	}
	c, err := zk.Dial(f.ctx, f.env.Servers+chroot, opts)
	f.ok(err)
	f.Cleanup(func() { _ = c.Close() }) // the test may have closed it
	return c
}

// removeBase deletes the test's znode with a new client.
func (f *fixture) removeBase() {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c, err := zk.Dial(ctx, f.env.Servers, &zk.Options{DialContext: f.env.DialContext, SessionTimeout: clientTimeout,
		Auth: []zk.Auth{{Scheme: "digest", Data: []byte("user:secret")}}})
	if err != nil {
		f.Errorf("no client to clean up with: %v", err)
		return
	}
	defer c.Close()
	if err := c.DeleteAll(ctx, f.base); err != nil {
		f.Errorf("clean up: %v", err)
	}
}

// path returns a path below the test's znode.
func (f *fixture) path(name string) string { return f.base + "/" + name }

// make creates a persistent znode and returns its path.
func (f *fixture) make(name, data string) string {
	f.Helper()
	path, _, err := f.c.Create(f.ctx, f.path(name), []byte(data), nil, zk.ModePersistent)
	f.ok(err)
	return path
}

// ok fails the test if err is not nil.
func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// fails checks an error and the outcome that it reports.
func (f *fixture) fails(err, want error, applied zk.Outcome) {
	f.Helper()
	if !errors.Is(err, want) || zk.Applied(err) != applied {
		f.Fatalf("error %v, applied %v; want %v, %v", err, zk.Applied(err), want, applied)
	}
}

// event waits for the only event of a channel, and for its close.
func (f *fixture) event(ch <-chan zk.Event, want zk.EventType, path string) {
	f.Helper()
	select {
	case e, open := <-ch:
		if !open || e.Type != want || e.Path != path {
			f.Fatalf("event %+v (%t), want type %d on %s", e, open, want, path)
		}
	case <-f.ctx.Done():
		f.Fatalf("no event of type %d on %s", want, path)
	}
	if e, open := <-ch; open {
		f.Fatalf("a second event: %+v", e)
	}
}

// silent checks that a channel has no event after a round trip.
func (f *fixture) silent(ch <-chan zk.Event) {
	f.Helper()
	f.ok(f.c.Sync(f.ctx, f.base))
	select {
	case e, open := <-ch:
		f.Fatalf("unexpected %+v (%t)", e, open)
	default:
	}
}

// follow collects the calls of a listener.
type follow struct {
	mu     sync.Mutex
	states []zk.StateChange
	events []zk.Event
	more   chan struct{} // has a value after a call
}

func (f *fixture) follow(c *zk.Client) *follow {
	w := &follow{more: make(chan struct{}, 1)}
	poke := func() {
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
	stop := c.Listen(zk.Listener{
		State: func(s zk.StateChange) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.states = append(w.states, s)
			poke()
		},
		Event: func(e zk.Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
			poke()
		},
	})
	f.Cleanup(stop)
	return w
}

// await waits until enough returns true for the collected calls.
func (w *follow) await(f *fixture, what string, enough func(states []zk.StateChange, events []zk.Event) bool) {
	f.Helper()
	for {
		w.mu.Lock()
		done := enough(w.states, w.events)
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-w.more:
		case <-f.ctx.Done():
			f.Fatalf("never saw %s: states %+v, events %+v", what, w.states, w.events)
		}
	}
}

// reached reports whether the last state is s.
func reached(s zk.State) func([]zk.StateChange, []zk.Event) bool {
	return func(states []zk.StateChange, _ []zk.Event) bool {
		return len(states) > 0 && states[len(states)-1].State == s
	}
}
