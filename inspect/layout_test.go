package inspect_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestReaderLearnsLayoutFromOwners checks that a reader without the custom layout finds the lock,
// its holders, and its waiters by the data of their owners. It can revoke only with the layout.
func TestReaderLearnsLayoutFromOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		layout := zklock.Layout{Prefix: "host", Exclusive: "-W-", Shared: "-R-"}
		owner := zklock.New(srv.Dial(t), &zklock.Options{Layout: layout})
		defer owner.Close()
		rw := owner.RWMutex("/legacy/catalog")
		hold, err := rw.Reader().Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		waits := make(chan error, 1)
		go func() { // ends when the owner is closed
			_, err := rw.Writer().Acquire(t.Context())
			waits <- err
		}()
		synctest.Wait()
		z := srv.Dial(t)
		r := reader(t, z, zklock.Layout{})
		l, err := r.ReadDetail(t.Context(), "/legacy/catalog")
		if err != nil || outline(l) != "/legacy/catalog queue 1+1" || len(l.Warnings) > 0 || !slices.Equal(l.Layouts, []string{"zklock entry"}) {
			t.Fatalf("%+v, %v", l, err)
		}
		if first, second := l.Entries[0], l.Entries[1]; first.Node != hold.Node() || first.Mode != zklock.Shared || second.Mode != zklock.Exclusive || second.Position != 1 {
			t.Errorf("%+v", l.Entries)
		}
		found, err := r.List(t.Context(), "/", inspect.ListOptions{})
		if err != nil || !slices.Equal(outlines(found.Locks), []string{"/legacy/catalog queue 1+1"}) {
			t.Errorf("%q, %v", outlines(found.Locks), err)
		}
		if asked, err := r.Revoke(t.Context(), l, 0); !errors.Is(err, inspect.ErrLayoutUnknown) || len(asked) > 0 {
			t.Errorf("asked %v, %v", asked, err)
		}
		configured := reader(t, z, layout)
		l, err = configured.Read(t.Context(), "/legacy/catalog")
		if err != nil || l.CheckToken(0) != nil {
			t.Fatalf("%+v, %v", l, err)
		}
		if asked, err := configured.Revoke(t.Context(), l, 0); err != nil || len(asked) != 1 {
			t.Errorf("asked %v, %v", asked, err)
		}
		// Next to entries in another layout, they have no position.
		other := zklock.New(srv.Dial(t), nil)
		defer other.Close()
		if _, err := other.Mutex("/legacy/catalog").Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err = r.ReadDetail(t.Context(), "/legacy/catalog")
		if err != nil || outline(l) != "/legacy/catalog queue 1+0" || len(l.Warnings) != 1 || !strings.HasPrefix(l.Warnings[0], "2 entries in a custom layout") {
			t.Errorf("%s, %q, %v", outline(l), l.Warnings, err)
		}
		if err := errors.Join(owner.Close(), other.Close()); err != nil {
			t.Error(err)
		}
		<-waits
	})
}

