package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zktest"
)

const timeout = 4 * time.Second

// bubble runs f in a synctest bubble with a server.
func bubble(t *testing.T, f func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, zktest.Start(t)) })
}

func dial(t *testing.T, srv *zktest.Server) *zklock.Client {
	t.Helper()
	return dialWith(t, srv, zklock.Options{})
}

func acquire(t *testing.T, l *zklock.Lock) *zklock.Hold {
	t.Helper()
	return acquireIn(t, t.Context(), l)
}

func acquireIn(t *testing.T, ctx context.Context, l *zklock.Lock) *zklock.Hold {
	t.Helper()
	h, err := l.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func release(t *testing.T, h *zklock.Hold) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func entries(t *testing.T, l *zklock.Lock) int {
	t.Helper()
	found, err := l.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}

// TestRepliesLost checks that the outcome is exact, whichever reply of an acquire or a release is
// lost with the connection: one entry while held, and none afterwards.
func TestRepliesLost(t *testing.T) {
	for _, op := range []string{"create2", "createContainer", "getChildren", "getChildren2", "delete", "multi", "connect"} {
		for _, reply := range []bool{true, false} {
			bubble(t, func(t *testing.T, srv *zktest.Server) {
				l, other := dial(t, srv).Mutex("lost"), dial(t, srv).Mutex("lost")
				if op == "connect" {
					srv.CutConnections()
				}
				f := drop(srv, reply, zktest.Match{Op: op})
				defer f.Stop()
				h := acquire(t, l)
				if n := entries(t, other); n != 1 && op != "create2" {
					t.Errorf("%s lost (reply %v): %d entries while held", op, reply, n)
				}
				release(t, h)
				again := acquire(t, other)
				if again.Token() <= h.Token() {
					t.Errorf("%s lost: token %d after %d", op, again.Token(), h.Token())
				}
				if err := h.Err(); !errors.Is(err, zklock.ErrReleased) {
					t.Errorf("%s lost (reply %v): %v", op, reply, err)
				}
				release(t, again)
				time.Sleep(2 * timeout) // until background work has ended
				if n := entries(t, l); n != 0 {
					t.Errorf("%s lost (reply %v): %d entries are left", op, reply, n)
				}
			})
		}
	}
}

// TestCancelWithReplyLost checks that a canceled acquire whose create had no reply leaves no
// entry.
func TestCancelWithReplyLost(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		l, other := dial(t, srv).Mutex("orphan"), dial(t, srv).Mutex("orphan")
		release(t, acquire(t, other))
		f := srv.DropReply(zktest.Match{Op: "create2"})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-f.Done()
			cancel()
		}()
		if h, err := l.Acquire(ctx); err == nil {
			release(t, h)
		}
		time.Sleep(timeout)
		if n := entries(t, other); n != 0 {
			t.Errorf("%d entries are left", n)
		}
	})
}

// TestOverwrittenWithReplyLost checks a layout without GUIDs. A client whose create had no reply
// finds its own znode even if another client overwrites its data, as Curator's Revoker does. It
// does not confuse it with the znode of another hold of the client.
func TestOverwrittenWithReplyLost(t *testing.T) {
	custom := zklock.Layout{Exclusive: "-W-"}
	for _, layout := range []zklock.Layout{{}, custom} {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			way := srv.Route(t)
			c := dialWith(t, srv, zklock.Options{DialContext: way.DialContext, Layout: layout})
			op, node, l := srv.Dial(t), "/zklock/a/b", c.Mutex("a/b")
			if layout == (zklock.Layout{}) {
				l = c.NodeLock("a/b")
			}
			release(t, acquire(t, l)) // creates the parents
			way.Delay(50 * time.Millisecond)
			f := way.DropReply(zktest.Match{Op: "create2"})
			first := waiting(t, t.Context(), l)
			<-f.Done()
			if layout == custom {
				names, _, err := op.Children(t.Context(), node)
				if err != nil || len(names) != 1 {
					t.Fatal(names, err)
				}
				node += "/" + names[0]
			}
			set(t, op, node, "__REVOKE__")
			time.Sleep(timeout)
			h := got(t, "the first", first)
			set(t, op, h.Node(), "__REVOKE__")
			f = way.DropReply(zktest.Match{Op: "create2"})
			second := waiting(t, t.Context(), l)
			<-f.Done()
			time.Sleep(timeout)
			if len(second) > 0 {
				t.Errorf("%v was granted while %v is held", <-second, h)
			}
			release(t, h)
			time.Sleep(timeout)
			release(t, got(t, "the second", second))
			if n := entries(t, l); n != 0 {
				t.Errorf("%d entries are left", n)
			}
		})
	}
}

