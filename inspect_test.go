package zklock_test

import (
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

// TestInspectForeigners: the entries of every known library are shown in the one
// order that there is, with their data as text, and strays last.
func TestInspectForeigners(t *testing.T) {
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
			nodes = append(nodes, strange(t, op, "/mixed/"+e.prefix, e.data))
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

// TestInspectByName finds out what kind of lock there is.
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

// TestInspectAll shows each lock's entries, with its path.
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

// TestInspectWithoutPermission is an error, and so is a closed client.
func TestInspectWithoutPermission(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c, op := dial(t, srv), srv.Dial(t)
		acl := []zk.ACL{{Perms: zk.PermCreate, Scheme: "world", ID: "anyone"}}
		if _, _, err := op.Create(t.Context(), "/secret", nil, acl, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		for _, l := range []*zklock.Lock{c.Mutex("/secret"), c.NodeLock("/secret"), c.Semaphore("/secret", 1), zklock.All(c.Mutex("/secret"))} {
			if _, err := l.Inspect(t.Context()); err == nil && l.Path() != "/secret" {
				t.Errorf("%s: no error", l)
			}
		}
		_, err := c.Inspect(t.Context(), "/secret")
		wants(t, "a znode that may not be read", err, zk.ErrNoAuth)
		if err := op.Delete(t.Context(), "/secret", -1); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		for _, l := range []*zklock.Lock{c.Mutex("a"), c.NodeLock("a"), c.Semaphore("a", 1)} {
			_, err := l.Inspect(t.Context())
			wants(t, "a closed client", err, zklock.ErrClosed)
		}
	})
}

// TestWaitEventsNameTheLock: whoever waits for one of an All's locks is told which.
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

// TestReinspect reads of a lock that was looked at before only who came since.
func TestReinspect(t *testing.T) {
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
		if err := holds[0].Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		reads.Store(0)
		after, err := watcher.Reinspect(t.Context(), "known", before)
		if err != nil || len(after) != 3 || reads.Load() != 1 {
			t.Fatalf("%+v, %v, after %d reads", after, err, reads.Load())
		}
		whole, err := watcher.Inspect(t.Context(), "known")
		if err != nil || !reflect.DeepEqual(after, whole) {
			t.Errorf("what was known and what is read differ: %+v, %+v, %v", after, whole, err)
		}
		// What could not be read is no knowledge.
		after[0].Since, after[0].Session = time.Time{}, 0
		if after, err = watcher.Reinspect(t.Context(), "known", after); err != nil || !reflect.DeepEqual(after, whole) {
			t.Errorf("what was not readable stays so: %+v, %v", after, err)
		}
		for _, h := range holds[1:] {
			if err := h.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestReinspectNamesakes: what was read of a znode is not taken for what another of the
// same name says: that of a node lock's next holder, or one whose numbers began anew.
func TestReinspectNamesakes(t *testing.T) {
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
				again, err := a.Reinspect(t.Context(), path, before)
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
				after, err := a.Reinspect(t.Context(), path, before)
				if err != nil || len(after) != 1 || after[0].Token != next.Token() || after[0].Session != next.Session() {
					t.Errorf("%s: %+v, %v; token %d of session %d holds", path, after, err, next.Token(), next.Session())
				}
				release(t, next)
			}
		})
	}
}
