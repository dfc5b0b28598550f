package security

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// dialAs connects a client with the digest identity of a user, or with none if user is empty.
func dialAs(t *testing.T, srv *zktest.Server, user string, acl []zk.ACL) *zklock.Client {
	t.Helper()
	return dialWith(t, srv, user, zklock.Options{ACL: acl})
}

// dialWith is dialAs with options.
func dialWith(t *testing.T, srv *zktest.Server, user string, o zklock.Options) *zklock.Client {
	t.Helper()
	o.SessionTimeout, o.DialContext = timeout, srv.DialContext
	if user != "" {
		o.Auth = []zk.Auth{{Scheme: "digest", Data: []byte(user + ":password")}}
	}
	c, err := zklock.Dial(t.Context(), srv.Servers(), &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// dialPlain connects a client of package zk with an identity.
func dialPlain(t *testing.T, srv *zktest.Server, user string) *zk.Client {
	t.Helper()
	return srv.Dial(t, func(o *zk.Options) {
		if user != "" {
			o.Auth = []zk.Auth{{Scheme: "digest", Data: []byte(user + ":password")}}
		}
	})
}

// create creates a persistent znode.
func create(t *testing.T, op *zk.Client, path string, acl []zk.ACL) {
	t.Helper()
	if _, _, err := op.Create(t.Context(), path, nil, acl, zk.ModePersistent); err != nil {
		t.Fatal(err)
	}
}

func acquire(t *testing.T, l *zklock.Lock) *zklock.Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h, err := l.Acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// closed waits for a channel to be closed.
func closed(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("the channel was not closed")
	}
}

// lostSoon fails the test unless the hold reports its loss within an eighth of the session
// timeout and a round trip.
func lostSoon(t *testing.T, h *zklock.Hold) {
	t.Helper()
	begun := time.Now()
	closed(t, h.Done())
	if took := time.Since(begun); took > timeout/8+time.Second/10 || !errors.Is(h.Err(), zklock.ErrLost) {
		t.Errorf("after %v: %v", took, h.Err())
	}
}

// TestDeletePermissionBreaksLock checks that a user with the delete permission of the lock's
// znode can break the lock, for any ACL of the entries, and that the holder reports the loss.
func TestDeletePermissionBreaksLock(t *testing.T) {
	for name, acl := range map[string][]zk.ACL{
		"open": nil, "entries that only their creator may change": append(zk.CreatorACL(), zk.ReadACL()...),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				create(t, dialPlain(t, srv, ""), "/open", nil)
				h := acquire(t, dialAs(t, srv, "ann", acl).Mutex("/open"))
				if err := dialPlain(t, srv, "").Delete(t.Context(), h.Node(), -1); err != nil {
					t.Fatalf("another user's delete: %v", err)
				}
				lostSoon(t, h)
			})
		})
	}
}

// TestStrangerCannotReplaceClosedZnode checks that a stranger can replace a closed znode without
// children by one with another ACL, and then break the locks below it, and that a permanent child
// prevents that. Options.ACL keeps the entries closed, but the stranger can break the lock if it
// also creates the lock's znode.
func TestStrangerCannotReplaceClosedZnode(t *testing.T) {
	type attack struct {
		keep bool     // /team has a permanent child
		acl  []zk.ACL // of the client
		lock bool     // the stranger creates the lock's znode, too
	}
	for name, row := range map[string]struct {
		attack
		replaces, reads, breaks bool
	}{
		"permanent child":                {attack{keep: true}, false, false, false},
		"permanent child, with an ACL":   {attack{true, zk.CreatorACL(), true}, false, false, false},
		"no child":                       {attack{}, true, true, true},
		"no child, with an ACL":          {attack{acl: zk.CreatorACL()}, true, false, false},
		"no child, with an ACL, created": {attack{acl: zk.CreatorACL(), lock: true}, true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				team, eve := dialPlain(t, srv, "team"), dialPlain(t, srv, "eve")
				create(t, team, "/team", zk.CreatorACL())
				if row.keep {
					create(t, team, "/team/keep", zk.CreatorACL())
				}
				err := eve.Delete(t.Context(), "/team", -1)
				if row.replaces && err != nil || !row.replaces && !errors.Is(err, zk.ErrNotEmpty) {
					t.Fatalf("the stranger deletes the closed znode: %v", err)
				}
				if row.replaces {
					create(t, eve, "/team", zk.OpenACL())
				}
				if row.replaces && row.lock {
					create(t, eve, "/team/a", zk.OpenACL())
				}
				h := acquire(t, dialAs(t, srv, "team", row.acl).Mutex("/team/a"))
				_, _, err = eve.Get(t.Context(), h.Node())
				if row.reads && err != nil || !row.reads && !errors.Is(err, zk.ErrNoAuth) {
					t.Errorf("the stranger reads the entry: %v", err)
				}
				err = eve.Delete(t.Context(), h.Node(), -1)
				if row.breaks && err != nil || !row.breaks && !errors.Is(err, zk.ErrNoAuth) {
					t.Errorf("the stranger deletes the entry: %v", err)
				}
				if row.breaks {
					lostSoon(t, h)
				}
			})
		})
	}
}