// TestOneHeartbeatCoversAllEntries checks the heartbeats of a session with many entries.
func TestOneHeartbeatCoversAllEntries(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		var holds []*zklock.Hold
		for i := range 1200 {
			holds = append(holds, acquire(t, c.Mutex("many/"+string(rune('a'+i%26))+"/"+time.Duration(i).String())))
		}
		time.Sleep(3 * timeout)
		for _, h := range holds {
			if h.Err() != nil {
				t.Fatal(h.Err())
			}
		}
		op := srv.Dial(t)
		remove(t, op, holds[700].Node())
		time.Sleep(timeout/8 + time.Second)
		for i, h := range holds {
			if (h.Err() != nil) != (i == 700) {
				t.Fatalf("hold %d: %v", i, h.Err())
			}
		}
	})
}

// TestHoldOutlivesListingAboveLimit checks that a client keeps its connection and its holds while
// it acquires another lock whose listing exceeds MaxReply. Any client that may create entries
// there can cause this.
func TestHoldOutlivesListingAboveLimit(t *testing.T) {
	for _, size := range []int{5 << 10, 100 << 10} { // of the listing, in bytes
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			op := srv.Dial(t)
			for _, path := range []string{"/long", "/long/" + strings.Repeat("x", size)} {
				create(t, op, path, nil)
			}
			session := srv.Dial(t, func(o *zk.Options) { o.SessionTimeout, o.MaxReply = timeout, 4<<10 })
			session.Listen(zk.Listener{State: func(s zk.StateChange) {
				if s.State == zk.Disconnected {
					t.Errorf("connection lost: %v", s.Err)
				}
			}})
			c := zklock.New(session, nil)
			h := acquire(t, c.Mutex("/held"))
			for end := time.Now().Add(2 * timeout); time.Now().Before(end); time.Sleep(timeout / 5) {
				ctx, stop := context.WithTimeout(t.Context(), timeout)
				if _, err := c.Mutex("/long").Acquire(ctx); !errors.Is(err, zk.ErrReplyTooLarge) || zk.Applied(err) != zk.AppliedNo {
					t.Fatal(err)
				}
				var all sync.WaitGroup // the client reads several listings in one request
				for range 10 {
					all.Go(func() {
						if _, err := c.Mutex("/long").Acquire(ctx); !errors.Is(err, zk.ErrReplyTooLarge) {
							t.Error(err)
						}
						release(t, acquire(t, c.Mutex("/other")))
					})
				}
				all.Wait()
				stop()
			}
			if err := h.Err(); err != nil {
				t.Error(err)
			}
			if err := c.Close(); err != nil { // deletes all entries
				t.Error(err)
			}
		})
	}
}

// TestHeartbeatOfLongChroot checks that holds survive the session timeout although one request
// for all their long paths would exceed the limit of servers.
func TestHeartbeatOfLongChroot(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		op, chroot := srv.Dial(t), ""
		for range 12 {
			chroot += "/" + strings.Repeat("x", 200)
			create(t, op, chroot, nil)
		}
		c, err := zklock.Dial(t.Context(), srv.Servers()+chroot, &zklock.Options{SessionTimeout: timeout, DialContext: srv.DialContext})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var holds []*zklock.Hold
		for i := range 450 {
			holds = append(holds, acquire(t, c.Mutex(fmt.Sprint(i))))
		}
		time.Sleep(3 * timeout)
		for _, h := range holds {
			if h.Err() != nil {
				t.Fatal(h.Err())
			}
		}
	})
}

