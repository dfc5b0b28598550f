package zklock_test

import (
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestInspectForeignEntries checks that entries of every known library are shown in the order of
// the queue, with their data as text, and strays last.
func TestInspectForeignEntries(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		l := c.Mutex("/mixed")
		free(t, l)
		const guid, hex = "01234567-89ab-cdef-0123-456789abcdef", "0123456789abcdef0123456789abcdef"
		var nodes []string
		for _, e := range []struct {
			prefix, data string
			mode         zklock.Mode
			holder       bool
		}{
			{"_c_" + guid + "-__READ__", "10.0.0.1", zklock.Shared, true},
			{hex + "__rlock__", "worker-1\x1b[2J", zklock.Shared, true},
			{"_c_" + guid + "-__WRIT__", "10.0.0.2", zklock.Exclusive, false},
			{"_c_" + hex + "-lock-", "go", zklock.Exclusive, false},
			{hex + "__lock__", "worker-2", zklock.Exclusive, false},
			{"_c_" + guid + "-latch-", "node-3", zklock.Exclusive, false},
			{"config", "\xff\x00settings", zklock.Stray, false},
			{"lock-", "", zklock.Stray, false},
		} {
			nodes = append(nodes, foreign(t, op, "/mixed/"+e.prefix, e.data))
			found, err := c.Inspect(t.Context(), "/mixed")
			if err != nil || len(found) != len(nodes) {
				t.Fatalf("%+v, %v", found, err)
			}
			last := found[len(found)-1]
			if last.Node != nodes[len(nodes)-1] || last.Mode != e.mode || last.Holder != e.holder || last.Path != "/mixed" ||
				last.Session != op.SessionID() || !strings.HasSuffix(last.Node, last.Name) {
				t.Errorf("%s is shown as %+v", e.prefix, last)
			}
			if last.Data != legible.Text(e.data) {
				t.Errorf("%q is shown as %q", e.data, last.Data)
			}
		}
		for _, node := range nodes {
			remove(t, op, node)
		}
	})
}

// TestInspectByName checks that Inspect finds the kind of a lock.
func TestInspectByName(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, other := dial(t, srv), dial(t, srv)
		for _, row := range []struct {
			name   string
			locks  []*zklock.Lock
			mode   zklock.Mode
			number int
		}{
			{"mutex", []*zklock.Lock{other.Mutex("mutex")}, zklock.Exclusive, 1},
			{"readers", []*zklock.Lock{other.RWMutex("readers").Reader(), c.RWMutex("readers").Reader()}, zklock.Shared, 2},
			{"permits", []*zklock.Lock{other.Semaphore("permits", 9).Permits(4), c.Semaphore("permits", 9)}, zklock.Permit, 5},
			{"node", []*zklock.Lock{other.NodeLock("node")}, zklock.Exclusive, 1},
		} {
			none, err := c.Inspect(t.Context(), row.name)
			if err != nil || len(none) != 0 {
				t.Errorf("%s before it is used: %+v, %v", row.name, none, err)
			}
			for _, l := range row.locks {
				h := acquire(t, l)
				defer release(t, h)
			}
			found, err := c.Inspect(t.Context(), row.name)
			if err != nil || len(found) != row.number {
				t.Errorf("%s: %+v, %v", row.name, found, err)
			}
			for _, e := range found {
				if !e.Holder || e.Mode != row.mode || e.Path != "/zklock/"+row.name || e.Owner.PID == 0 {
					t.Errorf("%s: %+v", row.name, e)
				}
			}
		}
		_, err := c.Inspect(t.Context(), "bad//name")
		wants(t, "a bad name", err, zklock.ErrInvalidName)
	})
}

// TestInspectAll checks that the entries of each lock of an All have its path.
func TestInspectAll(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		all := zklock.All(c.Mutex("b"), c.RWMutex("a").Reader(), c.Semaphore("s", 2))
		h := acquire(t, all)
		w := waiting(t, t.Context(), all)
		var got []string
		for _, e := range inspect(t, all) {
			got = append(got, strings.TrimPrefix(e.Path, "/zklock/")+" "+string(e.Mode)+" "+map[bool]string{true: "holds", false: "waits"}[e.Holder])
		}
		want := "b exclusive holds, b exclusive waits, a shared holds, a shared holds, s permit holds"
		if strings.Join(got, ", ") != want {
			t.Errorf("%q, want %q", strings.Join(got, ", "), want)
		}
		release(t, h)
		release(t, <-w)
	})
}