// TestReaderLearnsLayoutFromOwnersInParent does the same for one of several locks in one parent,
// which only a reader of that lock finds.
func TestReaderLearnsLayoutFromOwnersInParent(t *testing.T) {
	srv := zktest.Start(t)
	layout := zklock.Layout{Prefix: "x-", Exclusive: "_lock_", Shared: "_read_", InParent: true}
	owner := zklock.New(srv.Dial(t), &zklock.Options{Layout: layout})
	defer owner.Close()
	z := srv.Dial(t)
	r := reader(t, z, zklock.Layout{})
	for _, kind := range []*zklock.Lock{owner.Mutex("/jobs/printer"), owner.RWMutex("/jobs/printer").Reader()} {
		hold, err := kind.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l, err := r.ReadDetail(t.Context(), "/jobs/printer")
		if err != nil || outline(l) != "/jobs/printer queue 1+0" || l.Entries[0].Node != hold.Node() || len(l.Warnings) > 0 {
			t.Errorf("%+v, %v", l, err)
		}
		if asked, err := r.Revoke(t.Context(), l, 0); !errors.Is(err, inspect.ErrLayoutUnknown) || len(asked) > 0 {
			t.Errorf("asked %v, %v", asked, err)
		}
		for _, free := range []string{"/jobs/print", "/jobs/x-printer", "/jobs/printer_lock_", "/jobs", "/printer", "/other/printer"} {
			if l, err := r.ReadDetail(t.Context(), free); err != nil || len(l.Contenders()) > 0 {
				t.Errorf("%s: %+v, %v", free, l, err)
			}
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l, err = r.ReadDetail(t.Context(), "/jobs/printer"); err != nil || len(l.Entries) > 0 {
			t.Errorf("after the release: %+v, %v", l, err)
		}
	}
}

// TestReadInParentWhileLockChangesHands: the first entry that the reader finds ends before it is
// read. The next one holds, also if the reader's list lacks it.
func TestReadInParentWhileLockChangesHands(t *testing.T) {
	const pause = time.Second
	for what, arrival := range map[string]time.Duration{"before the list": 0, "after the list": pause / 3} {
		t.Run(what, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { readDuringHandover(t, arrival, pause) }) })
	}
}

// readDuringHandover reads a lock, and pauses the read of the only holder's entry. The next client
// arrives this long after the beginning of the pause, or before it, and holds at the end of the pause.
func readDuringHandover(t *testing.T, arrival, pause time.Duration) {
	srv := zktest.Start(t)
	layout := zklock.Layout{Exclusive: "_lock_", InParent: true}
	var owners [2]*zklock.Client
	for i := range owners {
		owners[i] = zklock.New(srv.Dial(t), &zklock.Options{Layout: layout})
		defer owners[i].Close()
	}
	hold, err := owners[0].Mutex("/jobs/printer").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next := make(chan error, 1)
	arrive := func() {
		_, err := owners[1].Mutex("/jobs/printer").Acquire(t.Context())
		next <- err
	}
	if arrival == 0 {
		go arrive() // ends at once
	}
	synctest.Wait()
	looking, paused := srv.Route(t), false
	looking.DelayFunc(func(f zktest.Frame) time.Duration {
		if f.Direction == zktest.ToServer && f.Op == "exists" && f.Path == hold.Node() && !paused {
			paused = true
			return pause
		}
		return 0
	})
	if arrival > 0 {
		time.AfterFunc(arrival, arrive)
	}
	time.AfterFunc(pause/2, func() {
		if err := errors.Join(hold.ReleaseAsync(), <-next); err != nil {
			t.Error(err)
		}
	})
	l, err := reader(t, looking.Dial(t), zklock.Layout{}).Read(t.Context(), "/jobs/printer")
	if err != nil || outline(l) != "/jobs/printer queue 1+0" {
		t.Errorf("%+v, %v", l, err)
	}
}

// TestWatcherReadsStrayWithChildAgain: the znode of a lock below another lock is a stray only until
// it has an entry.
func TestWatcherReadsStrayWithChildAgain(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		sc.acquire(sc.locks.Mutex("a"))
		recipe := func() string {
			for _, l := range sc.s.Snapshot().Locks {
				for _, e := range l.Entries {
					if l.Path == "/zklock/a" && e.Name == "b" {
						return e.Recipe.String()
					}
				}
			}
			return ""
		}
		if _, _, err := sc.srv.Dial(t).Create(t.Context(), "/zklock/a/b", nil, zk.OpenACL(), zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		sc.await("the znode is a stray", func() bool { return recipe() == "-" })
		sc.acquire(sc.locks.Mutex("a/b"))
		sc.await("the znode is that of a lock", func() bool { return recipe() == "parent" })
	})
}