// TestMaxRequest checks a client of servers with a small jute.maxbuffer. Its heartbeats fit, and
// so do its watches after a lost connection. An acquire that does not fit fails at once, and ends
// no connection.
func TestMaxRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 16 << 10
		srv := zktest.Start(t, func(o *zkserver.Options) { o.MaxFrame = limit })
		var connections atomic.Int32
		c := dialWith(t, srv, zklock.Options{ServerTick: timeout / 8, MaxRequest: limit,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				connections.Add(1)
				return srv.DialContext(ctx, network, address)
			}})
		mutexes := func(name string, n int) (locks []*zklock.Lock) {
			for i := range n {
				locks = append(locks, c.Mutex(fmt.Sprintf("%s-%d", strings.Repeat(name, 100), i)))
			}
			return locks
		}
		var holds []*zklock.Hold
		for _, l := range mutexes("x", 300) {
			holds = append(holds, acquire(t, l))
		}
		began := time.Now()
		if _, err := zklock.All(mutexes("y", 100)...).Acquire(t.Context()); !errors.Is(err, zk.ErrTooLarge) || time.Since(began) > timeout/8 {
			t.Errorf("an acquire above the limit failed after %v: %v", time.Since(began), err)
		}
		time.Sleep(2 * timeout)
		if n := connections.Load(); n != 1 {
			t.Errorf("%d connections, want 1", n)
		}
		srv.CutConnections()
		time.Sleep(2 * timeout)
		if n := connections.Load(); n != 2 {
			t.Errorf("%d connections after a cut, want 2", n)
		}
		for _, h := range holds {
			if h.Err() != nil {
				t.Fatal(h.Err())
			}
		}
	})
}

// tidy runs f in a bubble with a server. At the end of f, only parents of locks may be left on
// the server.
func tidy(t *testing.T, f func(t *testing.T, srv *zktest.Server)) {
	t.Helper()
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		f(t, srv)
		if !t.Failed() {
			onlyParents(t, srv)
		}
	})
}

// onlyParents fails if an entry, or a record of a lock delay, is left when all background
// work has ended.
func onlyParents(t *testing.T, srv *zktest.Server) {
	t.Helper()
	time.Sleep(timeout) // on the bubble's clock
	onlyParentsNow(t, srv)
}

