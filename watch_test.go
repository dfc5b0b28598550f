package zklock_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// An observer collects what a Watch yields.
type observer struct {
	stop context.CancelFunc
	done chan struct{}

	mu     sync.Mutex
	states []zklock.LockState
	err    error
	busy   time.Duration // the time for which each state is handled
}

// observe starts a Watch, and checks that its tokens never decrease.
func observe(t *testing.T, c *zklock.Client, name string, busy time.Duration) *observer {
	ctx, stop := context.WithCancel(t.Context())
	o := &observer{stop: stop, done: make(chan struct{}), busy: busy}
	go func() { // ends with the Watch
		defer close(o.done)
		token := int64(0)
		for s, err := range c.Watch(ctx, name) {
			if err == nil && len(s.Holders) > 0 && s.Holders[0].Mode == zklock.Exclusive {
				if s.Holders[0].Token < token && s.Holders[0].Token != 0 { // 0 if the entry may not be read
					t.Errorf("token %d after %d", s.Holders[0].Token, token)
				}
				token = s.Holders[0].Token
			}
			o.mu.Lock()
			if o.err != nil {
				t.Errorf("%+v after the error %v", s, o.err)
			}
			if o.err = err; err == nil {
				o.states = append(o.states, s)
			}
			o.mu.Unlock()
			time.Sleep(o.busy)
		}
	}()
	t.Cleanup(func() { stop(); <-o.done })
	return o
}

// outline describes a state: the values of the holders, and the number of waiters.
func outline(s zklock.LockState) string {
	var values []string
	for _, h := range s.Holders {
		values = append(values, h.Value)
	}
	return fmt.Sprintf("%s+%d", strings.Join(values, ","), s.Waiting)
}

// take returns the states that were yielded since the last call.
func (o *observer) take() string {
	synctest.Wait()
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []string
	for _, s := range o.states {
		all = append(all, outline(s))
	}
	o.states = nil
	return strings.Join(all, " ")
}

// yields checks the states that were yielded since the last call.
func (o *observer) yields(t *testing.T, when, want string) {
	t.Helper()
	if got := o.take(); got != want {
		t.Errorf("%s: %q, want %q", when, got, want)
	}
}

// yieldsAfterRelease checks the states that were yielded since the last call, in which a hold
// was released. The two entries of a hold in the mixed layout are deleted one after the other,
// so the Watch may also yield the state in between.
func (o *observer) yieldsAfterRelease(t *testing.T, layout zklock.Layout, when, want string) {
	t.Helper()
	got := o.take()
	states := strings.Fields(got)
	if layout == zklock.MixedLayout() && len(states) == 2 && states[1] == want {
		return
	}
	if got != want {
		t.Errorf("%s: %q, want %q", when, got, want)
	}
}

// fails checks that the Watch ends with this error.
func (o *observer) fails(t *testing.T, when string, kind error) {
	t.Helper()
	synctest.Wait()
	select {
	case <-o.done:
		wants(t, when, o.err, kind)
	default:
		t.Errorf("%s: continues", when)
	}
}