// TestInspectWithoutPermission checks that Inspect returns an error without permission,
// and on a closed client.
func TestInspectWithoutPermission(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		acl := []zk.ACL{{Perms: zk.PermCreate, Scheme: "world", ID: "anyone"}}
		create(t, op, "/secret", acl)
		for _, l := range []*zklock.Lock{c.Mutex("/secret"), c.NodeLock("/secret"), c.Semaphore("/secret", 1), zklock.All(c.Mutex("/secret"))} {
			if _, err := l.Inspect(t.Context()); err == nil && l.Path() != "/secret" {
				t.Errorf("%s: no error", l)
			}
		}
		_, err := c.Inspect(t.Context(), "/secret")
		wants(t, "a znode that may not be read", err, zk.ErrNoAuth)
		remove(t, op, "/secret")
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		for _, l := range []*zklock.Lock{c.Mutex("a"), c.NodeLock("a"), c.Semaphore("a", 1)} {
			_, err := l.Inspect(t.Context())
			wants(t, "a closed client", err, zklock.ErrClosed)
		}
	})
}

// TestWaitEventsNameTheLock checks that the event names the lock of an All that the
// acquire waits for.
func TestWaitEventsNameTheLock(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		told := make(chan zklock.Event, 10)
		c := dialWith(t, srv, zklock.Options{OnWait: func(e zklock.Event) { told <- e }})
		for _, kind := range []struct{ holder, waiter *zklock.Lock }{
			{dial(t, srv).Mutex("b"), zklock.All(c.Mutex("a"), c.Mutex("b"))},
			{dial(t, srv).RWMutex("r").Reader(), zklock.All(c.RWMutex("w").Reader(), c.RWMutex("r").Writer())},
			{dial(t, srv).NodeLock("node"), c.NodeLock("node")},
			{dial(t, srv).Semaphore("s", 1), c.Semaphore("s", 1)},
		} {
			h := acquire(t, kind.holder)
			synctest.Wait() // the holder has left the semaphore's gate
			w := waiting(t, t.Context(), kind.waiter)
			e := <-told
			if e.Blocker.Node != h.Node() || e.Blocker.Path != kind.holder.Path() || e.Blocker.Mode != inspect(t, kind.holder)[0].Mode || !strings.HasSuffix(h.Node(), e.Blocker.Name) || e.Path != kind.waiter.Path() || e.Ahead < 1 {
				t.Errorf("%+v, want %s", e, h.Node())
			}
			release(t, h)
			release(t, <-w)
			time.Sleep(time.Second)
		}
	})
}

// TestInspectCached checks that a repeated Inspect reads only new entries.
func TestInspectCached(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, looking := dial(t, srv), srv.Route(t)
		var reads atomic.Int64
		looking.DelayFunc(func(f zktest.Frame) time.Duration {
			if f.Direction == zktest.ToServer && f.Op == "getData" {
				reads.Add(1)
			}
			return 0
		})
		watcher := zklock.New(looking.Dial(t), nil)
		defer watcher.Close()
		rw := c.RWMutex("known")
		var holds []*zklock.Hold
		for range 3 {
			holds = append(holds, acquire(t, rw.Reader()))
		}
		before, err := watcher.Inspect(t.Context(), "known")
		if err != nil || len(before) != 3 || reads.Load() != 3 {
			t.Fatalf("%+v, %v, after %d reads", before, err, reads.Load())
		}
		holds = append(holds, acquire(t, rw.Reader()))
		release(t, holds[0])
		reads.Store(0)
		after, err := watcher.InspectCached(t.Context(), "known", before)
		if err != nil || len(after) != 3 || reads.Load() != 1 {
			t.Fatalf("%+v, %v, after %d reads", after, err, reads.Load())
		}
		whole, err := watcher.Inspect(t.Context(), "known")
		if err != nil || !reflect.DeepEqual(after, whole) {
			t.Errorf("what was known and what is read differ: %+v, %+v, %v", after, whole, err)
		}
		// An entry that could not be read is read again.
		after[0].Since, after[0].Session = time.Time{}, 0
		if after, err = watcher.InspectCached(t.Context(), "known", after); err != nil || !reflect.DeepEqual(after, whole) {
			t.Errorf("what was not readable stays so: %+v, %v", after, err)
		}
		for _, h := range holds[1:] {
			release(t, h)
		}
	})
}