// onlyParentsNow is onlyParents without the wait for background work.
func onlyParentsNow(t *testing.T, srv *zktest.Server) {
	t.Helper()
	op := srv.Dial(t)
	var walk func(dir string)
	walk = func(dir string) {
		children, _, err := op.Children(t.Context(), dir)
		if errors.Is(err, zk.ErrNoNode) {
			return // a parent that the server has collected
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, child := range children {
			at := path.Join(dir, child)
			if at == "/zookeeper" {
				continue
			}
			_, stat, err := op.Get(t.Context(), at)
			if errors.Is(err, zk.ErrNoNode) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			_, entry := queue.ParseName(child)
			_, record := queue.ParseName(child + "0000000000")
			if stat.EphemeralOwner != 0 || entry == queue.Contender || record == queue.Contender {
				t.Errorf("%s is left", at)
			}
			walk(at)
		}
	}
	walk("/")
	if err := op.Close(); err != nil {
		t.Error(err)
	}
}

// dialWith is dial with options.
func dialWith(t *testing.T, srv *zktest.Server, o zklock.Options) *zklock.Client {
	t.Helper()
	if o.SessionTimeout == 0 {
		o.SessionTimeout = timeout
	}
	if o.DialContext == nil {
		o.DialContext = srv.DialContext
	}
	c, err := zklock.Dial(t.Context(), srv.Servers(), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// waiting starts an Acquire and returns when it is granted or waits. The channel receives
// the hold, or nil if the acquire failed.
func waiting(t *testing.T, ctx context.Context, l *zklock.Lock) <-chan *zklock.Hold {
	t.Helper()
	got := make(chan *zklock.Hold, 1)
	go func() { // ends with the acquire
		h, err := l.Acquire(ctx)
		if err != nil && ctx.Err() == nil {
			t.Errorf("acquire %s: %v", l, err)
		}
		got <- h
	}()
	synctest.Wait()
	return got
}

// pending fails if an acquire has ended.
func pending(t *testing.T, what string, waiters ...<-chan *zklock.Hold) {
	t.Helper()
	synctest.Wait()
	for i, w := range waiters {
		select {
		case h := <-w:
			t.Fatalf("%s: number %d was granted: %v", what, i, h)
		default:
		}
	}
}

// got returns the hold of a waiter, which must be granted by now.
func got(t *testing.T, what string, w <-chan *zklock.Hold) *zklock.Hold {
	t.Helper()
	synctest.Wait()
	select {
	case h := <-w:
		if h == nil {
			t.Fatalf("%s: failed", what)
		}
		return h
	default:
		t.Fatalf("%s: not granted", what)
		return nil
	}
}

// wants fails unless err is an Error of this kind.
func wants(t *testing.T, what string, err, kind error) {
	t.Helper()
	var e *zklock.Error
	if !errors.Is(err, kind) || !errors.As(err, &e) {
		t.Errorf("%s: %v, want %v", what, err, kind)
	}
}

// locked fails unless a try finds the lock held.
func locked(t *testing.T, l *zklock.Lock) {
	t.Helper()
	if h, err := l.TryAcquire(t.Context()); !errors.Is(err, zklock.ErrLocked) {
		t.Errorf("trying %s: %v, %v", l, h, err)
	}
}

// free fails unless a try acquires the lock.
func free(t *testing.T, l *zklock.Lock) {
	t.Helper()
	h, err := l.TryAcquire(t.Context())
	if err != nil {
		t.Errorf("trying %s: %v", l, err)
		return
	}
	release(t, h)
}

// under returns a context that carries the hold.
func under(t *testing.T, h *zklock.Hold) context.Context {
	t.Helper()
	ctx, cancel := h.Context(t.Context())
	t.Cleanup(cancel)
	return ctx
}

// inspect returns the lock's entries.
func inspect(t *testing.T, l *zklock.Lock) []zklock.Entry {
	t.Helper()
	found, err := l.Inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// foreign creates an ephemeral znode as another library does.
func foreign(t *testing.T, op *zk.Client, prefix, data string) string {
	t.Helper()
	node, _, err := op.Create(t.Context(), prefix, []byte(data), nil, zk.ModeEphemeralSequential)
	if err != nil {
		t.Fatal(err)
	}
	return node
}

// create creates a persistent znode without data.
func create(t *testing.T, op *zk.Client, node string, acl []zk.ACL) {
	t.Helper()
	if _, _, err := op.Create(t.Context(), node, nil, acl, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
}

func set(t *testing.T, op *zk.Client, node, data string) {
	t.Helper()
	if _, err := op.Set(t.Context(), node, []byte(data), -1); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, op *zk.Client, node string) {
	t.Helper()
	if err := op.Delete(t.Context(), node, -1); err != nil {
		t.Fatal(err)
	}
}

// drop loses the next reply that matches, or the next request.
func drop(srv *zktest.Server, reply bool, m zktest.Match) *zktest.Fault {
	if reply {
		return srv.DropReply(m)
	}
	return srv.DropRequest(m)
}

// TestLocksWithoutClientFail checks that locks that were not created by a client fail with an
// error, and so do locks derived from them.
func TestLocksWithoutClientFail(t *testing.T) {
	var none *zklock.Lock
	for what, l := range map[string]*zklock.Lock{
		"nil":           none,
		"zero":          {},
		"zero reader":   (&zklock.RWMutex{}).Reader(),
		"zero writer":   (&zklock.RWMutex{}).Writer(),
		"an All of nil": zklock.All(none),
		"of a zero one": zklock.All(&zklock.Lock{}),
		"of nothing":    zklock.All(),
		"reentrant":     none.Reentrant(),
		"permits":       none.Permits(1),
		"in order":      none.InOrder(),
	} {
		_, err := l.Acquire(t.Context())
		wants(t, what, err, zklock.ErrInvalidLock)
		_, err = l.TryAcquire(t.Context())
		wants(t, what+", tried", err, zklock.ErrInvalidLock)
		_, err = l.Inspect(t.Context())
		wants(t, what+", inspected", err, zklock.ErrInvalidLock)
		_, err = l.Revoke(t.Context())
		wants(t, what+", revoked", err, zklock.ErrInvalidLock)
		err = zklock.Do(t.Context(), l.Reentrant(), func(context.Context, *zklock.Hold) error { return nil })
		wants(t, what+", reentrant, done", err, zklock.ErrInvalidLock)
		if l.Path() != "" || l.String() != "" {
			t.Errorf("%s is called %q", what, l)
		}
	}
}

// TestNodeLock checks that the lock is the znode at its path.
func TestNodeLock(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b, op := dial(t, srv).NodeLock("node/lock"), dial(t, srv).NodeLock("node/lock"), srv.Dial(t)
		h := acquire(t, a)
		_, stat, err := op.Get(t.Context(), "/zklock/node/lock")
		if err != nil || stat.EphemeralOwner != h.Session() || stat.Czxid != h.Token() || h.Node() != a.Path() {
			t.Errorf("the znode: %+v, %v; the hold's token %d, znode %s", stat, err, h.Token(), h.Node())
		}
		locked(t, a)
		locked(t, b)
		w := waiting(t, t.Context(), b)
		pending(t, "while another holds", w)
		release(t, h)
		next := got(t, "the other one", w)
		if next.Token() <= h.Token() {
			t.Errorf("token %d after %d", next.Token(), h.Token())
		}
		release(t, next)
		free(t, a)
	})
}

// TestNodeLockSharedWithOtherPrograms checks that a node lock and a program that locks with the
// same znode wait for each other.
func TestNodeLockSharedWithOtherPrograms(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l, op := dial(t, srv).NodeLock("/theirs"), srv.Dial(t)
		if _, _, err := op.Create(t.Context(), "/theirs", []byte("host-7"), nil, zk.ModeEphemeral); err != nil {
			t.Fatal(err)
		}
		locked(t, l)
		found := inspect(t, l)
		if len(found) != 1 || !found[0].Holder || found[0].Data != "host-7" || found[0].Node != "/theirs" || found[0].Mode != zklock.Exclusive {
			t.Errorf("%+v", found)
		}
		ctx, cancel := context.WithCancel(t.Context())
		given := waiting(t, ctx, l)
		w := waiting(t, t.Context(), l)
		cancel()
		if <-given != nil {
			t.Error("granted after a cancel")
		}
		remove(t, op, "/theirs")
		h := got(t, "ours", w)
		if _, _, err := op.Create(t.Context(), "/theirs", nil, nil, zk.ModeEphemeral); err == nil {
			t.Error("two made the znode")
		}
		release(t, h)
	})
}

// TestNodeLockRepliesLost checks that the outcome is exact, whichever request or reply
// is lost.
func TestNodeLockRepliesLost(t *testing.T) {
	for _, op := range []string{"create2", "getData", "delete", "multi"} {
		for _, reply := range []bool{true, false} {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				a, b := dial(t, srv).NodeLock("doubt"), dial(t, srv).NodeLock("doubt")
				f := drop(srv, reply, zktest.Match{Op: op, Path: a.Path()})
				h := acquire(t, a)
				locked(t, b)
				w := waiting(t, t.Context(), b)
				release(t, h)
				time.Sleep(time.Second)
				release(t, got(t, "the other one", w))
				f.Stop()
			})
		}
	}
}

