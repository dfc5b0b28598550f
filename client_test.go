package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zktest"
)

// TestInvalidOptions checks that options that Dial refuses also make the locks of a client on a
// shared session fail. A negative drift would put deadlines after the expiry.
func TestInvalidOptions(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		shared := srv.Dial(t)
		for _, o := range []*zklock.Options{
			{ClockDrift: -0.01}, {ClockDrift: 0.5}, {ClockDrift: math.NaN()}, {ClockDrift: math.Inf(1)},
			{ServerTick: shared.SessionTimeout() + 1}, // no heartbeat would extend a hold
		} {
			c := zklock.New(shared, o)
			if _, err := c.Mutex("options").Acquire(t.Context()); !errors.Is(err, zklock.ErrInvalidOptions) {
				t.Errorf("drift %v, tick %v: acquired: %v", o.ClockDrift, o.ServerTick, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestOptionsAreCopied checks that the caller may modify the slices afterwards.
func TestOptionsAreCopied(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		acl := zk.ReadACL()
		acl[0].Perms = zk.PermAll &^ zk.PermAdmin
		c := dialWith(t, srv, zklock.Options{ACL: acl})
		acl[0].Scheme = "no-such-scheme"
		release(t, acquire(t, c.Mutex("copied")))
	})
}

// undeletable creates the znode of a lock whose entries only the user "root" may delete, and
// returns a client of that user.
func undeletable(t *testing.T, srv *zktest.Server, path string) *zk.Client {
	t.Helper()
	root := dialZK(t, srv, zk.Auth{Scheme: "digest", Data: []byte("root:secret")})
	acl := append(zk.CreatorACL(), zk.ACL{Perms: zk.PermRead | zk.PermCreate, Scheme: "world", ID: "anyone"})
	create(t, root, path, acl)
	return root
}

// TestCloseRepeatsRefusedDeletes checks that Close of a client on a shared session repeats
// deletes that the servers refuse, and returns an error if they still fail.
func TestCloseRepeatsRefusedDeletes(t *testing.T) {
	for _, permitted := range []bool{true, false} {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			const path = "/stubborn"
			root := undeletable(t, srv, path)
			shared, err := zk.Dial(t.Context(), srv.Servers(), &zk.Options{SessionTimeout: 2 * time.Minute, DialContext: srv.DialContext})
			if err != nil {
				t.Fatal(err)
			}
			defer shared.Close()
			c := zklock.New(shared, nil)
			h := acquire(t, c.Mutex(path))
			if err := h.Release(t.Context()); !errors.Is(err, zk.ErrNoAuth) {
				t.Fatalf("a release that is refused: %v", err)
			}
			if permitted {
				time.AfterFunc(time.Second, func() { // during Close, on the bubble's clock
					if _, err := root.SetACL(t.Context(), path, zk.OpenACL(), -1); err != nil {
						t.Error(err)
					}
				})
			}
			begun := time.Now()
			err = c.Close()
			if n := entries(t, dial(t, srv).Mutex(path)); (n != 0) == permitted || (err != nil) == permitted {
				t.Errorf("permitted %v: after a close that took %v: %d entries, %v", permitted, time.Since(begun), n, err)
			}
		})
	}
}

// TestSecondCloseWaitsForFirst checks that a second Close returns the outcome of the first one,
// when that has ended.
func TestSecondCloseWaitsForFirst(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c, l := dial(t, srv), dial(t, srv).Mutex("twice")
		acquire(t, c.Mutex("twice"))
		srv.Delay(100 * time.Millisecond)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				if n := srv.Server().Stats().Sessions; n != 1 {
					t.Errorf("%d sessions after a close", n)
				}
			})
		}
		both.Wait()
		srv.Delay(0)
		if n := entries(t, l); n != 0 {
			t.Errorf("%d entries after a close", n)
		}
	})
}