// TestWatch checks that the current state comes first, and then each change, of every kind of
// lock and in every layout.
func TestWatch(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		for name, layout := range map[string]zklock.Layout{
			"curator": {}, "kazoo": zklock.KazooLayout(), "mixed": zklock.MixedLayout(), "latch": zklock.LatchLayout(),
			"write-lock": zklock.WriteLockLayout(), "custom": {Exclusive: "-W-", Shared: "-R-"}, "parent/p": {Exclusive: "-W-", Shared: "-R-", InParent: true},
		} {
			opts := zklock.Options{Layout: layout, Owner: &zklock.Owner{Host: "h"}, PersistentParents: true}
			c, other, watcher := dialWith(t, srv, opts), dialWith(t, srv, opts), dialWith(t, srv, opts)
			l := c.Mutex(name)
			o := observe(t, watcher, name, 0)
			o.yields(t, name+" that no client has used", "+0")
			h := acquire(t, l.WithValue("a"))
			o.yields(t, name+" acquired", "a+0")
			late := observe(t, watcher, name, 0)
			late.yields(t, name+", begun late", "a+0")
			late.stop()
			late.fails(t, name+", ended", context.Canceled)
			w := waiting(t, t.Context(), other.Mutex(name).WithValue("b"))
			o.yields(t, name+" with a waiter", "a+1")
			if name != "write-lock" && layout.Exclusive == "" {
				setValue(t, h, "a2")
				o.yields(t, name+" with another value", "a2+1")
				if _, err := other.Mutex(name).Revoke(t.Context()); err != nil {
					t.Error(err)
				}
				if got := o.take(); got != "a2+1" && layout == (zklock.Layout{}) { // Revoked
					t.Errorf("revoked: %q", got)
				}
			}
			release(t, h)
			o.yieldsAfterRelease(t, layout, name+" handed over", "b+0")
			release(t, got(t, "the waiter", w))
			o.yieldsAfterRelease(t, layout, name+" released", "+0")
			if name == "latch" || name == "write-lock" {
				continue
			}
			r1 := acquire(t, c.RWMutex(name).Reader().WithValue("r1"))
			o.yields(t, name+" with a reader", "r1+0")
			r2 := acquire(t, other.RWMutex(name).Reader().WithValue("r2"))
			o.yields(t, name+" with two readers", "r1,r2+0")
			w = waiting(t, t.Context(), c.RWMutex(name).Writer())
			o.yields(t, name+" with a waiting writer", "r1,r2+1")
			release(t, r1)
			release(t, r2)
			writer := got(t, "the writer", w)
			o.take()
			if err := writer.Downgrade(t.Context()); err != nil {
				t.Error(err)
			}
			o.take()
			release(t, writer)
			o.yieldsAfterRelease(t, layout, name+" without readers", "+0")
		}
		c := dial(t, srv)
		o := observe(t, c, "node", 0)
		o.yields(t, "a free node lock", "+0")
		for _, value := range []string{"a", "b"} {
			h := acquire(t, c.NodeLock("node").WithValue(value))
			o.yields(t, "a node lock", value+"+0")
			release(t, h)
			o.yields(t, "a released node lock", "+0")
		}
	})
}

// TestWatchReadsReplacedEntry checks that a Watch does not show a former holder if another client
// creates a znode with the name of its entry before the Watch lists the queue.
func TestWatchReadsReplacedEntry(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		op, c := srv.Dial(t), dial(t, srv)
		o := observe(t, dial(t, srv), "a", time.Second)
		o.yields(t, "before", "+0")
		h := acquire(t, c.Mutex("a").WithValue("old"))
		time.Sleep(1500 * time.Millisecond) // the Watch handles the second state
		o.yields(t, "acquired", "old+0")
		release(t, h)
		data := []byte(`{"host":"h","pid":1,"version":"zklock 9","value":"new"}`)
		if _, _, err := op.Create(t.Context(), h.Node(), data, nil, zk.ModeEphemeral); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		o.yields(t, "replaced", "new+0")
		set(t, op, h.Node(), strings.Replace(string(data), "new", "newer", 1))
		time.Sleep(3 * time.Second)
		o.yields(t, "changed", "newer+0")
	})
}