// TestNodeLockDeleted checks that a holder whose znode is deleted reports the loss, even if
// another client has created the znode again, and does not delete the new znode.
func TestNodeLockDeleted(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		a, b, op := dial(t, srv).NodeLock("away"), dial(t, srv).NodeLock("away"), srv.Dial(t)
		h := acquire(t, a)
		w := waiting(t, t.Context(), b)
		remove(t, op, a.Path())
		other := got(t, "the other one", w)
		<-h.Done()
		wants(t, "the old hold", h.Err(), zklock.ErrLost)
		wants(t, "its release", h.Release(t.Context()), zklock.ErrLost)
		time.Sleep(timeout)
		if other.Err() != nil {
			t.Errorf("the other's hold: %v", other.Err())
		}
		release(t, other)
	})
}

// TestNodeLockRefusesGuards checks that Verify and Guard are refused, because no check shows
// which client created the znode.
func TestNodeLockRefusesGuards(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l, op := dial(t, srv).NodeLock("guard"), srv.Dial(t)
		h := acquire(t, l)
		wants(t, "verify", h.Verify(t.Context()), zklock.ErrInvalidLock)
		wants(t, "guard", h.Guard(t.Context(), zk.CreateOp("/made", nil, nil, zk.ModePersistent)), zklock.ErrInvalidLock)
		if _, _, err := op.Get(t.Context(), "/made"); err == nil {
			t.Error("the operation was done")
		}
		if h.Err() != nil {
			t.Error(h.Err())
		}
		release(t, h)
		_, err := dial(t, srv).NodeLock("x/../y").Acquire(t.Context())
		wants(t, "a bad name", err, zklock.ErrInvalidName)
	})
}