// TestRecommendedACL checks the setup that SECURITY.md recommends: a znode that only the team
// may use, with a permanent child. Below it, locks work after crashes, and other users cannot see,
// acquire, break, or revoke them. Tools do not take the child for a lock.
func TestRecommendedACL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		op := dialPlain(t, srv, "team")
		create(t, op, "/team", zk.CreatorACL())
		create(t, op, "/team/keep", zk.CreatorACL())
		first, second := dialAs(t, srv, "team", zk.CreatorACL()), dialAs(t, srv, "team", zk.CreatorACL())
		h := acquire(t, first.Mutex("/team/a/b"))
		if _, err := second.Mutex("/team/a/b").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrLocked) {
			t.Errorf("another client of the team: %v", err)
		}
		for _, user := range []string{"", "eve"} {
			outsiderFails(t, srv, user, h)
		}
		if err := h.Err(); err != nil {
			t.Fatalf("after the attempts of other users: %v", err)
		}
		if err := srv.ExpireSession(h.Session()); err != nil { // as after a crash
			t.Fatal(err)
		}
		closed(t, h.Done())
		next := acquire(t, second.Mutex("/team/a/b"))
		if next.Token() <= h.Token() {
			t.Errorf("token %d after %d", next.Token(), h.Token())
		}
		time.Sleep(timeout) // the first client has a session again
		if _, err := first.Mutex("/team/a/b").Revoke(t.Context()); err != nil {
			t.Errorf("a release request of the team: %v", err)
		}
		closed(t, next.Revoked())
		inParent := zklock.Layout{Prefix: "p-", Exclusive: "-W-", InParent: true}
		other := zklock.Options{ACL: zk.CreatorACL(), Layout: inParent}
		acquire(t, dialWith(t, srv, "team", other).Mutex("/team/c"))
		for want, layout := range map[string]zklock.Layout{"/team/a/b": {}, "/team/c": inParent} {
			r := inspect.NewReader(op, layout)
			listed, err := r.List(t.Context(), "/team", inspect.ListOptions{})
			if err != nil || len(listed.Locks) != 1 || listed.Locks[0].Path != want {
				t.Errorf("listed %+v, %v, want %s", listed.Locks, err, want)
			}
			_ = r.Close()
		}
		unused, err := inspect.Collector{Client: op, Prefix: "/"}.Find(t.Context())
		if err != nil || len(unused) > 0 {
			t.Errorf("gc found %+v, %v", unused, err)
		}
	})
}

// outsiderFails fails the test if a user outside the team can affect a hold.
func outsiderFails(t *testing.T, srv *zktest.Server, user string, h *zklock.Hold) {
	t.Helper()
	op, l := dialPlain(t, srv, user), dialAs(t, srv, user, nil).Mutex("/team/a/b")
	for what, do := range map[string]func() error{
		"delete":  func() error { return op.Delete(t.Context(), h.Node(), -1) },
		"set":     func() error { _, err := op.Set(t.Context(), h.Node(), nil, -1); return err },
		"get":     func() error { _, _, err := op.Get(t.Context(), h.Node()); return err },
		"set ACL": func() error { _, err := op.SetACL(t.Context(), "/team", zk.OpenACL(), -1); return err },
		"keep":    func() error { return op.Delete(t.Context(), "/team/keep", -1) },
		"list":    func() error { _, _, err := op.Children(t.Context(), "/team/a/b"); return err },
		"create": func() error {
			_, _, err := op.Create(t.Context(), "/team/a/b/_c_x-lock-", nil, nil, zk.ModeEphemeralSequential)
			return err
		},
		"acquire": func() error { _, err := l.TryAcquire(t.Context()); return err },
		"revoke":  func() error { _, err := l.Revoke(t.Context()); return err },
		"inspect": func() error { _, err := l.Inspect(t.Context()); return err },
	} {
		if err := do(); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("user %q: %s: %v", user, what, err)
		}
	}
}

