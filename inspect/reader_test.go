package inspect_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// startReader starts a server. It returns a client for holds, with its session, and a reader, with
// its session.
func startReader(t *testing.T, layout zklock.Layout) (c *zklock.Client, session, z *zk.Client, r *inspect.Reader) {
	t.Helper()
	srv := zktest.Start(t)
	session, z = srv.Dial(t), srv.Dial(t)
	c = zklock.New(session, nil)
	t.Cleanup(func() { _ = c.Close() })
	return c, session, z, reader(t, z, layout)
}

// TestTokenOfUnreadableEntryIsUnknown checks that the reader does not say that no hold has a token
// if it may not read the holder's entry.
func TestTokenOfUnreadableEntryIsUnknown(t *testing.T) {
	c, session, z, r := startReader(t, zklock.Layout{})
	w := inspect.NewWatcher(z, nil)
	defer w.Close()
	ann := zklock.New(session, &zklock.Options{ACL: zk.CreatorACL()})
	defer ann.Close()
	custom := zklock.New(session, &zklock.Options{ACL: zk.CreatorACL(),
		Layout: zklock.Layout{Prefix: "host", Exclusive: "-W-"}})
	defer custom.Close()
	locks := []*zklock.Lock{ann.Mutex("m"), ann.RWMutex("rw").Reader(), ann.Semaphore("sem", 2),
		custom.Mutex("custom")}
	for _, open := range []*zklock.Lock{c.Mutex("m"), c.Mutex("rw"), c.Semaphore("sem", 2),
		c.Mutex("custom")} {
		h, err := open.Acquire(t.Context()) // creates the lock's znode, which all may read
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := session.AddAuth(t.Context(), "digest", []byte("ann:secret")); err != nil {
		t.Fatal(err)
	}
	for _, lock := range locks {
		path := lock.Path()
		hidden, err := lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		l, err := r.Read(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		token := hidden.Token()
		var entries []zklock.Entry
		for _, e := range l.Entries {
			entries = append(entries, e.Entry)
		}
		_, revoked := r.Revoke(t.Context(), l, token)
		_, watched := w.Break(t.Context(), path, hidden.Node(), token)
		_, broken := inspect.Break(t.Context(), z, entries, token)
		for what, err := range map[string]error{
			"check": l.CheckToken(token), "revoke": revoked, "break": broken,
			"break of the watcher": watched,
		} {
			if !errors.Is(err, zk.ErrNoAuth) || errors.Is(err, inspect.ErrNotHeld) {
				t.Errorf("%s: %s: %v", path, what, err)
			}
		}
		if err := hidden.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if l, err = r.Read(t.Context(), path); err != nil || l.CheckToken(token) != nil {
			t.Errorf("%s: after the release: %+v, %v", path, l, err)
		}
	}
}

func TestReadAndRevokeEveryKind(t *testing.T) {
	c, session, _, r := startReader(t, zklock.Layout{})
	tests := []struct {
		path    string
		lock    *zklock.Lock
		kind    inspect.Kind
		permits int
		holders int
		layout  string
	}{
		{"/zklock/m", c.Mutex("m"), inspect.KindQueue, 0, 1, "zklock mutex"},
		{"/zklock/rw", c.RWMutex("rw").Reader(), inspect.KindQueue, 0, 1, "zklock reader"},
		{"/zklock/sem", c.Semaphore("sem", 5).Permits(2), inspect.KindSemaphore, 5, 2, "zklock permit"},
		{"/zklock/n", c.NodeLock("n"), inspect.KindNode, 0, 1, "zklock node"},
	}
	for _, tt := range tests {
		hold, err := tt.lock.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		revoked := hold.Revoked()
		// The client deletes its entry at a semaphore's gate after the grant.
		if err := session.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		l, err := r.Read(t.Context(), tt.path)
		if err != nil || l.Kind != tt.kind || l.Permits != tt.permits || len(l.Holders()) != tt.holders || l.Waiting() != 0 ||
			!slices.Equal(l.Layouts, []string{tt.layout}) {
			t.Fatalf("%s: %+v, %v", tt.path, l, err)
		}
		asked, err := r.Revoke(t.Context(), l, 0)
		if err != nil || len(asked) != tt.holders {
			t.Errorf("%s: asked %d, %v, want %d", tt.path, len(asked), err, tt.holders)
		}
		<-revoked
		if l, err = r.Read(t.Context(), tt.path); err != nil || !l.Holders()[0].Revoked {
			t.Errorf("%s: the release request is not shown: %+v, %v", tt.path, l, err)
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		l, err = r.Read(t.Context(), tt.path)
		if err != nil || len(l.Contenders()) != 0 || l.Permits != tt.permits {
			t.Errorf("%s after its release: %+v, %v", tt.path, l, err)
		}
		if asked, err := r.Revoke(t.Context(), l, 0); err != nil || len(asked) != 0 {
			t.Errorf("%s, which is free: asked %d, %v", tt.path, len(asked), err)
		}
	}
}

// Curator's semaphore does not store its size. The last permit of the client
// at its gate is not held. Its holders ignore release requests, so they are not asked.
func TestReadCuratorsSemaphore(t *testing.T) {
	for _, layout := range []zklock.Layout{{}, zklock.KazooLayout(), {Exclusive: "-W-", InParent: true}} {
		_, _, z, r := startReader(t, layout)
		createZnodes(t, z, "!/s/leases/"+leaseName+"0000000001", "!/s/leases/"+leaseName+"0000000002", "!/s/locks/"+mutexName+"0000000003")
		l, err := r.Read(t.Context(), "/s")
		if err != nil || outline(l) != "/s semaphore 1+1" || l.Permits != 0 {
			t.Fatalf("%v: %+v, %v", layout, l, err)
		}
		if _, err := z.Set(t.Context(), "/s/leases", []byte("99999999"), -1); err != nil {
			t.Fatal(err)
		}
		if l, err = r.Read(t.Context(), "/s"); err != nil || l.Permits != 99999999 {
			t.Errorf("%v: %+v, %v", layout, l, err)
		}
		asked, err := r.Revoke(t.Context(), l, 0)
		if err != nil || len(asked) != 0 {
			t.Errorf("%v: asked %d, %v, want none", layout, len(asked), err)
		}
		if data, _, err := z.Get(t.Context(), l.Entries[0].Node); err != nil || string(data) == "__REVOKE__" {
			t.Errorf("%v: the permit says %q, %v", layout, data, err)
		}
	}
}

// TestEntriesOfOneAcquireHaveOnePosition checks that both entries of an acquire in the mixed layout
// have the same position and count once, and that strays have none.
func TestEntriesOfOneAcquireHaveOnePosition(t *testing.T) {
	srv := zktest.Start(t)
	mixed := zklock.New(srv.Dial(t), &zklock.Options{Layout: zklock.MixedLayout()})
	defer mixed.Close()
	z := srv.Dial(t)
	hold, err := mixed.Mutex("m").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Release(t.Context())
	createZnodes(t, z, "!/zklock/m/"+mutexName+"0000000003", "!/zklock/m/"+readName+"0000000004", "/zklock/m/stray")
	l, err := reader(t, z, zklock.Layout{}).Read(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	var positions []int
	for _, e := range l.Entries {
		positions = append(positions, e.Position)
	}
	if want := []int{0, 0, 1, 2, -1}; !slices.Equal(positions, want) || l.Waiting() != 2 {
		t.Errorf("positions %v with %d waiters, want %v", positions, l.Waiting(), want)
	}
	if n := len(inspect.FirstPerAcquire(l.Holders())); n != 1 || inspect.CountSessions(l.Holders()) != 1 {
		t.Errorf("%d hold, want 1", n)
	}
}

// TestReadDetailCountsCrashedHolders checks that ReadDetail counts the records of lock delays.
func TestReadDetailCountsCrashedHolders(t *testing.T) {
	_, _, z, r := startReader(t, zklock.Layout{})
	gone := "_c_11111111-d9cb-469f-a165-70867728950e-lock-"
	createZnodes(t, z, "!/q/"+mutexName+"0000000001", "/q-held/"+mutexName, "/q-held/"+gone)
	for path, want := range map[string]int{"/q": 1, "/none": 0} {
		l, err := r.ReadDetail(t.Context(), path)
		if err != nil || l.Crashed != want || len(l.Warnings) != want {
			t.Errorf("%s: %+v, %v, want %d crashed", path, l, err, want)
		}
	}
	if _, err := r.ReadDetail(t.Context(), "/a//b"); err == nil {
		t.Error("an invalid name was read")
	}
}

// TestIsRecord checks that only what zklock keeps next to a lock is a record, whatever the name.
func TestIsRecord(t *testing.T) {
	c, _, z, r := startReader(t, zklock.Layout{})
	h, err := c.Mutex("/job").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := h.RecordRun(t.Context()); err != nil {
		t.Fatal(err)
	}
	createZnodes(t, z, "/q", "/q-held/"+mutexName, "/gone-held/"+mutexName, "/empty", "/empty-held", "/lone-held", "/both-held/"+mutexName, "!/both-held/"+mutexName+"0000000001",
		"!/door-held/"+mutexName+"0000000001", "/dir-held/door", "/x-done", "!/lock-done/"+mutexName+"0000000001", "/dir/-held/"+mutexName, "/dir/-done")
	for path, want := range map[string]bool{
		"/job-done": true, "/q-held": true, "/gone-held": true, "/empty-held": true,
		"/job": false, "/lone-held": false, "/both-held": false, "/door-held": false, "/dir-held": false, "/x-done": false, "/lock-done": false,
		"/dir/-held": false, "/dir/-done": false, "/none-done": false,
	} {
		if got, err := r.IsRecord(t.Context(), path); err != nil || got != want {
			t.Errorf("%s: %v, %v, want %v", path, got, err, want)
		}
	}
}

// TestRecordOfStrangerIsRecord: a client that may not use the lock may have written the record of
// the last run. It is no lock.
func TestRecordOfStrangerIsRecord(t *testing.T) {
	srv := zktest.Start(t)
	z := srv.Dial(t, func(o *zk.Options) {
		o.Auth = []zk.Auth{{Scheme: "digest", Data: []byte("ann:password")}}
	})
	for path, acl := range map[string][]zk.ACL{"/job": zk.CreatorACL(), "/job-done": zk.OpenACL()} {
		if _, _, err := z.Create(t.Context(), path, []byte(`{"began":1}`), acl, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := reader(t, z, zklock.Layout{}).IsRecord(t.Context(), "/job-done"); !got || err != nil {
		t.Errorf("%v, %v, want a record", got, err)
	}
}

// TestReaderRefusesTooManyChildren checks that a lock with more entries or strays than the limits
// is refused after a few reads, and a lock at the limits is read.
func TestReaderRefusesTooManyChildren(t *testing.T) {
	srv := zktest.Start(t, zktest.Volatile)
	z := srv.Dial(t)
	r := reader(t, z, zklock.Layout{})
	const wide, strays = 1000, 200
	r.Bound(wide, strays)
	for prefix, n := range map[string]int{
		"/strays/other": strays + 1, "/permits/leases/other": strays + 1, "/gate/locks/other": strays + 1, "/few/other": strays,
		"/queue/" + mutexName: wide + 1, "/semaphore/leases/" + leaseName: wide + 1, "/waiters/locks/" + leaseName: wide + 1,
		"/delays-held/" + mutexName: wide + 1, "/full/leases/" + leaseName: wide,
	} {
		for i := range n {
			createZnodes(t, z, fmt.Sprintf("%s%010d", prefix, i))
		}
	}
	createZnodes(t, z, "/gate/leases", "/waiters/leases", "/delays")
	for path, tt := range map[string]struct {
		says           string
		read, detail   bool // refused
		reads, entries int
	}{
		"/strays":    {"/strays: too many children for a lock: 201 are not entries", false, true, 8, strays + 1},
		"/permits":   {"/permits/leases: ", false, true, 8, strays + 1},
		"/gate":      {"/gate/locks: ", false, true, 8, strays + 1},
		"/few":       {"", false, false, strays + 20, strays},
		"/queue":     {"/queue: too many children for a lock: 1001; use a longer path", true, true, 8, 0},
		"/semaphore": {"/semaphore/leases: ", true, true, 8, 0},
		"/waiters":   {"/waiters/locks: ", true, true, 8, 0},
		"/delays":    {"/delays-held: ", true, true, 8, 0},
		"/full":      {"", false, false, wide + 20, wide},
	} {
		l, err := r.Read(t.Context(), path)
		if errors.Is(err, inspect.ErrTooManyChildren) != tt.read || !tt.read && (err != nil || len(l.Entries) != tt.entries) {
			t.Errorf("reading %s: %v", path, err)
		}
		before := srv.Server().Stats()
		_, err = r.ReadDetail(t.Context(), path)
		after := srv.Server().Stats()
		if errors.Is(err, inspect.ErrTooManyChildren) != tt.detail || tt.detail && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("details of %s: %v, want %q", path, err, tt.says)
		}
		if n := int(after.Received - before.Received); n > tt.reads {
			t.Errorf("details of %s took %d requests, want %d", path, n, tt.reads)
		}
	}
}

// TestHoldOfHiddenEntryIsStillHeld checks that a hold counts as held after another client took away
// the permission to read its entry: nobody can know that it was released.
func TestHoldOfHiddenEntryIsStillHeld(t *testing.T) {
	c, session, _, r := startReader(t, zklock.Layout{})
	h, err := c.Mutex("m").Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.Read(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	asked := l.Holders()
	if err := session.AddAuth(t.Context(), "digest", []byte("eve:x")); err != nil {
		t.Fatal(err)
	}
	if _, err := session.SetACL(t.Context(), h.Node(), zk.CreatorACL(), -1); err != nil {
		t.Fatal(err)
	}
	if l, err = r.Read(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	if held, _ := l.StillHeld(asked); len(held) != 1 || h.Err() != nil {
		t.Errorf("held %+v, but the hold is %v", held, h.Err())
	}
}