// TestWatchEnds checks what ends a Watch.
func TestWatchEnds(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		op, c := srv.Dial(t), dial(t, srv)
		observe(t, c, "/a//b", 0).fails(t, "an invalid name", zklock.ErrInvalidName)
		release(t, acquire(t, c.Semaphore("s", 2)))
		observe(t, c, "s", 0).fails(t, "a semaphore", zklock.ErrInvalidLock)
		create(t, op, "/closed", []zk.ACL{{Perms: zk.PermAll &^ zk.PermRead, Scheme: "world", ID: "anyone"}})
		observe(t, c, "/closed", 0).fails(t, "a queue that may not be listed", zk.ErrNoAuth)

		open := observe(t, c, "a", 0)
		open.yields(t, "before the end", "+0")
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Minute))
		defer cancel()
		n := 0
		for range c.Watch(ctx, "a") {
			n++
			break
		}
		var last error
		for _, err := range c.Watch(ctx, "a") {
			last = err
			n++
		}
		if wants(t, "a deadline", last, context.DeadlineExceeded); n != 3 {
			t.Errorf("%d elements, want 3", n)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		open.fails(t, "a closed client", zklock.ErrClosed)
		shared := zklock.New(op, nil)
		open = observe(t, shared, "a", 0)
		open.yields(t, "in a shared session", "+0")
		if err := shared.Close(); err != nil {
			t.Error(err)
		}
		open.fails(t, "a closed client in a shared session", zklock.ErrClosed)

		// An entry that the client may not read is known by its name.
		hidden := []zk.ACL{{Perms: zk.PermAll &^ zk.PermRead, Scheme: "world", ID: "anyone"}}
		create(t, op, "/hidden", nil)
		node, _, err := op.Create(t.Context(), "/hidden/_c_01234567-89ab-cdef-0123-456789abcdef-lock-", []byte(`{"version":"zklock 9","value":"secret"}`), hidden, zk.ModeEphemeralSequential)
		if err != nil {
			t.Fatal(err)
		}
		for s, err := range dial(t, srv).Watch(t.Context(), "/hidden") {
			if err != nil || len(s.Holders) != 1 || s.Holders[0].Node != node || s.Holders[0].Value != "" || s.Holders[0].Token != 0 {
				t.Errorf("%+v, %v", s, err)
			}
			break
		}
	})
}

// An interceptor is a connection that calls on before it sends a request. If on returns true, the
// client gets the answer ErrThrottled, as from a busy server.
type interceptor struct {
	net.Conn
	on func(op uint32) (throttle bool)

	mu      sync.Mutex // guards what follows
	refused int32      // the xid of the request whose answer is replaced
	pending []byte     // an incomplete answer
}

func (c *interceptor) Write(p []byte) (int, error) {
	for rest := p; len(rest) >= 12; rest = rest[min(len(rest), 4+int(binary.BigEndian.Uint32(rest))):] {
		if c.on(binary.BigEndian.Uint32(rest[8:])) { // after the length and the xid
			c.mu.Lock()
			c.refused = int32(binary.BigEndian.Uint32(rest[4:]))
			c.mu.Unlock()
		}
	}
	return c.Conn.Write(p)
}

func (c *interceptor) Read(p []byte) (int, error) {
	if len(c.pending) == 0 {
		frame := make([]byte, 4)
		if _, err := io.ReadFull(c.Conn, frame); err != nil {
			return 0, err
		}
		frame = append(frame, make([]byte, binary.BigEndian.Uint32(frame))...)
		if _, err := io.ReadFull(c.Conn, frame[4:]); err != nil {
			return 0, err
		}
		c.mu.Lock()
		if xid := int32(binary.BigEndian.Uint32(frame[4:])); xid != 0 && xid == c.refused {
			frame = binary.BigEndian.AppendUint32(frame[:16], 0xffffff81) // the code -127
			binary.BigEndian.PutUint32(frame, 16)
		}
		c.mu.Unlock()
		c.pending = frame
	}
	n := copy(p, c.pending)
	c.pending = c.pending[n:]
	return n, nil
}