// aclOf returns the ACL of a znode.
func aclOf(t *testing.T, op *zk.Client, path string) []zk.ACL {
	t.Helper()
	acl, _, err := op.GetACL(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	return acl
}

// granted returns the permissions of a user in an ACL.
func granted(acl []zk.ACL, scheme, user string) (perms zk.Perm) {
	for _, a := range acl {
		if a.Scheme == scheme && (a.ID == user || strings.HasPrefix(a.ID, user+":")) {
			perms |= a.Perms
		}
	}
	return perms
}

// TestEntriesInheritRestrictionsOfParent checks a client with credentials and no Options.ACL.
// Other users cannot read or change its znodes, even if they know the names.
func TestEntriesInheritRestrictionsOfParent(t *testing.T) {
	for name, lock := range map[string]func(c *zklock.Client) *zklock.Lock{
		"mutex":           func(c *zklock.Client) *zklock.Lock { return c.Mutex("/closed") },
		"new mutex":       func(c *zklock.Client) *zklock.Lock { return c.Mutex("/closed/new/one") },
		"reader":          func(c *zklock.Client) *zklock.Lock { return c.RWMutex("/closed/rw").Reader() },
		"downgraded":      func(c *zklock.Client) *zklock.Lock { return c.RWMutex("/closed/rw").Writer() },
		"node lock":       func(c *zklock.Client) *zklock.Lock { return c.NodeLock("/closed/node") },
		"semaphore":       func(c *zklock.Client) *zklock.Lock { return c.Semaphore("/closed/sem", 2) },
		"all":             func(c *zklock.Client) *zklock.Lock { return zklock.All(c.Mutex("/closed/a"), c.Mutex("/closed/b")) },
		"lock with delay": func(c *zklock.Client) *zklock.Lock { return c.Mutex("/closed/delayed") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				team := dialPlain(t, srv, "team")
				create(t, team, "/closed", zk.CreatorACL())
				o := zklock.Options{}
				if name == "lock with delay" {
					o.LockDelay = time.Second
				}
				h := acquire(t, lock(dialWith(t, srv, "team", o)))
				if name == "downgraded" {
					if err := h.Downgrade(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				eve := dialPlain(t, srv, "eve")
				synctest.Wait() // until zklock deletes the entry at a semaphore's gate
				for _, path := range descendants(t, team, "/closed") {
					if got := aclOf(t, team, path); granted(got, "digest", "team") != zk.PermAll || granted(got, "world", "anyone") != 0 {
						t.Errorf("%s: %v", path, got)
					}
					if _, _, err := eve.Get(t.Context(), path); !errors.Is(err, zk.ErrNoAuth) {
						t.Errorf("another user's read of %s: %v", path, err)
					}
					if _, err := eve.Set(t.Context(), path, nil, -1); !errors.Is(err, zk.ErrNoAuth) {
						t.Errorf("another user's write to %s: %v", path, err)
					}
				}
			})
		})
	}
}