// TestInspectWhileLockChangesHands checks that Inspect shows a holder if the holder that it listed
// leaves before its znode is read.
func TestInspectWhileLockChangesHands(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, waiting, looking := dial(t, srv), dial(t, srv), srv.Route(t)
		const pause = time.Second
		var pauses atomic.Int64
		looking.DelayFunc(func(f zktest.Frame) time.Duration {
			if f.Direction == zktest.ToServer && f.Op == "getData" && pauses.Add(-1) >= 0 {
				return pause
			}
			return 0
		})
		watcher := zklock.New(looking.Dial(t), nil)
		defer watcher.Close()
		downgrade := func(h *zklock.Hold) error { return h.Downgrade(t.Context()) }
		byName := func(name string) ([]zklock.Entry, error) { return watcher.Inspect(t.Context(), name) }
		asMutex := func(name string) ([]zklock.Entry, error) {
			return watcher.Mutex(name).Inspect(t.Context())
		}
		for _, row := range []struct {
			name    string
			lock    *zklock.Lock
			waiter  bool
			change  func(*zklock.Hold) error
			inspect func(name string) ([]zklock.Entry, error)
			holders int
			mode    zklock.Mode
		}{
			{"released", c.Mutex("released"), true, (*zklock.Hold).ReleaseAsync, asMutex, 1, zklock.Exclusive},
			{"downgraded", c.RWMutex("downgraded").Writer(), true, downgrade, byName, 1, zklock.Shared},
			{"free", c.Mutex("free"), false, (*zklock.Hold).ReleaseAsync, byName, 0, ""},
		} {
			h := acquire(t, row.lock)
			next := make(chan *zklock.Hold, 1)
			if row.waiter {
				go func() { next <- acquire(t, waiting.Mutex(row.name)) }()
				synctest.Wait()
			}
			pauses.Store(1)
			time.AfterFunc(pause/2, func() {
				if err := row.change(h); err != nil {
					t.Errorf("%s: %v", row.name, err)
				}
			})
			found, err := row.inspect(row.name)
			holders := 0
			for _, e := range found {
				if e.Holder && e.Mode == row.mode {
					holders++
				}
			}
			if err != nil || holders != row.holders {
				t.Errorf("%s: %+v, %v; want %d holders", row.name, found, err, row.holders)
			}
			release(t, h)
			if row.waiter {
				release(t, <-next)
			}
		}
	})
}

// TestInspectCachedOfReusedNames checks that the data of a znode are not used for another znode
// with the same name: the next holder of a node lock, or an entry in a queue whose sequence
// numbers started again.
func TestInspectCachedOfReusedNames(t *testing.T) {
	for _, parent := range []bool{false, true} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			o := zklock.Options{Layout: zklock.Layout{Prefix: "host", Exclusive: "-W-", Shared: "-R-", InParent: parent}}
			a, b, op := dialWith(t, srv, o), dialWith(t, srv, o), srv.Dial(t)
			for _, locks := range [][2]*zklock.Lock{
				{a.NodeLock("/dir/node"), b.NodeLock("/dir/node")},
				{a.Mutex("/queue/same"), b.Mutex("/queue/same")},
				{a.RWMutex("/book/same").Reader(), b.RWMutex("/book/same").Reader()},
			} {
				path := locks[0].Path()
				h := acquire(t, locks[0])
				before, err := a.Inspect(t.Context(), path)
				if err != nil || len(before) != 1 || before[0].Token != h.Token() {
					t.Fatalf("%s: %+v, %v", path, before, err)
				}
				again, err := a.InspectCached(t.Context(), path, before)
				if err != nil || !reflect.DeepEqual(again, before) {
					t.Errorf("%s: %+v, %v", path, again, err)
				}
				node := h.Node()
				release(t, h)
				if dir := node[:strings.LastIndexByte(node, '/')]; dir != "/dir" {
					remove(t, op, dir)
				}
				next := acquire(t, locks[1])
				if next.Node() != node {
					t.Fatalf("%s after %s: this shows nothing", next.Node(), node)
				}
				after, err := a.InspectCached(t.Context(), path, before)
				if err != nil || len(after) != 1 || after[0].Token != next.Token() || after[0].Session != next.Session() {
					t.Errorf("%s: %+v, %v; token %d of session %d holds", path, after, err, next.Token(), next.Session())
				}
				release(t, next)
			}
		})
	}
}