// TestWatchRefusedRead checks that a Watch yields no outdated value if the servers refuse to let
// it read a change that happens while it lists the queue.
func TestWatchRefusedRead(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		const getData, getChildren2 = 4, 12
		var mu sync.Mutex
		change, throttle := (func())(nil), false // at the next listing, and the next read after it
		on := func(op uint32) bool {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case op == getChildren2 && change != nil:
				change()
				change = nil
			case op == getData && change == nil && throttle:
				throttle = false
				return true
			}
			return false
		}
		dialContext := func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := srv.DialContext(ctx, network, address)
			return &interceptor{Conn: conn, on: on}, err
		}
		watcher := dialWith(t, srv, zklock.Options{DialContext: dialContext})
		op := srv.Dial(t)
		entry := func(data string) string { return foreign(t, op, "/a/"+anyLock, data) }
		set := func(node, data string) {
			if _, err := op.Set(t.Context(), node, []byte(data), -1); err != nil {
				t.Error(err)
			}
		}
		setACL := func(node string, perms zk.Perm) {
			if _, err := op.SetACL(t.Context(), node, []zk.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}}, -1); err != nil {
				t.Error(err)
			}
		}
		create(t, op, "/a", nil)
		holder := entry(`{"version":"zklock 9","value":"a"}`)
		o := observe(t, watcher, "/a", 0)
		o.yields(t, "at first", "a+0")

		next := func(f func(), throttled bool) {
			mu.Lock()
			change, throttle = f, throttled
			mu.Unlock()
			entry("") // a waiter, so that Watch lists the queue
			time.Sleep(time.Second)
		}
		next(func() { set(holder, `{"version":"zklock 9","value":"b"}`) }, true)
		if o.yields(t, "after a throttled read", "b+1"); throttle {
			t.Error("no read was throttled: this tests nothing")
		}
		next(func() { set(holder, `{"version":"zklock 9","value":"c"}`); setACL(holder, zk.PermAll&^zk.PermRead) }, false)
		o.yields(t, "after a change that may not be read", "+2")
		setACL(holder, zk.PermAll)
		next(nil, false)
		o.yields(t, "after the next change of the queue, when it may be read again", "c+3")
	})
}

// TestWatchContinues checks that a Watch continues after lost connections, lost answers, expired
// sessions, and a deleted parent, and yields each last state.
func TestWatchContinues(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		z := srv.Dial(t)
		watcher, c := zklock.New(z, nil), dial(t, srv)
		o := observe(t, watcher, "a", 0)
		h := acquire(t, c.Mutex("a").WithValue("a"))
		if got := o.take(); !strings.HasSuffix(got, "a+0") {
			t.Errorf("at first: %q", got)
		}
		for i, trouble := range []func(){
			func() { srv.CutConnections() },
			func() {
				if err := srv.ExpireClient(z); err != nil {
					t.Error(err)
				}
			},
			func() { srv.DropReply(zktest.Match{Op: "getData"}) },
			func() { srv.DropRequest(zktest.Match{Op: "getData"}) },
			func() { srv.DropReply(zktest.Match{Op: "getChildren2"}) },
		} {
			trouble()
			value := fmt.Sprint(i)
			setValue(t, h, value)
			time.Sleep(time.Second)
			if got := o.take(); !strings.HasSuffix(got, value+"+0") {
				t.Errorf("trouble %d: %q, want %s+0 at the end", i, got, value)
			}
			w := waiting(t, t.Context(), c.Mutex("a").WithValue(value+"next"))
			trouble()
			release(t, h)
			h = got(t, "the waiter", w)
			time.Sleep(time.Second)
			if got := o.take(); !strings.HasSuffix(got, value+"next+0") {
				t.Errorf("trouble %d: %q, want %snext+0 at the end", i, got, value)
			}
		}
		release(t, h)
		o.take()
		op := srv.Dial(t)
		remove(t, op, c.Mutex("a").Path())
		o.yields(t, "without the parent", "")
		h = acquire(t, c.Mutex("a").WithValue("new"))
		o.yields(t, "with a new parent", "new+0")
		release(t, h)
		if err := watcher.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestWatchMergesAndDelivers has clients that acquire a lock in quick succession, with broken
// connections, and watchers of different speed. Tokens never decrease, watchers see some states,
// and the last one is the current state.
func TestWatchMergesAndDelivers(t *testing.T) {
	for _, kind := range []string{"mutex", "read-write", "node"} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			var observers []*observer
			for _, busy := range []time.Duration{0, 30 * time.Millisecond, 100 * time.Millisecond} {
				observers = append(observers, observe(t, dial(t, srv), "a", busy))
			}
			srv.Delay(time.Millisecond)
			rng := rand.New(rand.NewPCG(1, 2))
			var all sync.WaitGroup
			for i := range 4 {
				c, value := dial(t, srv), fmt.Sprint(i)
				l := c.Mutex("a").WithValue(value)
				switch {
				case kind == "node":
					l = c.NodeLock("a").WithValue(value)
				case kind == "read-write" && i < 2:
					l = c.RWMutex("a").Reader().WithValue(value)
				case kind == "read-write":
					l = c.RWMutex("a").Writer().WithValue(value)
				}
				all.Go(func() {
					for j := range 40 {
						h, err := l.Acquire(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						if kind != "node" && j%7 == 0 {
							_ = h.SetValue(t.Context(), value+"changed") // the hold can be lost
						}
						_ = h.Release(t.Context())
					}
				})
			}
			done := make(chan struct{})
			go func() { all.Wait(); close(done) }()
			for running := true; running; {
				select {
				case <-done:
					running = false
				case <-time.After(time.Duration(rng.IntN(100)) * time.Millisecond):
					srv.CutConnections()
				}
			}
			srv.Delay(0)
			l := dial(t, srv).Mutex("a")
			time.Sleep(time.Minute)
			for i, o := range observers {
				got := strings.Fields(o.take())
				if len(got) == 0 || got[len(got)-1] != "+0" {
					t.Errorf("%s, observer %d: the last state is not the present one: %q", kind, i, got)
				}
				if len(got) < 5 && i == 0 {
					t.Errorf("%s, observer %d: only %q", kind, i, got)
				}
				t.Logf("%s, observer %d: %d states", kind, i, len(got))
			}
			if kind == "node" {
				return
			}
			h := acquire(t, l.WithValue("last"))
			time.Sleep(time.Minute)
			for i, o := range observers {
				if got := o.take(); got != "last+0" {
					t.Errorf("%s, observer %d: %q at the end", kind, i, got)
				}
			}
			release(t, h)
		})
	}
}