// TestWatcherFindsCustomLayout checks that a watcher without the custom layout
// shows a lock that is acquired after its listing, and follows its queue.
func TestWatcherFindsCustomLayout(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		owner := zklock.New(sc.srv.Dial(t), &zklock.Options{Layout: zklock.Layout{Exclusive: "-W-", Shared: "-R-"}})
		defer owner.Close()
		shows := func(want ...string) {
			t.Helper()
			sc.await(fmt.Sprint(want), func() bool { return slices.Equal(outlines(sc.s.Snapshot().Locks), want) })
		}
		lock := owner.Mutex("catalog")
		for range 2 {
			hold := sc.acquire(lock)
			shows("/zklock/catalog queue 1+0")
			waits := sc.enqueue(lock)
			shows("/zklock/catalog queue 1+1")
			sc.release(hold)
			shows("/zklock/catalog queue 1+0")
			sc.release(<-waits)
			shows()
		}
	})
}

// TestParentOfLocksIsNoLock checks that an entry in a custom layout directly below /zklock
// neither makes /zklock a lock nor makes the watcher read all znodes there.
func TestParentOfLocksIsNoLock(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		z := sc.srv.Dial(t)
		create := func(path, data string, mode zk.CreateMode) {
			t.Helper()
			if _, _, err := z.Create(t.Context(), path, []byte(data), zk.OpenACL(), mode); err != nil && !errors.Is(err, zk.ErrNodeExists) {
				t.Fatal(err)
			}
		}
		create("/zklock", "", zk.ModePersistent)
		for i := range 100 {
			create(fmt.Sprintf("/zklock/lock%d", i), "", zk.ModePersistent)
		}
		time.Sleep(time.Minute)
		before := sc.s.Status().Reads
		create("/zklock/x-W-0000000001", `{"version":"zklock 9","layout":{"exclusive":"-W-"}}`, zk.ModeEphemeral)
		time.Sleep(time.Minute)
		if reads := sc.s.Status().Reads - before; reads > 5 || len(sc.s.Snapshot().Locks) > 0 {
			t.Errorf("%d reads; locks: %q", reads, outlines(sc.s.Snapshot().Locks))
		}
		found, err := reader(t, z, zklock.Layout{}).List(t.Context(), "/", inspect.ListOptions{})
		if err != nil || len(found.Locks) > 0 {
			t.Errorf("%q, %v", outlines(found.Locks), err)
		}
	})
}