// TestHoldsSurviveBrokenConnections checks that broken connections end no hold, and that waiters
// keep their place in the queue.
func TestHoldsSurviveBrokenConnections(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		l, other := dial(t, srv).Mutex("cut"), dial(t, srv).Mutex("cut")
		last := int64(0)
		for i := range 60 {
			lock := []*zklock.Lock{l, other}[i%2]
			if i%3 == 0 {
				srv.CutConnections()
			}
			h := acquire(t, lock)
			if h.Token() <= last {
				t.Fatalf("token %d after %d", h.Token(), last)
			}
			last = h.Token()
			if i%3 == 1 {
				srv.CutConnections()
			}
			time.Sleep(timeout / 8)
			if err := h.Err(); err != nil {
				t.Fatal(err)
			}
			release(t, h)
		}
	})
}

// TestAuthFailure checks that wrong credentials fail Dial at once, with a permanent error.
func TestAuthFailure(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		_, err := zklock.Dial(t.Context(), srv.Servers(), &zklock.Options{
			DialContext: srv.DialContext, Auth: []zk.Auth{{Scheme: "no-such-scheme", Data: []byte("user:secret")}},
		})
		if !errors.Is(err, zk.ErrAuthFailed) {
			t.Errorf("%v", err)
		}
	})
}

// TestDialRefusesInvalidOptions checks that invalid options are refused with a reason, before the
// client connects.
func TestDialRefusesInvalidOptions(t *testing.T) {
	never := func(context.Context, string, string) (net.Conn, error) {
		t.Error("dialled")
		return nil, errors.New("never")
	}
	for what, o := range map[string]*zklock.Options{
		"negative timeout":   {SessionTimeout: -1},
		"timeout of 1ns":     {SessionTimeout: 1},
		"negative drift":     {ClockDrift: -0.1},
		"drift of a half":    {ClockDrift: 0.5},
		"drift of NaN":       {ClockDrift: math.NaN()},
		"infinite drift":     {ClockDrift: math.Inf(1)},
		"timeout of a month": {SessionTimeout: 31 * 24 * time.Hour},
		"negative request":   {MaxRequest: -1},
	} {
		o.DialContext = never
		_, err := zklock.Dial(t.Context(), "127.0.0.1:1", o)
		if !errors.Is(err, zklock.ErrInvalidOptions) && !errors.Is(err, zk.ErrInvalidOptions) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var e *zklock.Error
	if _, err := zklock.Dial(t.Context(), "", nil); !errors.Is(err, zk.ErrInvalidServers) || !errors.As(err, &e) || e.Op != "dial" {
		t.Errorf("no servers: %v", err)
	}
}

// TestDialReturnsWhenContextEnds checks that Dial, after the servers granted a session that is too
// short, does not wait for the end of the session when its context has ended.
func TestDialReturnsWhenContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t, func(o *zkserver.Options) { o.MaxSessionTimeout = 20 * time.Second })
		srv.DelayFunc(func(f zktest.Frame) time.Duration {
			if f.Op == "closeSession" {
				return time.Hour
			}
			return 0
		})
		o := zklock.Options{SessionTimeout: time.Minute, SyncHeartbeat: true, ServerTick: 6 * time.Second, DialContext: srv.DialContext}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := zklock.Dial(ctx, srv.Servers(), &o)
		if d := time.Since(began); !errors.Is(err, zklock.ErrInvalidOptions) || d > time.Second {
			t.Errorf("with a context of 1 s, Dial returned after %v: %v", d, err)
		}
	})
}