// TestWatchTakesTwoWatches checks the cost of a Watch for the servers: two watches, no request
// without changes, a listing for a waiter, and one more read for a new holder or value.
func TestWatchTakesTwoWatches(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		op, z := srv.Dial(t), srv.Dial(t)
		if err := op.EnsurePath(t.Context(), "/q", nil); err != nil {
			t.Fatal(err)
		}
		entry := func() string {
			return foreign(t, op, "/q/_c_01234567-89ab-cdef-0123-456789abcdef-lock-", `{"version":"zklock 9","value":"x"}`)
		}
		first := entry()
		watcher := zklock.New(z, nil)
		o := observe(t, watcher, "/q", 0)
		o.yields(t, "at first", "x+0")
		if st := srv.Server().Stats(); st.Watches != 2 {
			t.Errorf("%d watches", st.Watches)
		}
		cost := func(what string, reads int64, do func()) {
			t.Helper()
			synctest.Wait()
			before := srv.Server().Stats().Received
			do()
			synctest.Wait()
			if n := srv.Server().Stats().Received - before; n != reads+1 {
				t.Errorf("%s took %d requests, want %d", what, n-1, reads)
			}
		}
		cost("a waiter", 1, func() { entry() })
		cost("another waiter", 1, func() { entry() })
		cost("a new value", 2, func() {
			set(t, op, first, `{"version":"zklock 9","value":"y"}`)
		})
		cost("a new holder", 2, func() { remove(t, op, first) })
		o.yields(t, "then", "x+1 x+2 y+2 x+1")
		if st := srv.Server().Stats(); st.Watches != 2 {
			t.Errorf("%d watches", st.Watches)
		}
		if err := watcher.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestWatchNeverGoesBack has a client that can reach only a server that lags behind, with the
// session and without it. The Watch yields nothing there, and later the current state.
func TestWatchNeverGoesBack(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		old := zktest.Start(t) // has applied fewer transactions
		holder := dial(t, old)
		stale := acquire(t, holder.Mutex("a").WithValue("old"))
		var mu sync.Mutex
		now, refused := srv, 0
		z, err := zk.Dial(t.Context(), "any:1", &zk.Options{SessionTimeout: timeout, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			mu.Lock()
			defer mu.Unlock()
			if now == old {
				refused++
			}
			return now.DialContext(ctx, network, now.Servers())
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		connect := func(to *zktest.Server) {
			mu.Lock()
			now = to
			mu.Unlock()
			srv.CutConnections()
			old.CutConnections()
		}
		c := dial(t, srv)
		for range 50 { // more transactions than the old server has
			free(t, c.Mutex("b"))
		}
		h := acquire(t, c.Mutex("a").WithValue("new"))
		o := observe(t, zklock.New(z, nil), "a", 0)
		o.yields(t, "at first", "new+0")
		for _, outage := range []time.Duration{timeout / 4, 3 * timeout} { // within the session, and beyond it
			connect(old)
			time.Sleep(outage)
			o.yields(t, "at the server that lags", "")
			if mu.Lock(); refused == 0 {
				t.Error("the client did not try the server that lags")
			}
			refused = 0
			mu.Unlock()
			setValue(t, h, fmt.Sprint("after ", outage))
			connect(srv)
			time.Sleep(timeout)
			o.yields(t, "at the other one", fmt.Sprintf("after %v+0", outage))
		}
		if err := errors.Join(stale.Err(), h.Err()); err != nil {
			t.Error(err)
		}
	})
}

// TestWatchChangesAtAnyMoment changes the value at each moment of a read. In two of three runs,
// it also ends the session or the connection of the watcher at each moment. The Watch always
// yields the last state.
func TestWatchChangesAtAnyMoment(t *testing.T) {
	for _, trouble := range []string{"none", "cut", "expire"} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			z, c := srv.Dial(t), dial(t, srv)
			watcher := zklock.New(z, nil)
			o := observe(t, watcher, "a", 0)
			h := acquire(t, c.Mutex("a").WithValue("first"))
			for at := range 20 {
				srv.Delay(10 * time.Millisecond)
				w := waiting(t, t.Context(), c.Mutex("a").WithValue(fmt.Sprint("next ", at))) // begins a read
				time.Sleep(time.Duration(at) * 3 * time.Millisecond)
				done := make(chan error, 1)
				go func() { done <- h.SetValue(t.Context(), fmt.Sprint("changed ", at)) }() // ends with the answer
				switch trouble {
				case "cut":
					srv.CutConnections()
				case "expire":
					if err := srv.ExpireClient(z); err != nil {
						t.Fatal(err)
					}
				}
				if err := <-done; err != nil {
					t.Error(err)
				}
				srv.Delay(0)
				time.Sleep(10 * time.Second)
				if got, want := o.take(), fmt.Sprintf("changed %d+1", at); !strings.HasSuffix(got, want) {
					t.Errorf("trouble %s at %d: %q, want %s at the end", trouble, at, got, want)
				}
				release(t, h)
				synctest.Wait()
				h = got(t, "the waiter", w)
			}
			release(t, h)
			if err := watcher.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWatchEndsAtAnyMoment ends the context at each moment of a read of a lock. In one of the
// runs, the lock has no znode.
func TestWatchEndsAtAnyMoment(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		defer release(t, acquire(t, c.Mutex("held")))
		srv.Delay(10 * time.Millisecond) // a round trip takes 20 ms
		for _, name := range []string{"held", "missing"} {
			for after := time.Duration(0); after < 70*time.Millisecond; after += 5 * time.Millisecond {
				ctx, cancel := context.WithTimeout(t.Context(), after)
				var last error
				for _, last = range c.Watch(ctx, name) {
				}
				cancel()
				if !errors.Is(last, context.DeadlineExceeded) {
					t.Errorf("%s, after %v: %v", name, after, last)
				}
			}
		}
		srv.Delay(0)
	})
}