// TestFalseLayoutsAreIgnored checks that a layout in an entry's data is ignored if it does not
// match the entry, or is invalid.
func TestFalseLayoutsAreIgnored(t *testing.T) {
	z := zktest.Start(t).Dial(t)
	if _, _, err := z.Create(t.Context(), "/false", nil, nil, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
	for i, layout := range []string{
		`{"exclusive":"-W-"}`, `{"exclusive":"-Z-","shared":"-Z-"}`, `{"exclusive":"0"}`, `{"exclusive":"/"}`, `{"shared":"-W-"}`, `{"prefix":"x"}`,
		`{"exclusive":"` + strings.Repeat("x", 600) + `"}`, `{"exclusive":"-Z-","in_parent":true}`, `7`, `null`,
	} {
		data := fmt.Sprintf(`{"host":"h","pid":7,"version":"zklock 0.1.0","layout":%s}`, layout)
		if _, _, err := z.Create(t.Context(), fmt.Sprintf("/false/x%d-Z-", i), []byte(data), nil, zk.ModeEphemeralSequential); err != nil {
			t.Fatal(err)
		}
	}
	r := reader(t, z, zklock.Layout{})
	l, err := r.Read(t.Context(), "/false")
	if err != nil || len(l.Contenders()) > 0 || l.CheckToken(0) != nil {
		t.Errorf("%+v, %v", l, err)
	}
}

// putDeclared creates entries whose data declare a layout that this version refuses, as a client
// of another version does.
func putDeclared(t *testing.T, z *zk.Client, layout string, nodes ...string) {
	t.Helper()
	data := []byte(`{"host":"old","pid":7,"version":"zklock 0.1.9","layout":` + layout + `}`)
	for _, node := range nodes {
		_, _, err := z.Create(t.Context(), node, data, zk.OpenACL(), zk.ModeEphemeralSequential)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestDeclaredLayoutWithKnownNames checks that a reader neither hides nor acts on entries whose
// names are known although their data declare a custom layout: their client may hold while the
// names say that it waits.
func TestDeclaredLayoutWithKnownNames(t *testing.T) {
	const declared = `{"prefix":"host-","exclusive":"lock-","shared":"read-"}`
	z := zktest.Start(t).Dial(t)
	createZnodes(t, z, "/a/book", "/a/catalog", "/jobs", "/more")
	putDeclared(t, z, declared, "/a/catalog/host-read-", "/a/catalog/host-lock-")
	putDeclared(t, z, `{"exclusive":"-lock-","in_parent":true}`,
		"/jobs/printer-lock-", "/jobs/scanner-lock-")
	r := reader(t, z, zklock.Layout{})
	warns := func(l *inspect.Lock) bool {
		return len(l.Warnings) == 1 && strings.HasPrefix(l.Warnings[0], "2 entries in a custom layout")
	}
	for _, name := range []string{"/a/catalog", "/jobs"} {
		l, err := r.ReadDetail(t.Context(), name)
		if err != nil || !warns(l) {
			t.Errorf("%s: warnings %q, %v", name, l.Warnings, err)
		}
		asked, err := r.Revoke(t.Context(), l, 0)
		if !errors.Is(err, inspect.ErrLayoutUnknown) || len(asked) > 0 {
			t.Errorf("%s: asked %v, %v", name, asked, err)
		}
	}
	found, err := r.List(t.Context(), "/", inspect.ListOptions{})
	if err != nil || len(found.Locks) != 2 || !warns(found.Locks[0]) || !warns(found.Locks[1]) {
		t.Errorf("%q, %v", outlines(found.Locks), err)
	}
	// Where no entry contends by its name, the data declare a layout that no client accepts.
	putDeclared(t, z, `{"exclusive":"_W_","shared":"-lock-","in_parent":true}`, "/more/printer_W_")
	if l, err := r.Read(t.Context(), "/more/printer"); err != nil || len(l.Entries) > 0 {
		t.Errorf("%+v, %v", l, err)
	}
	// A shorter marker parses the same entries, so that a user can act on them.
	shorter := reader(t, z, zklock.Layout{Exclusive: "lock-", Shared: "read-"})
	l, err := shorter.ReadDetail(t.Context(), "/a/catalog")
	if err != nil || outline(l) != "/a/catalog queue 1+1" || len(l.Warnings) > 0 {
		t.Fatalf("%+v, %v", l, err)
	}
	asked, err := shorter.Revoke(t.Context(), l, 0)
	if err != nil || len(asked) != 1 || asked[0].Mode != zklock.Shared {
		t.Errorf("asked %v, %v", asked, err)
	}
	// In that layout, a writer's entry is a stray. Without a layout, it is the holder.
	putDeclared(t, z, `{}`, "/a/book/_c_0f8fad5b-d9cb-469f-a165-70867728950e-__WRIT__",
		"/a/book/app-lock-")
	if l, err = shorter.Read(t.Context(), "/a/book"); err != nil || outline(l) != "/a/book queue 1+0" {
		t.Fatalf("%+v, %v", l, err)
	}
	asked, err = shorter.Revoke(t.Context(), l, 0)
	if err != nil || len(asked) != 1 || asked[0].Name != l.Entries[0].Name {
		t.Errorf("asked %v, %v", asked, err)
	}
}

// TestForgedLayoutOfOneEntryStopsNoAction: a client that may only create entries gives one a name
// of a known layout and data that declare a custom layout. The reader acts on the other entries of
// the lock, not on this one.
func TestForgedLayoutOfOneEntryStopsNoAction(t *testing.T) {
	z := zktest.Start(t).Dial(t)
	c := zklock.New(z, nil)
	defer c.Close()
	const prefix = "_c_0f8fad5b-d9cb-469f-a165-70867728950e-"
	const lock = `{"prefix":"x","exclusive":"-lock-"}`
	const read = `{"prefix":"` + prefix + `","exclusive":"-W-","shared":"__READ__"}`
	for _, tt := range []struct {
		lock         *zklock.Lock
		name, layout string // of the forged entry
		holds        bool   // by its name
		downgrade    bool
	}{
		{c.Mutex("/forged/mutex"), "x-lock-", lock, false, false},
		{c.RWMutex("/forged/writer").Writer(), "x-lock-", lock, false, false},
		{c.Semaphore("/forged/semaphore", 2), "x-lock-", lock, true, false},
		{c.Semaphore("/forged/permit", 2), prefix + "__READ__", read, true, false},
		{c.RWMutex("/forged/reader").Reader(), prefix + "__READ__", read, true, false},
		{c.RWMutex("/forged/downgraded").Writer(), prefix + "__READ__", read, true, true},
	} {
		path := tt.lock.Path()
		hold, err := tt.lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if tt.downgrade {
			if err := hold.Downgrade(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		data := []byte(`{"version":"zklock x","layout":` + tt.layout + `}`)
		node, stat, err := z.Create(t.Context(), path+"/"+tt.name, data, zk.OpenACL(),
			zk.ModeEphemeralSequential)
		if err != nil {
			t.Fatal(err)
		}
		r := reader(t, z, zklock.Layout{})
		l, err := r.Read(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		warned := func(w string) bool { return strings.HasPrefix(w, "1 entry in a custom layout") }
		if !slices.ContainsFunc(l.Warnings, warned) {
			t.Errorf("%s: the warnings are %q", path, l.Warnings)
		}
		i := slices.IndexFunc(l.Entries, func(e inspect.Entry) bool { return e.Node == node })
		if i < 0 || l.Entries[i].Holder != tt.holds {
			t.Fatalf("%s: the forged entry is missing, or does not hold=%t: %+v", path, tt.holds, l.Entries)
		}
		asked, err := r.Revoke(t.Context(), l, hold.Token())
		honest := func(e inspect.Entry) bool { return e.Node == hold.Node() }
		if err != nil || !slices.ContainsFunc(asked, honest) {
			t.Errorf("%s: asked %v, %v", path, asked, err)
		}
		asked, err = r.Revoke(t.Context(), l, stat.Czxid)
		if !errors.Is(err, inspect.ErrLayoutUnknown) || len(asked) > 0 {
			t.Errorf("%s: asked %v for the forged entry, %v", path, asked, err)
		}
		if _, err = r.Revoke(t.Context(), l, 0); errors.Is(err, inspect.ErrLayoutUnknown) != tt.holds {
			t.Errorf("%s: asked all holders: %v", path, err)
		}
		if tt.holds { // it can also claim the token of the other hold, which no other client has
			claim := fmt.Appendf(nil, `{"version":"zklock x","token":%d,"layout":%s}`,
				hold.Token(), tt.layout)
			if _, err := z.Set(t.Context(), node, claim, -1); err != nil {
				t.Fatal(err)
			}
		}
		if l, err = r.Read(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		asked, err = r.Revoke(t.Context(), l, hold.Token())
		forged := func(e inspect.Entry) bool { return e.Node == node }
		if err != nil || !slices.ContainsFunc(asked, honest) || slices.ContainsFunc(asked, forged) {
			t.Errorf("%s: asked %v of %+v, %v", path, asked, l.Entries, err)
		}
		holders := l.HoldersWith(hold.Token())
		if !slices.ContainsFunc(holders, honest) || slices.ContainsFunc(holders, forged) {
			t.Errorf("%s: %v hold", path, holders)
		}
		w := inspect.NewWatcher(z, nil)
		broken, err := w.Break(t.Context(), path, hold.Node(), hold.Token())
		if err != nil || !slices.ContainsFunc(broken, honest) ||
			slices.ContainsFunc(broken, forged) {
			t.Errorf("%s: broke %v, %v", path, broken, err)
		}
		_ = w.Close()
		if l, err = r.Read(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		i = slices.IndexFunc(l.Entries, func(e inspect.Entry) bool { return e.Node == node })
		if i < 0 || l.CheckToken(l.Entries[i].Token) == nil {
			t.Errorf("%s: the reader acts on the forged entry: %+v", path, l.Entries)
		}
		if err := l.CheckToken(hold.Token()); (err != nil) != tt.holds {
			t.Errorf("%s: while only the forged entry claims the token: %v", path, err)
		}
		held, released := l.StillHeld([]inspect.Entry{{Entry: zklock.Entry{Token: hold.Token()}}})
		if len(held) > 0 || len(released) == 0 {
			t.Errorf("%s: the hold of the forged entry counts as the broken one", path)
		}
		_ = hold.Release(t.Context()) // its entry is gone
	}
}

// TestReadInParentIsBounded: every client that may create znodes in the parent of a lock can name
// them like its entries.
func TestReadInParentIsBounded(t *testing.T) {
	srv := zktest.Start(t)
	stranger, z := srv.Dial(t), srv.Dial(t)
	for _, node := range []string{"/jobs", "/jobs/locked"} {
		if _, _, err := stranger.Create(t.Context(), node, nil, zk.OpenACL(), zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		node := fmt.Sprintf("/jobs/%dprinter_lock_0000000001", i)
		ops := []zk.Op{zk.CreateOp(node, nil, zk.OpenACL(), zk.ModePersistent)}
		for j := range 500 {
			ops = append(ops, zk.CreateOp(fmt.Sprint(node, "/", j), nil, zk.OpenACL(), zk.ModePersistent))
		}
		if _, err := stranger.Multi(t.Context(), ops...); err != nil {
			t.Fatal(err)
		}
	}
	r := reader(t, z, zklock.Layout{})
	before := srv.Server().Stats().Received
	if l, err := r.ReadDetail(t.Context(), "/jobs/printer"); err != nil || len(l.Entries) > 0 {
		t.Errorf("%+v, %v", l, err)
	}
	if n := srv.Server().Stats().Received - before; n > 30 {
		t.Errorf("%d requests", n)
	}
	layout := zklock.Layout{Exclusive: "_lock_", InParent: true}
	attacker := zklock.New(stranger, &zklock.Options{Layout: layout})
	defer attacker.Close()
	if _, err := attacker.Mutex("/jobs/locked").Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	if l, err := r.ReadDetail(t.Context(), "/jobs/locked"); err != nil || len(l.Entries) > 0 {
		t.Errorf("a znode in the parent of a lock changes what the lock shows: %+v, %v", l, err)
	}
}

// TestDeclaredLayoutHidesNoLock: the data of a znode can declare a layout in which the znode of a
// lock next to it has the name of an entry.
func TestDeclaredLayoutHidesNoLock(t *testing.T) {
	srv := zktest.Start(t)
	c, z := zklock.New(srv.Dial(t), nil), srv.Dial(t)
	defer c.Close()
	if _, err := c.Mutex("team/backup-1701388800").Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	data := []byte(`{"version":"zklock x","host":"h","layout":{"exclusive":"backup-"}}`)
	for i := range 2 {
		node := fmt.Sprintf("/zklock/team/backup-%010d", i)
		_, _, err := z.Create(t.Context(), node, data, zk.OpenACL(), zk.ModeEphemeral)
		if err != nil {
			t.Fatal(err)
		}
	}
	r := reader(t, z, zklock.Layout{})
	want := []string{"/zklock/team queue 1+2", "/zklock/team/backup-1701388800 queue 1+0"}
	found, err := r.List(t.Context(), "/zklock", inspect.ListOptions{})
	if err != nil {
		t.Error(err)
	}
	wantLocks(t, found.Locks, want...)
	closed := []zk.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: "root:x"}}
	if _, err := z.SetACL(t.Context(), "/zklock/team/backup-1701388800", closed, -1); err != nil {
		t.Fatal(err)
	}
	found, err = r.List(t.Context(), "/zklock", inspect.ListOptions{})
	if !errors.Is(err, inspect.ErrUnreadable) {
		t.Errorf("%v, want an unreadable path", err)
	}
	wantLocks(t, found.Locks, want[0])
}

// TestZnodesHideNoCustomLayout: a client that may create znodes below the path of a lock in a custom
// layout cannot hide the lock from a listing without the layout.
func TestZnodesHideNoCustomLayout(t *testing.T) {
	layout := zklock.Layout{Exclusive: "-W-"}
	closed := []zk.ACL{{Perms: zk.PermAll, Scheme: "digest", ID: "root:x"}}
	for what, tt := range map[string]struct {
		node   string // of another client
		number int    // of such znodes
		acl    []zk.ACL
		omits  bool // the listing cannot know whether there is a lock
	}{
		"none":               {},
		"empty":              {node: "/zklock/m/a%d-0000000000", number: 1},
		"ephemeral":          {node: "!/zklock/m/a%d-0000000000", number: 1},
		"named like entries": {node: "!/zklock/m/-W-000000000%d", number: 1},
		"many persistent":    {node: "/zklock/m/%d-0000000000", number: 100},
		"some ephemeral":     {node: "!/zklock/m/%d-0000000000", number: 50},
		"too many ephemeral": {node: "!/zklock/m/%d-0000000000", number: 70, omits: true},
		"unreadable":         {node: "!/zklock/m/a%d-0000000000", number: 1, acl: closed},
	} {
		srv := zktest.Start(t)
		c, z := zklock.New(srv.Dial(t), &zklock.Options{Layout: layout}), srv.Dial(t)
		defer c.Close()
		var hold *zklock.Hold
		for range 2 { // the second one has a sequence number above 0
			if hold != nil {
				_ = hold.Release(t.Context())
			}
			var err error
			if hold, err = c.Mutex("m").Acquire(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range tt.number {
			createZnodes(t, z, fmt.Sprintf(tt.node, i))
			if tt.acl == nil {
				continue
			}
			node := strings.TrimPrefix(fmt.Sprintf(tt.node, i), "!")
			if _, err := z.SetACL(t.Context(), node, tt.acl, -1); err != nil {
				t.Fatal(err)
			}
		}
		r := reader(t, srv.Dial(t), zklock.Layout{})
		omits := func(err error) bool {
			return err != nil && strings.Contains(err.Error(), "first /zklock/m;")
		}
		found, err := r.List(t.Context(), "/", inspect.ListOptions{})
		if omits(err) != tt.omits || errors.Is(err, inspect.ErrTooMany) != tt.omits {
			t.Errorf("%s: the listing ended with %v", what, err)
		}
		at := func(l *inspect.Lock) bool { return l.Path == "/zklock/m" }
		if slices.ContainsFunc(found.Locks, at) == tt.omits {
			t.Errorf("%s: found %q", what, outlines(found.Locks))
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = r.List(t.Context(), "/", inspect.ListOptions{})
		if tt.acl != nil && !(omits(err) && errors.Is(err, inspect.ErrUnreadable)) {
			t.Errorf("%s: the listing without the lock ended with %v", what, err)
		}
	}
}