// TestHealth checks the health of a client from its first session to its second.
func TestHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		lost := make(chan zklock.Event, 1)
		c := dialWith(t, srv, zklock.Options{SessionTimeout: 24 * time.Second, OnLost: func(e zklock.Event) { lost <- e }})
		h := acquire(t, c.Mutex("a"))
		ctx, cancel := context.WithCancel(t.Context())
		failed := waiting(t, ctx, c.Mutex("a"))
		got := c.Health()
		if got.State != zk.Connected || got.Session != h.Session() || got.Timeout != 24*time.Second || got.Sessions != 1 || got.Holds != 1 || got.Waiting != 1 {
			t.Errorf("one hold and one waiter: %+v", got)
		}
		if got.Remaining != h.Remaining() {
			t.Errorf("the client says %v remain, its hold %v", got.Remaining, h.Remaining())
		}
		time.Sleep(time.Minute)
		if got := c.Health(); got.Heartbeat > 3*time.Second+10*time.Millisecond {
			t.Errorf("no heartbeat was answered for %v, while one goes out every three seconds", got.Heartbeat)
		}
		srv.Pause()
		time.Sleep(3 * time.Second)
		if got := c.Health(); got.Heartbeat < 3*time.Second || got.Heartbeat > 6*time.Second+10*time.Millisecond {
			t.Errorf("the server has said nothing for 3 s, and the last heartbeat was answered %v ago", got.Heartbeat)
		}
		srv.Resume()
		cancel()
		if <-failed != nil {
			t.Error("a canceled acquire was granted")
		}
		if err := srv.ExpireSession(h.Session()); err != nil {
			t.Fatal(err)
		}
		if e := <-lost; !errors.Is(e.Err, zk.ErrSessionExpired) || e.Held < 63*time.Second {
			t.Errorf("lost: %+v", e)
		}
		time.Sleep(time.Minute)
		if got := c.Health(); got.Sessions != 2 || got.Holds != 0 || got.Waiting != 0 || got.State != zk.Connected {
			t.Errorf("in the second session: %+v", got)
		}
	})
}

// syncHeartbeat returns options whose heartbeats are syncs. The ticks of zktest's server are an
// eighth of the timeout at most.
func syncHeartbeat() zklock.Options {
	return zklock.Options{SyncHeartbeat: true, ServerTick: timeout / 8}
}

// TestSyncHeartbeat checks that syncs alone, which write nothing, keep a hold, and that
// heartbeats by quorum writes increase the zxid.
func TestSyncHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		for name, o := range map[string]zklock.Options{"sync": syncHeartbeat(), "quorum writes": {}} {
			c := dialWith(t, srv, o)
			h := acquire(t, c.Mutex("sync"))
			before := srv.Server().Stats().Zxid
			time.Sleep(10 * timeout)
			if h.Err() != nil || h.Remaining() < timeout/3 {
				t.Errorf("%s: after ten timeouts: %v, %v left", name, h.Err(), h.Remaining())
			}
			if after := srv.Server().Stats().Zxid; (after > before) == o.SyncHeartbeat {
				t.Errorf("%s: the zxid went from %#x to %#x", name, before, after)
			}
			release(t, h)
			c.Close()
		}
	})
}

// TestSyncHeartbeatEntryDeleted checks that a hold whose entry an operator deletes is
// lost within an eighth of the timeout, whether it waited or not, and whether the
// server has sent the watch event or not.
func TestSyncHeartbeatEntryDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		op := srv.Dial(t)
		for _, after := range []time.Duration{0, timeout / 16, timeout / 4, 3 * timeout} {
			h := acquire(t, dialWith(t, srv, syncHeartbeat()).Mutex("deleted"))
			time.Sleep(after)
			begun := time.Now()
			remove(t, op, h.Node())
			<-h.Done()
			if d := time.Since(begun); !errors.Is(h.Err(), zklock.ErrLost) || d > timeout/8 {
				t.Errorf("deleted after %v: %v later %v", after, d, h.Err())
			}
		}
	})
}