const anyLock = "_c_01234567-89ab-cdef-0123-456789abcdef-lock-"

// TestInspectLocksNamedLikePartsOfSemaphore checks that they are not taken for a semaphore, and
// that a znode among permits that is not a permit holds nothing.
func TestInspectLocksNamedLikePartsOfSemaphore(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		app, below := acquire(t, c.Mutex("app")), acquire(t, c.Mutex("app/locks"))
		found, err := c.Inspect(t.Context(), "app")
		if err != nil || len(found) != 1 || found[0].Node != app.Node() || !found[0].Holder || found[0].Mode != zklock.Exclusive {
			t.Errorf("a mutex above one called locks: %+v, %v", found, err)
		}
		release(t, app)
		release(t, below)
		permit := acquire(t, c.Semaphore("s", 2))
		odd := foreign(t, op, "/zklock/s/leases/"+anyLock, "odd")
		for _, look := range []func() ([]zklock.Entry, error){
			func() ([]zklock.Entry, error) { return c.Semaphore("s", 2).Inspect(t.Context()) },
			func() ([]zklock.Entry, error) { return c.Inspect(t.Context(), "s") },
		} {
			found, err := look()
			if err != nil || len(found) != 2 || found[0].Node != permit.Node() || !found[0].Holder || found[1].Mode != zklock.Stray || found[1].Holder {
				t.Errorf("a mutex's entry among permits: %+v, %v", found, err)
			}
		}
		if asked, err := c.Semaphore("s", 2).Revoke(t.Context()); err != nil || len(asked) != 1 {
			t.Errorf("asked %+v, %v", asked, err)
		}
		two := acquire(t, c.Semaphore("s", 2)) // no client counts the other znode
		remove(t, op, odd)
		release(t, permit)
		release(t, two)
	})
}

// TestInspectInParent checks that Inspect finds other kinds of locks next to the queues in one
// parent by their names.
func TestInspectInParent(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dialWith(t, srv, zklock.Options{Layout: zklock.Layout{Exclusive: "_lock_", InParent: true}})
		for _, l := range []*zklock.Lock{c.Mutex("/office/mutex"), c.Semaphore("/office/sem", 3), c.NodeLock("/office/node")} {
			if found, err := c.Inspect(t.Context(), l.Path()); err != nil || len(found) != 0 {
				t.Errorf("%s before it is used: %+v, %v", l, found, err)
			}
			h := acquire(t, l)
			found, err := c.Inspect(t.Context(), l.Path())
			if err != nil || len(found) != 1 || found[0].Node != h.Node() || !found[0].Holder || found[0].Path != l.Path() {
				t.Errorf("%s: %+v, %v", l, found, err)
			}
			release(t, h)
		}
	})
}

// TestInspectUnreadable checks that an unreadable znode hides no others, and that a
// release request needs a readable holder.
func TestInspectUnreadable(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		secret := []zk.ACL{{Perms: zk.PermWrite, Scheme: "world", ID: "anyone"}}
		hidden := func(prefix string) string {
			node, _, err := op.Create(t.Context(), prefix, []byte("unseen"), secret, zk.ModeEphemeralSequential)
			if err != nil {
				t.Fatal(err)
			}
			return node
		}
		l := c.Mutex("a")
		h := acquire(t, l)
		waiter, stray := hidden("/zklock/a/"+anyLock), hidden("/zklock/a/config")
		for name, look := range map[string]func() ([]zklock.Entry, error){
			"by the lock": func() ([]zklock.Entry, error) { return l.Inspect(t.Context()) },
			"by the name": func() ([]zklock.Entry, error) { return c.Inspect(t.Context(), "a") },
		} {
			found, err := look()
			if err != nil || len(found) != 3 || found[0].Token != h.Token() || found[1].Node != waiter || found[1].Data != "" || found[2].Node != stray {
				t.Errorf("%s: %+v, %v", name, found, err)
			}
		}
		if asked, err := l.Revoke(t.Context()); err != nil || len(asked) != 1 || asked[0].Node != h.Node() {
			t.Errorf("asked %+v, %v", asked, err)
		}
		release(t, h)
		asked, err := l.Revoke(t.Context())
		wants(t, "a release request to an unreadable holder", err, zk.ErrNoAuth)
		if len(asked) != 0 {
			t.Errorf("asked %+v", asked)
		}
		remove(t, op, waiter)
		remove(t, op, stray)
		permit := acquire(t, c.Semaphore("s", 2))
		const lease = "/zklock/s/leases/_c_01234567-89ab-cdef-0123-456789abcdef-lease-"
		others := []string{hidden(lease), hidden(lease)} // one more than the size
		for i, e := range inspect(t, c.Semaphore("s", 2)) {
			if e.Mode != zklock.Permit || e.Holder != (i < 2) {
				t.Errorf("%d: %+v", i, e)
			}
		}
		release(t, permit)
		remove(t, op, others[0])
		remove(t, op, others[1])
		node := hidden("/node")
		_, err = c.NodeLock(node).Inspect(t.Context())
		wants(t, "a node lock that can't be seen", err, zk.ErrNoAuth)
		remove(t, op, node)
	})
}