// descendants returns the paths of all znodes below a path. It fails the test if there are none.
func descendants(t *testing.T, op *zk.Client, path string) (all []string) {
	t.Helper()
	children, _, err := op.Children(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	for _, child := range children {
		all = append(append(all, path+"/"+child), descendants(t, op, path+"/"+child)...)
	}
	if path == "/closed" && len(all) == 0 {
		t.Fatal("there are no znodes")
	}
	return all
}

// TestIdentitiesShareOpenParent checks clients with different credentials below a parent that
// all may use: each sees the owner of the lock, and a release grants the next waiter at once.
func TestIdentitiesShareOpenParent(t *testing.T) {
	everybody := []zk.ACL{{Perms: zk.PermRead | zk.PermCreate | zk.PermDelete, Scheme: "world", ID: "anyone"}}
	for name, acl := range map[string][]zk.ACL{"open": zk.OpenACL(), "open for use": everybody, "missing": nil} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				path := "/shared"
				if acl == nil {
					path = "shared" // below /zklock, which the first client creates
				} else {
					create(t, dialPlain(t, srv, ""), path, acl)
				}
				ann, bob := dialWith(t, srv, "ann", zklock.Options{}), dialWith(t, srv, "bob", zklock.Options{})
				for range 3 { // with a new path, then with an existing one
					h := acquire(t, ann.Mutex(path))
					next := make(chan *zklock.Hold, 1)
					go func() {
						if h, err := bob.Mutex(path).Acquire(t.Context()); err != nil {
							t.Error(err)
							close(next)
						} else {
							next <- h
						}
					}()
					synctest.Wait()
					entries, err := bob.Inspect(t.Context(), path)
					if err != nil || len(entries) != 2 || entries[0].Owner.Host == "" {
						t.Fatalf("%v, %v", entries, err)
					}
					begun := time.Now()
					if err := h.Release(t.Context()); err != nil {
						t.Fatal(err)
					}
					second := <-next
					if second == nil || time.Since(begun) > time.Second/10 {
						t.Fatalf("the next waiter was granted after %v", time.Since(begun))
					}
					if err := second.Release(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

// TestClosedParentHidesOpenEntries checks open entries below a znode that only the team may use.
// No list and no watch on this server names them to other users.
func TestClosedParentHidesOpenEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		create(t, dialPlain(t, srv, "team"), "/closed", zk.CreatorACL())
		eve, events := dialPlain(t, srv, "eve"), make(chan string, 100)
		defer eve.Listen(zk.Listener{Event: func(e zk.Event) { events <- e.Path }})()
		for _, path := range []string{"/", "/closed"} {
			if err := eve.AddWatch(t.Context(), path, zk.WatchRecursive); err != nil {
				t.Fatal(err)
			}
		}
		h := acquire(t, dialAs(t, srv, "team", zk.OpenACL()).Mutex("/closed"))
		if _, err := dialAs(t, srv, "team", zk.OpenACL()).Mutex("/closed").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrLocked) {
			t.Errorf("another client of the team: %v", err)
		}
		l := dialAs(t, srv, "eve", nil).Mutex("/closed")
		for what, do := range map[string]func() error{
			"list":    func() error { _, _, err := eve.Children(t.Context(), "/closed"); return err },
			"delete":  func() error { return eve.Delete(t.Context(), h.Node(), -1) },
			"acquire": func() error { _, err := l.TryAcquire(t.Context()); return err },
			"inspect": func() error { _, err := l.Inspect(t.Context()); return err },
			"revoke":  func() error { _, err := l.Revoke(t.Context()); return err },
		} {
			if err := do(); !errors.Is(err, zk.ErrNoAuth) {
				t.Errorf("%s: %v", what, err)
			}
		}
		time.Sleep(timeout)
		if err := h.Err(); err != nil {
			t.Error(err)
		}
		if _, err := dialPlain(t, srv, "").Set(t.Context(), h.Node(), []byte("{}"), -1); err != nil {
			t.Errorf("the entry is not open: %v", err)
		}
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(events) > 0 {
			t.Errorf("another user's watch reported %s", <-events)
		}
	})
}

// TestCreatePermissionBreaksNoLock checks that a user who may create and not delete can only
// enqueue, which delays other clients.
func TestCreatePermissionBreaksNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		acl := append(zk.CreatorACL(), zk.ACL{Perms: zk.PermRead | zk.PermCreate, Scheme: "world", ID: "anyone"})
		create(t, dialPlain(t, srv, "team"), "/shared", acl)
		h := acquire(t, dialAs(t, srv, "team", acl).Mutex("/shared"))
		eve := dialPlain(t, srv, "eve")
		if err := eve.Delete(t.Context(), h.Node(), -1); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("eve's delete: %v", err)
		}
		if _, err := dialAs(t, srv, "eve", nil).Mutex("/shared").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrLocked) {
			t.Errorf("eve's TryAcquire: %v", err)
		}
		time.Sleep(timeout)
		if err := h.Err(); err != nil {
			t.Error(err)
		}
	})
}

// digits is the length of the sequence number at the end of an entry's name.
const digits = 10

// lastEntry returns the name with the highest sequence number.
func lastEntry(names []string) string {
	return slices.MaxFunc(names, func(a, b string) int { return strings.Compare(a[len(a)-digits:], b[len(b)-digits:]) })
}