// TestSyncHeartbeatSilence checks that, without answers, the hold is in jeopardy, and
// is then lost before the server grants the lock to another client.
func TestSyncHeartbeatSilence(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		told := make(chan error, 10)
		o := syncHeartbeat()
		o.OnJeopardy = func(e zklock.Event) { told <- e.Err }
		h := acquire(t, dialWith(t, srv, o).Mutex("silence"))
		time.Sleep(10 * timeout)
		begun := time.Now()
		srv.Blackhole(true)
		if err := <-told; err == nil {
			t.Error("recovered first")
		}
		<-h.Done()
		lost := time.Since(begun)
		for srv.Server().Stats().Sessions > 0 {
			time.Sleep(time.Millisecond)
		}
		if expired := time.Since(begun); lost >= expired || lost < timeout/4 {
			t.Errorf("lost after %v, expired after %v", lost, expired)
		}
		srv.Blackhole(false)
	})
}

// TestSyncHeartbeatReconnects checks that holds survive broken connections.
func TestSyncHeartbeatReconnects(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		h := acquire(t, dialWith(t, srv, syncHeartbeat()).Mutex("cut"))
		for range 40 {
			time.Sleep(timeout / 6)
			srv.CutConnections()
		}
		time.Sleep(timeout)
		if h.Err() != nil || h.Remaining() < timeout/3 {
			t.Errorf("%v, %v left", h.Err(), h.Remaining())
		}
	})
}

// TestSyncHeartbeatRefused checks that the option is refused if the tick is unknown, or the
// session is shorter than four ticks.
func TestSyncHeartbeatRefused(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		for name, o := range map[string]zklock.Options{
			"no tick":         {SyncHeartbeat: true},
			"a negative tick": {SyncHeartbeat: true, ServerTick: -time.Second},
			"tick alone":      {ServerTick: -time.Second},
			"too short":       {SyncHeartbeat: true, ServerTick: timeout/4 + 1},
			"below a tick":    {ServerTick: timeout + 1},
		} {
			o.SessionTimeout, o.DialContext = timeout, srv.DialContext
			c, err := zklock.Dial(t.Context(), srv.Servers(), &o)
			if !errors.Is(err, zklock.ErrInvalidOptions) {
				t.Errorf("%s: %v", name, err)
			}
			if err == nil {
				c.Close()
			}
		}
		if n := srv.Server().Stats().Sessions; n != 0 {
			t.Errorf("%d sessions are left", n)
		}
	})
}

// TestSyncHeartbeatTooShort checks that heartbeats are quorum writes on a shared
// session that is too short.
func TestSyncHeartbeatTooShort(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		conn, err := zk.Dial(t.Context(), srv.Servers(), &zk.Options{SessionTimeout: timeout, DialContext: srv.DialContext})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c := zklock.New(conn, &zklock.Options{SyncHeartbeat: true, ServerTick: timeout / 2})
		defer c.Close()
		acquire(t, c.Mutex("short"))
		before := srv.Server().Stats().Zxid
		time.Sleep(timeout)
		if after := srv.Server().Stats().Zxid; after <= before {
			t.Errorf("the zxid went from %#x to %#x", before, after)
		}
	})
}

// TestResumptionIsNoProof checks that a resumed session proves nothing without an answered write:
// the server may be a deposed leader that has not noticed. The hold ends at its old deadline,
// however often the session is resumed. The first answered write extends it.
func TestResumptionIsNoProof(t *testing.T) {
	for name, o := range map[string]zklock.Options{"quorum writes": {}, "sync": syncHeartbeat()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				h := acquire(t, dialWith(t, srv, o).Mutex("resumed"))
				time.Sleep(2 * timeout)
				mute := srv.DropRequest(zktest.Match{Op: "multi", Times: -1})
				srv.CutConnections()
				synctest.Wait() // an answer from before the cut may still extend the hold
				begun, left := time.Now(), h.Remaining()
				for h.Err() == nil && time.Since(begun) < 10*timeout {
					time.Sleep(timeout / 6)
					srv.CutConnections()
				}
				if d := time.Since(begun); d > left+timeout/6 {
					t.Fatalf("after %v, with %v left at first: %v", d, left, h.Err())
				}
				mute.Stop()
				h = acquire(t, dialWith(t, srv, o).Mutex("resumed"))
				time.Sleep(timeout / 2)
				srv.CutConnections()
				time.Sleep(timeout / 16)
				if h.Err() != nil || h.Remaining() < timeout*7/8 {
					t.Errorf("resumed: %v, %v left", h.Err(), h.Remaining())
				}
			})
		})
	}
}