// TestNodeLockBlockedByPersistentNode checks that a persistent znode blocks the lock and is shown
// as a stray.
func TestNodeLockBlockedByPersistentNode(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		l, op := dial(t, srv).NodeLock("/way"), srv.Dial(t)
		create(t, op, "/way", nil)
		locked(t, l)
		if found := inspect(t, l); len(found) != 1 || found[0].Holder || found[0].Mode != zklock.Stray {
			t.Errorf("%+v", found)
		}
		remove(t, op, "/way")
		free(t, l)
	})
}

// TestNodeLockOfUnreadableZnodeLeavesNothing checks that acquires that fail because the znode of
// another client is unreadable leave no repeated requests, and do not make Close wait.
func TestNodeLockOfUnreadableZnodeLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		root, shared := dialZK(t, srv, zk.Auth{Scheme: "digest", Data: []byte("root:secret")}), dialZK(t, srv)
		if _, _, err := root.Create(t.Context(), "/closed", nil, zk.CreatorACL(), zk.ModeEphemeral); err != nil {
			t.Fatal(err)
		}
		c := zklock.New(shared, nil)
		requests := func() int64 {
			before := srv.Server().Stats().Received
			time.Sleep(10 * timeout)
			return srv.Server().Stats().Received - before
		}
		idle := requests()
		for range 50 {
			_, err := c.NodeLock("/closed").Acquire(t.Context())
			wants(t, "an acquire", err, zk.ErrNoAuth)
		}
		if n := requests(); n > idle+50 {
			t.Errorf("%d requests after 50 acquires, before %d in the same time", n, idle)
		}
		begun := time.Now()
		if err := c.Close(); err != nil || time.Since(begun) > time.Second {
			t.Errorf("a close that took %v: %v", time.Since(begun), err)
		}
	})
}

// TestTryWithReplyLost checks that a try whose create had no reply is not refused
// because of its own znode.
func TestTryWithReplyLost(t *testing.T) {
	for _, reply := range []bool{true, false} {
		bubble(t, func(t *testing.T, srv *zktest.Server) {
			l := dial(t, srv).Mutex("try")
			release(t, acquire(t, l))
			f := drop(srv, reply, zktest.Match{Op: "create2"})
			h, err := l.TryAcquire(t.Context())
			if err != nil {
				t.Fatalf("reply %v: %v", reply, err)
			}
			<-f.Done()
			if n := entries(t, l); n != 1 {
				t.Errorf("reply %v: %d entries while held", reply, n)
			}
			release(t, h)
		})
	}
}

// TestFailedTryNamesTheHolder checks that the error of a TryAcquire of every kind of exclusive
// lock is ErrLocked, and names the holder and the age of its entry.
func TestFailedTryNamesTheHolder(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		holder := dialWith(t, srv, zklock.Options{Owner: &zklock.Owner{Host: "web-3", PID: 4711}})
		other := dial(t, srv)
		op := srv.Dial(t)
		release(t, acquire(t, other.Mutex("foreign"))) // creates the parent
		foreign(t, op, "/zklock/foreign/_c_01234567-89ab-cdef-0123-456789abcdef-lock-", "batch-7")
		acquire(t, holder.Mutex("mutex"))
		acquire(t, holder.RWMutex("writer").Writer())
		acquire(t, holder.RWMutex("reader").Reader())
		acquire(t, holder.NodeLock("node"))
		time.Sleep(12*time.Second + 300*time.Millisecond)
		for _, test := range []struct {
			lock *zklock.Lock
			want string
		}{
			{other.Mutex("mutex"), "zklock: acquire /zklock/mutex: held by web-3:4711 for 12s"},
			{other.RWMutex("writer").Reader(), "zklock: acquire /zklock/writer: held by web-3:4711 for 12s"},
			{other.RWMutex("reader").Writer(), "zklock: acquire /zklock/reader: held by web-3:4711 for 12s"},
			{other.NodeLock("node"), "zklock: acquire /zklock/node: held by web-3:4711 for 12s"},
			{other.Mutex("foreign"), "zklock: acquire /zklock/foreign: held by batch-7 for 12s"},
		} {
			_, err := test.lock.TryAcquire(t.Context())
			wants(t, test.lock.Path(), err, zklock.ErrLocked)
			if err == nil || err.Error() != test.want {
				t.Errorf("%s: %v, want %s", test.lock, err, test.want)
			}
		}
	})
}