// TestCopiedEntryNameGrantsNoWaiter checks that a user who may create and not delete cannot make
// a waiter acquire too early by an entry with the GUID of another entry. The mark of the other
// entry must not apply to the copy.
func TestCopiedEntryNameGrantsNoWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		srv.Imitate(zktest.Release35) // its events do not name their transactions
		acl := append(zk.CreatorACL(), zk.ACL{Perms: zk.PermRead | zk.PermCreate, Scheme: "world", ID: "anyone"})
		create(t, dialPlain(t, srv, "team"), "/shared", acl)
		enqueue := func() <-chan *zklock.Hold {
			l, held := dialAs(t, srv, "team", acl).Mutex("/shared"), make(chan *zklock.Hold, 1)
			go func() {
				if h, err := l.Acquire(t.Context()); err == nil {
					held <- h
				}
			}()
			time.Sleep(time.Second)
			return held
		}
		release := func(h *zklock.Hold) {
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		first := <-enqueue()
		second := enqueue() // waits, so its release creates a mark
		eve := dialPlain(t, srv, "eve")
		children, _, err := eve.Children(t.Context(), "/shared")
		if err != nil || len(children) != 2 {
			t.Fatal(children, err)
		}
		third := enqueue()
		last := lastEntry(children)
		copied := "/shared/" + last[:len(last)-digits]
		if _, _, err := eve.Create(t.Context(), copied, nil, nil, zk.ModeEphemeralSequential); err != nil {
			t.Fatal(err)
		}
		fourth := enqueue() // waits for the copy
		release(first)
		release(<-second)
		h := <-third
		if err := eve.Close(); err != nil { // deletes the copy
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		select {
		case early := <-fourth:
			t.Errorf("%v was granted while %v is held (%v)", early, h, h.Err())
			release(early)
			release(h)
		default:
			release(h)
			release(<-fourth)
		}
	})
}

// TestForgedMarkGrantsNoWaiter checks that a user who may create and not delete cannot make a
// waiter acquire too early by a forged mark of the waiter's predecessor. The predecessor is
// another waiter, whose acquire is then canceled, or the user's own entry.
func TestForgedMarkGrantsNoWaiter(t *testing.T) {
	for _, own := range []bool{false, true} {
		t.Run(map[bool]string{false: "another waiter", true: "own entry"}[own], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { forgeMark(t, own) })
		})
	}
}

func forgeMark(t *testing.T, own bool) {
	srv := zktest.Start(t)
	acl := append(zk.CreatorACL(), zk.ACL{Perms: zk.PermRead | zk.PermCreate, Scheme: "world", ID: "anyone"})
	team, eve := dialPlain(t, srv, "team"), dialPlain(t, srv, "eve")
	create(t, team, "/shared", acl)
	h := acquire(t, dialAs(t, srv, "team", acl).Mutex("/shared"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if own {
		entry := "/shared/_c_" + strings.Repeat("0", 32) + "-lock-"
		if _, _, err := eve.Create(ctx, entry, nil, nil, zk.ModeEphemeralSequential); err != nil {
			t.Fatal(err)
		}
	} else {
		l := dialAs(t, srv, "team", acl).Mutex("/shared")
		go func() {
			if _, err := l.Acquire(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("the canceled waiter: %v", err)
			}
		}()
	}
	synctest.Wait()
	children, _, err := eve.Children(t.Context(), "/shared")
	if err != nil || len(children) != 2 {
		t.Fatal(children, err)
	}
	next, l := make(chan *zklock.Hold, 1), dialAs(t, srv, "team", acl).Mutex("/shared")
	go func() {
		if h, err := l.Acquire(t.Context()); err == nil {
			next <- h
		}
	}()
	time.Sleep(time.Second)
	last := lastEntry(children)
	entry, _ := queue.ParseName(last)
	mark, ok := entry.Mark()
	if !ok {
		t.Fatalf("%s has no mark", last)
	}
	create(t, eve, "/shared/"+mark, nil)
	cancel()
	if err := eve.Close(); err != nil { // deletes eve's entry
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	select {
	case early := <-next:
		t.Errorf("%v was granted while %v is held (%v)", early, h, h.Err())
	default:
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		if err := (<-next).Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