// TestCloseEndsEveryKindOfHold checks that Close also ends re-entered holds, fails all waiters,
// reports the end of each hold once, and leaves no entries, on its own session and on a shared
// one.
func TestCloseEndsEveryKindOfHold(t *testing.T) {
	for _, own := range []bool{true, false} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			told := &ends{begun: map[string]int{}, ended: map[string]int{}}
			o := told.options(0)
			c := zklock.New(srv.Dial(t, func(o *zk.Options) { o.SessionTimeout = timeout }), &o)
			if own {
				c = dialWith(t, srv, o)
			}
			other := dial(t, srv)
			blocker := acquire(t, other.Mutex("blocked"))
			var holds []*zklock.Hold
			for _, l := range []*zklock.Lock{
				c.Mutex("a").Reentrant(), c.RWMutex("b").Reader(), c.RWMutex("w").Writer(), c.Semaphore("s", 3).Permits(2), c.NodeLock("n"),
				zklock.All(c.Mutex("x"), c.Semaphore("y", 1)), zklock.All(c.Mutex("p"), c.Mutex("q")).InOrder(), c.Mutex("l").LocalHandoff(5),
			} {
				holds = append(holds, acquire(t, l))
			}
			ctx := under(t, holds[0])
			holds = append(holds, reenter(t, holds[0], c.Mutex("a").Reentrant()))
			failed := make(chan error, 10)
			for _, l := range []*zklock.Lock{
				c.Mutex("blocked").Reentrant(), zklock.All(c.Mutex("blocked"), c.Mutex("free")), zklock.All(c.Mutex("blocked"), c.Mutex("ahead")).InOrder(),
				c.Semaphore("s", 3).Permits(3), c.NodeLock("n"), c.RWMutex("b").Writer(), c.Mutex("l").LocalHandoff(5), c.Mutex("l").LocalHandoff(5),
			} {
				go func() { // ends with Close
					h, err := l.Acquire(context.WithoutCancel(ctx))
					if h != nil {
						t.Errorf("%s was granted", l)
					}
					failed <- err
				}()
			}
			synctest.Wait()
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			for range 8 {
				wants(t, "the waiter", <-failed, zklock.ErrClosed)
			}
			for _, h := range holds {
				if err := h.Err(); !errors.Is(err, zklock.ErrLost) || !errors.Is(err, zklock.ErrClosed) {
					t.Errorf("%s: %v", h.Node(), err)
				}
				wants(t, "released after the close", h.Release(t.Context()), zklock.ErrLost)
				wants(t, "guarded after the close", h.Guard(t.Context()), map[bool]error{true: zklock.ErrInvalidLock, false: zklock.ErrLost}[h.Node() == "/zklock/n"])
			}
			if !errors.Is(context.Cause(ctx), zklock.ErrLost) {
				t.Errorf("the context's cause: %v", context.Cause(ctx))
			}
			_, err := c.Mutex("a").Reentrant().Acquire(context.WithoutCancel(ctx))
			wants(t, "acquired after the close", err, zklock.ErrClosed)
			time.Sleep(time.Second)
			told.mu.Lock()
			defer told.mu.Unlock()
			if len(told.begun) != 8 || len(told.ended) != 8 {
				t.Errorf("begun: %v, ended: %v", told.begun, told.ended)
			}
			for what, n := range told.begun {
				if n != 1 || told.ended[what] != 1 {
					t.Errorf("%s began %d times and ended %d times", what, n, told.ended[what])
				}
			}
			release(t, blocker)
		})
	}
}