// TestForeignOwnerIsBounded checks that data of other clients in place of an owner are not
// trusted, and not shown at full length.
func TestForeignOwnerIsBounded(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		free(t, c.Mutex("a"))
		for data, want := range map[string]zklock.Owner{
			`{"host":"x","version":"zklock 9","token":9223372036854775807}`:          {Host: "x", Version: "zklock 9", Token: 1<<63 - 1},
			`{"host":"` + strings.Repeat("h", 100_000) + `"}`:                        {},
			`{"version":"zklock 9","future":"` + strings.Repeat("h", 100_000) + `"}`: {},
			strings.Repeat("h", 100_000):                                             {},
		} {
			node := foreign(t, op, "/zklock/a/_c_01234567-89ab-cdef-0123-456789abcdef-__READ__", data)
			_, stat, err := op.Get(t.Context(), node)
			if err != nil {
				t.Fatal(err)
			}
			found := inspect(t, c.Mutex("a"))
			if len(found) != 1 || found[0].Owner != want || len(found[0].Data) > 5000 || found[0].Token != stat.Czxid {
				t.Errorf("%.50s is shown as %+.200v", data, found)
			}
			if asked, err := c.Mutex("a").Revoke(t.Context()); err != nil || len(asked) != 1 {
				t.Errorf("%.50s: asked %+.200v, %v", data, asked, err)
			}
			if found := inspect(t, c.Mutex("a")); !found[0].Revoked || len(found[0].Data) > 20 {
				t.Errorf("%.50s has become %+.200v", data, found)
			}
			remove(t, op, node)
		}
	})
}

// TestOptionsCannotSetTokenOfOwner checks that options cannot set the token of an owner.
func TestOptionsCannotSetTokenOfOwner(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dialWith(t, srv, zklock.Options{Owner: &zklock.Owner{Host: "here", Token: 7}})
		h := acquire(t, c.RWMutex("a").Reader())
		if e := inspect(t, c.Mutex("a"))[0]; e.Token != h.Token() || e.Owner.Token != 0 {
			t.Errorf("token %d is shown as %+v", h.Token(), e)
		}
		release(t, h)
	})
}

// TestOwnerTooLarge checks that metadata over 4 KiB are refused before any I/O.
func TestOwnerTooLarge(t *testing.T) {
	srv := zktest.Start(t)
	c := dialWith(t, srv, zklock.Options{
		Owner: &zklock.Owner{Command: strings.Repeat("x", 5000)},
	})
	if _, err := c.Mutex("large").Acquire(t.Context()); !errors.Is(err, zklock.ErrTooLarge) {
		t.Errorf("%v", err)
	}
}

// TestAnonymousClientHidesOwner checks that Anonymous leaves out the owner's data.
func TestAnonymousClientHidesOwner(t *testing.T) {
	srv := zktest.Start(t)
	c := dialWith(t, srv, zklock.Options{Anonymous: true})
	l := c.Mutex("anonymous")
	defer release(t, acquire(t, l))
	found, err := l.Inspect(t.Context())
	if err != nil || len(found) != 1 || found[0].Owner != (zklock.Owner{Version: "zklock"}) || found[0].Data != "" {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestOwnerString(t *testing.T) {
	for want, o := range map[string]zklock.Owner{"h:7": {Host: "h", PID: 7}, "h": {Host: "h"}, "": {}} {
		if o.String() != want {
			t.Errorf("%q, want %q", o.String(), want)
		}
	}
}