// errorList is an error of a type that is not comparable.
type errorList []string

func (e errorList) Error() string { return strings.Join(e, ", ") }

// wrappedErrors is an error of a comparable type with an error that is not comparable.
type wrappedErrors struct{ error }

// ownContext is a context of the caller with its own error.
type ownContext struct {
	context.Context
	err error
}

func (c ownContext) Err() error {
	if c.Context.Err() == nil {
		return nil
	}
	return c.err
}

func (c ownContext) Value(any) any { return nil } // hides the context inside

// TestContextMayHaveAnyError checks that an acquire ends with the error of the caller's own
// context, whatever its type, and leaves no entry.
func TestContextMayHaveAnyError(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		held, c := acquire(t, dial(t, srv).Mutex("a")), dial(t, srv)
		left := errorList{"the caller", "has left"}
		for _, l := range []*zklock.Lock{c.Mutex("a"), zklock.All(c.Mutex("a"), c.Mutex("b"))} {
			for _, err := range []error{left, wrappedErrors{left}} {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				_, err := l.Acquire(ownContext{ctx, err})
				if !strings.Contains(err.Error(), left.Error()) {
					t.Errorf("%v", err)
				}
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(left) })
			_, err := l.Acquire(ctx)
			var cause errorList
			if !errors.Is(err, context.Canceled) || !errors.As(err, &cause) || len(cause) != 2 {
				t.Errorf("%v", err)
			}
		}
		release(t, held)
		free(t, c.Mutex("a"))
	})
}

// TestErrorOfEndedWaitNamesBlocker checks the error of an acquire whose context ends. It names
// the holder if half of the time or a second had passed, and otherwise the number of entries
// ahead.
func TestErrorOfEndedWaitNamesBlocker(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		holder := dialWith(t, srv, zklock.Options{Owner: &zklock.Owner{Host: "web-3", PID: 4711}})
		acquire(t, holder.Mutex("a"))
		other := dial(t, srv)
		for wait, want := range map[time.Duration]string{
			500 * time.Millisecond: "position 1, held by web-3:4711",
			time.Minute:            "position 1, held by web-3:4711",
		} {
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			_, err := other.Mutex("a").Acquire(ctx)
			cancel()
			if wants(t, "an ended wait", err, context.DeadlineExceeded); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, want %s", wait, err, want)
			}
		}
		for wait, want := range map[time.Duration]string{
			500 * time.Millisecond: "one entry ahead in the queue",
			2 * time.Second:        "position 1, held by web-3:4711",
		} {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(wait, cancel)
			_, err := other.Mutex("a").Acquire(ctx)
			if wants(t, "a canceled wait", err, context.Canceled); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: %v, want %s", wait, err, want)
			}
		}
		// The first waiter of a semaphore waits for permits, and the next one for the first.
		permit := acquire(t, holder.Semaphore("s", 1))
		for _, want := range []string{"waits for the release of permits, such as " + path.Base(permit.Node()), "one entry ahead in the queue, of "} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			_, err := other.Semaphore("s", 1).Acquire(ctx)
			cancel()
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
			go holder.Semaphore("s", 1).Acquire(t.Context()) // ends with the test
			time.Sleep(time.Second)                          // it is in the queue
		}
		// Data that are too long for a name, and a long name.
		for prefix, want := range map[string]string{
			"/zklock/b/_c_01234567-89ab-cdef-0123-456789abcdef-lock-": "position 1, held by _c_01234567-89ab-cdef-0123-456789abcdef-lock-0000000001)",
			"/zklock/c/" + strings.Repeat("x", 5000) + "-lock-":       "position 1, held by xxx",
		} {
			l := other.Mutex(path.Dir(prefix))
			free(t, l)
			foreign(t, srv.Dial(t), prefix, strings.Repeat("\x1b", 1_000_000))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			_, err := l.Acquire(ctx)
			cancel()
			if wants(t, "a wait for long data", err, context.DeadlineExceeded); err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 1000 {
				t.Errorf("%.1000v, want %s", err, want)
			}
		}
	})
}