// TestReadsFailAfterClose checks that methods that read from the servers, or write without a
// hold, fail with ErrClosed on a closed client, and on one whose shared session is closed.
func TestReadsFailAfterClose(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		session := srv.Dial(t)
		own, shared := dial(t, srv), zklock.New(session, nil)
		for what, closed := range map[string]struct {
			client *zklock.Client
			end    func() error
		}{"closed client": {own, own.Close}, "client of a closed session": {shared, session.Close}} {
			h := acquire(t, closed.client.Mutex("held by a "+what))
			if err := closed.end(); err != nil {
				t.Fatal(err)
			}
			for op, f := range map[string]func(*zklock.Client) error{
				"LastRun": func(c *zklock.Client) error { _, err := c.LastRun(t.Context(), "a"); return err },
				"Inspect": func(c *zklock.Client) error { _, err := c.Inspect(t.Context(), "a"); return err },
				"Revoke": func(c *zklock.Client) error {
					_, err := c.Mutex("a").Revoke(t.Context())
					return err
				},
				"Resize": func(c *zklock.Client) error { return c.Resize(t.Context(), "a", 1) },
				"RanWithin": func(*zklock.Client) error {
					_, _, err := h.RanWithin(t.Context(), time.Hour)
					return err
				},
				"RecordRun": func(*zklock.Client) error { return h.RecordRun(t.Context()) },
				"ReleaseRequest": func(*zklock.Client) error {
					_, err := h.ReleaseRequest(t.Context())
					return err
				},
			} {
				wants(t, op+" of a "+what, f(closed.client), zklock.ErrClosed)
			}
		}
		if err := shared.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestNoGrantWhileDiskFails checks that, while the disk of the server is full or fails, a hold
// ends at its deadline, and no client is granted the lock. After a repair and a restart, the
// waiter is granted with a higher token.
func TestNoGrantWhileDiskFails(t *testing.T) {
	for name, fail := range map[string]func(*zktest.Server, testing.TB){
		"full": (*zktest.Server).FillDisk,
		"EIO":  func(s *zktest.Server, t testing.TB) { s.FailDisk(t, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, srv *zktest.Server) { holdWhileDiskFails(t, srv, fail) })
		})
	}
}

func holdWhileDiskFails(t *testing.T, srv *zktest.Server, fail func(*zktest.Server, testing.TB)) {
	holder, waiter := dial(t, srv), dial(t, srv)
	held := acquire(t, holder.Mutex("disk"))
	granted := make(chan *zklock.Hold, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // ends when the lock is granted or ctx ends
		if h, err := waiter.Mutex("disk").Acquire(ctx); err == nil {
			granted <- h
		}
	}()
	synctest.Wait()
	fail(srv, t)
	began := time.Now()
	// The next write of a client fails, also that of a heartbeat.
	select {
	case <-held.Done():
	case <-granted:
		t.Fatal("the waiter was granted the lock")
	case <-time.After(2 * timeout):
		t.Fatal("the hold did not end")
	}
	if took := time.Since(began); took < timeout/2 || took > timeout {
		t.Errorf("the hold ended %v after the disk failed, want it at its deadline, at most %v", took, timeout)
	}
	if err := held.Err(); !errors.Is(err, zklock.ErrLost) {
		t.Errorf("the hold's error: %v", err)
	}
	if st := srv.Server().Stats(); !st.ReadOnly || st.Sessions != 2 {
		t.Errorf("read-only %v, %d sessions: none may end while nothing can be recorded", st.ReadOnly, st.Sessions)
	}
	// A client that accepts a read-only server sees the holder; no other client is granted.
	guest := srv.Dial(t, func(o *zk.Options) { o.ReadOnly = true })
	if names, _, err := guest.Children(t.Context(), path.Dir(held.Node())); err != nil || len(names) != 2 {
		t.Errorf("entries of the lock: %q, %v", names, err)
	}
	if _, _, err := guest.Create(t.Context(), "/x", nil, nil, zk.ModePersistent); !errors.Is(err, zk.ErrNotReadOnly) {
		t.Errorf("a write: %v", err)
	}
	time.Sleep(10 * timeout)
	select {
	case <-granted:
		t.Fatal("the waiter was granted the lock by a read-only server")
	default:
	}
	srv.RepairDisk(t)
	srv.Restart(t)
	select {
	case next := <-granted:
		if next.Token() <= held.Token() {
			t.Errorf("token %#x after %#x", next.Token(), held.Token())
		}
		release(t, next)
	case <-time.After(4 * timeout):
		t.Error("no client was granted the lock after the restart")
	}
}

// ends counts how often hooks reported the begin and the end of each hold.
type ends struct {
	mu    sync.Mutex // guards what follows
	begun map[string]int
	ended map[string]int
}

func (e *ends) note(of map[string]int, client int) func(zklock.Event) {
	return func(v zklock.Event) {
		e.mu.Lock()
		defer e.mu.Unlock()
		of[fmt.Sprint("client ", client, " ", v.Path, " ", v.Token)]++
	}
}

func (e *ends) options(client int) zklock.Options {
	return zklock.Options{
		OnAcquire: e.note(e.begun, client),
		OnRelease: e.note(e.ended, client),
		OnLost:    e.note(e.ended, client),
	}
}

// TestTickIsLearned checks that a client asks for the servers' tick when it has existed for an
// eighth to a quarter of the session timeout, and again on each later connection. Until it knows
// the tick, and if the server refuses the connection, it takes a quarter of the timeout for half a
// tick.
func TestTickIsLearned(t *testing.T) {
	const timeout = 20 * time.Second
	for name, row := range map[string]struct {
		words    []string
		attempts int64 // connections for one question
		sessions int64 // sessions of these connections
	}{
		"conf":    {[]string{"*"}, 1, 0},
		"session": {[]string{"srvr"}, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, func(o *zkserver.Options) {
					o.FourLetterWords, o.TickTime, o.MinSessionTimeout, o.MaxSessionTimeout = row.words, 2*time.Second, 0, 0
				})
				var dials atomic.Int64
				var refuse atomic.Bool // refuses all connections except the first
				c := dialWith(t, srv, zklock.Options{
					SessionTimeout: timeout,
					DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
						if dials.Add(1) > 1 && refuse.Load() {
							return nil, syscall.ECONNREFUSED
						}
						return srv.DialContext(ctx, network, addr)
					},
				})
				zxid := srv.Server().Stats().Zxid
				// check measures the remaining time of the hold if the servers are silent for an
				// eighth of the timeout, and counts the requests of the client before.
				check := func(what string, h *zklock.Hold, known bool, connections int64) {
					t.Helper()
					if n := dials.Swap(0); n != connections {
						t.Errorf("%s: %d connections, want %d", what, n, connections)
					}
					for range 25 {
						time.Sleep(timeout / 200)
						if left := h.Remaining(); left >= timeout*3/4 != known {
							t.Errorf("%s: %v left, %v; the client knows the tick: want %v", what, left, h.Err(), known)
							return
						}
					}
					if n := srv.Connections(); n != 1 {
						t.Errorf("%s: %d connections are left", what, n)
					}
				}
				time.Sleep(timeout/8 - time.Millisecond)
				if n := srv.Server().Stats().Zxid - zxid; n != 0 || dials.Load() != 1 {
					t.Errorf("a client that has not lived for an eighth of the timeout made %d transactions and %d connections", n, dials.Load())
				}
				time.Sleep(timeout/8 + time.Second)
				if n := srv.Server().Stats().Zxid - zxid; n != 2*row.sessions {
					t.Errorf("a client that asked for the tick once made %d transactions, want %d", n, 2*row.sessions)
				}
				h := acquire(t, c.Mutex("tick"))
				time.Sleep(timeout / 8) // the next proof uses the tick
				check("after a quarter of the timeout", h, true, 1+row.attempts)

				refuse.Store(true)
				srv.CutConnections()
				time.Sleep(timeout / 2)
				check("on a connection whose server refuses more", h, false, 3)

				refuse.Store(false)
				srv.CutConnections()
				time.Sleep(timeout / 2)
				check("on the next connection", h, true, 1+row.attempts)
			})
		})
	}
}

// TestWatchLimitFailsAcquires checks that an acquire that exceeds the limit of watches of a
// connection fails with that error, and that the holds of the client keep their connection.
func TestWatchLimitFailsAcquires(t *testing.T) {
	bubble(t, func(t *testing.T, _ *zktest.Server) {
		srv := zktest.Start(t, func(o *zkserver.Options) { o.MaxWatchesPerConn = 4 })
		const locks = 6
		for i := range locks {
			c := zklock.New(srv.Dial(t), nil)
			defer c.Close()
			defer release(t, acquire(t, c.Mutex(fmt.Sprint("limit-", i))))
		}
		shared := srv.Dial(t)
		var disconnects atomic.Int32
		shared.Listen(zk.Listener{State: func(s zk.StateChange) {
			if s.State == zk.Disconnected {
				disconnects.Add(1)
			}
		}})
		c := zklock.New(shared, nil)
		defer c.Close()
		h := acquire(t, c.Mutex("own"))
		defer release(t, h)
		refused := 0
		for i := range locks {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			_, err := c.Mutex(fmt.Sprint("limit-", i)).Acquire(ctx)
			switch {
			case errors.Is(err, zk.ErrQuotaExceeded):
				refused++
			case !errors.Is(err, context.DeadlineExceeded):
				t.Errorf("acquire %d: %v", i, err)
			}
			cancel()
		}
		if refused < 3 {
			t.Errorf("the limit refused %d acquires", refused)
		}
		if err := h.Err(); err != nil {
			t.Error(err)
		}
		if n := disconnects.Load(); n > 1 {
			t.Errorf("the connection ended %d times", n)
		}
	})
}

// TestNoAcquireInReadOnlySession checks that no acquire begins in a session that accepts read-only
// servers, and that locks can be read there. Such a server can report a deletion that was never committed, and a waiter
// would be granted next to the holder.
func TestNoAcquireInReadOnlySession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := zklock.New(srv.Dial(t, func(o *zk.Options) { o.ReadOnly = true }), nil)
		defer c.Close()
		h := acquire(t, dial(t, srv).Mutex("a"))
		if entries, err := c.Mutex("a").Inspect(t.Context()); err != nil || len(entries) != 1 || entries[0].Node != h.Node() {
			t.Errorf("inspect: %+v, %v", entries, err)
		}
		if _, err := c.Mutex("a").Acquire(t.Context()); !errors.Is(err, zklock.ErrInvalidOptions) || !strings.Contains(err.Error(), "ReadOnly") {
			t.Error(err)
		}
	})
}

// TestErrorsSayWhyThereIsNoConnection checks the error of an acquire, and Health, until the
// client connects again.
func TestErrorsSayWhyThereIsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		c := dial(t, srv)
		if err := c.Health().Err; err != nil {
			t.Errorf("connected: %v", err)
		}
		srv.Stop()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Mutex("a").Acquire(ctx)
		if reason := c.Health().Err; reason == nil || err == nil || !strings.HasSuffix(err.Error(), "no answer from a server yet; "+reason.Error()+")") {
			t.Errorf("no server: acquire %v, Health %v", err, reason)
		}
		srv.Restart(t)
		release(t, acquire(t, c.Mutex("a")))
		if err := c.Health().Err; err != nil {
			t.Errorf("connected again: %v", err)
		}
	})
}
