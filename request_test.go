package zklock_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// identifiedAs returns options with a digest user.
func identifiedAs(user string) zklock.Options {
	return zklock.Options{Auth: []zk.Auth{{Scheme: "digest", Data: []byte(user + ":password")}}}
}

// identifiedWith returns options with a digest user, and an ACL for new znodes.
func identifiedWith(user string, acl []zk.ACL) zklock.Options {
	o := identifiedAs(user)
	o.ACL = acl
	return o
}

// digestOf returns a digest user as ACLs name it.
func digestOf(t *testing.T, srv *zktest.Server, user string) zk.ACL {
	t.Helper()
	z := dialZK(t, srv, identifiedAs(user).Auth...)
	create(t, z, "/"+user, zk.CreatorACL())
	acl, _, err := z.GetACL(t.Context(), "/"+user)
	if err != nil || len(acl) != 1 {
		t.Fatal(acl, err)
	}
	remove(t, z, "/"+user)
	return acl[0]
}

// listed returns the ACL of a znode, with hidden users as user:x.
func listed(t *testing.T, z *zk.Client, path string) map[zk.ACL]bool {
	t.Helper()
	acl, _, err := z.GetACL(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	found := map[zk.ACL]bool{}
	for _, a := range acl {
		found[a] = true
	}
	return found
}

// TestEntriesInheritParentACL checks that an entry gets the ACL of its parent, that the
// creator keeps all permissions, and that identities that the servers hide are left
// out.
func TestEntriesInheritParentACL(t *testing.T) {
	const use = zk.PermCreate | zk.PermRead | zk.PermDelete
	for name, admin := range map[string]bool{"all of the list is known": true, "digest users are hidden": false} {
		t.Run(name, func(t *testing.T) {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				ann, bob := digestOf(t, srv, "ann"), digestOf(t, srv, "bob")
				here := zk.ACL{Perms: use, Scheme: "ip", ID: "10.0.0.0/8"}
				bob.Perms, ann.Perms = use, use
				if admin {
					ann.Perms |= zk.PermAdmin
				}
				z := dialZK(t, srv, identifiedAs("ann").Auth...)
				create(t, z, "/closed", []zk.ACL{ann, bob, here})
				h := acquire(t, dialWith(t, srv, identifiedAs("ann")).Mutex("/closed"))
				found := listed(t, z, h.Node())
				ann.Perms = zk.PermAll
				if !found[ann] || !found[here] || found[bob] != admin {
					t.Errorf("%v", found)
				}
				release(t, h)
				remove(t, z, "/closed")
			})
		})
	}
}

// TestAddAuthClosesLaterEntries checks that credentials that a shared session gets after New count
// for znodes that are created afterwards: entries, a node lock's znode that a waiter creates, and
// the znode of a lock. An earlier entry stays open, and so does the entry that replaces it in a
// downgrade.
func TestAddAuthClosesLaterEntries(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		ann := digestOf(t, srv, "ann")
		all := zk.ACL{Perms: zk.PermCreate | zk.PermRead | zk.PermDelete, Scheme: "world", ID: "anyone"}
		op, session := dialZK(t, srv, identifiedAs("ann").Auth...), srv.Dial(t)
		create(t, op, "/team", []zk.ACL{ann, all})
		c := zklock.New(session, nil)
		defer c.Close()
		early := acquire(t, c.RWMutex("/team/rw").Writer())
		blocker := acquire(t, dial(t, srv).NodeLock("/team/node"))
		waiter := waiting(t, t.Context(), c.NodeLock("/team/node"))
		if err := session.AddAuth(t.Context(), "digest", identifiedAs("ann").Auth[0].Data); err != nil {
			t.Fatal(err)
		}
		release(t, blocker)
		late, node := acquire(t, c.Mutex("/team/new")), <-waiter
		for path, closed := range map[string]bool{
			early.Node(): false, node.Node(): true, late.Node(): true, "/team/new": true,
		} {
			if found := listed(t, op, path); found[ann] != closed || found[all] != closed {
				t.Errorf("%s has the ACL %v", path, found)
			}
		}
		if err := early.Downgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found := listed(t, op, early.Node()); found[ann] {
			t.Errorf("after the downgrade: %v", found)
		}
		for _, h := range []*zklock.Hold{early, node, late} {
			release(t, h)
		}
	})
}

// TestEntriesOfParentWithLargeACLAreClosed checks that an entry permits only its creator if the
// ACL of its parent is larger than 16 KiB.
func TestEntriesOfParentWithLargeACLAreClosed(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		ann := digestOf(t, srv, "ann")
		z := dialZK(t, srv, identifiedAs("ann").Auth...)
		for _, n := range []int{300, 1200} { // about 8 KiB, and about 30 KiB
			acl := []zk.ACL{ann}
			for i := range n {
				acl = append(acl, zk.ACL{Perms: zk.PermRead, Scheme: "ip", ID: fmt.Sprintf("10.0.%d.%d", i/256, i%256)})
			}
			create(t, z, "/large", acl)
			h := acquire(t, dialWith(t, srv, identifiedAs("ann")).Mutex("/large"))
			if found := listed(t, z, h.Node()); !found[ann] || (len(found) == 1) != (n == 1200) {
				t.Errorf("with %d entries in the parent's ACL, the ACL has %d", n, len(found))
			}
			release(t, h)
			remove(t, z, "/large")
		}
	})
}

// TestLocksBelowParentWithoutDelete checks that, where all clients may create locks and
// none may delete them, other clients can acquire and release a lock that one identity
// has created.
func TestLocksBelowParentWithoutDelete(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		root := srv.Dial(t)
		acl := []zk.ACL{{Perms: zk.PermCreate | zk.PermRead, Scheme: "world", ID: "anyone"}}
		create(t, root, "/locks", acl)
		for _, user := range []string{"ann", "bob", "ann"} {
			release(t, acquire(t, dialWith(t, srv, identifiedAs(user)).Mutex("/locks/of/all")))
		}
		if found := listed(t, root, "/locks/of/all"); !found[zk.ACL{Perms: zk.PermCreate | zk.PermRead | zk.PermDelete, Scheme: "world", ID: "anyone"}] {
			t.Errorf("%v", found)
		}
	})
}

// TestCredentialsWithoutIdentity checks that a client whose credentials are no identity
// to the servers copies its parent's ACL without a creator.
func TestCredentialsWithoutIdentity(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		acl := []zk.ACL{{Perms: zk.PermCreate | zk.PermRead | zk.PermDelete, Scheme: "world", ID: "anyone"}}
		create(t, srv.Dial(t), "/locks", acl)
		c := dialWith(t, srv, zklock.Options{Auth: []zk.Auth{{Scheme: "ip"}}})
		for range 2 {
			begun := time.Now()
			h := acquire(t, c.Mutex("/locks"))
			if took := time.Since(begun); took > time.Second {
				t.Errorf("it took %v", took)
			}
			if found := listed(t, srv.Dial(t), h.Node()); len(found) != 1 || !found[acl[0]] {
				t.Errorf("%v", found)
			}
			release(t, h)
		}
	})
}

// TestParentACLIsReadInEachSession checks that a parent whose ACL is restricted later
// restricts the entries of later sessions.
func TestParentACLIsReadInEachSession(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		z := dialZK(t, srv, identifiedAs("ann").Auth...)
		create(t, z, "/locks", nil)
		c := dialWith(t, srv, identifiedAs("ann"))
		everybody := zk.ACL{Perms: zk.PermAll, Scheme: "world", ID: "anyone"}
		h := acquire(t, c.Mutex("/locks"))
		if found := listed(t, z, h.Node()); !found[everybody] {
			t.Errorf("below an open znode: %v", found)
		}
		if _, err := z.SetACL(t.Context(), "/locks", zk.CreatorACL(), -1); err != nil {
			t.Fatal(err)
		}
		if err := srv.ExpireSession(h.Session()); err != nil {
			t.Fatal(err)
		}
		<-h.Done()
		h = acquire(t, c.Mutex("/locks"))
		if found := listed(t, z, h.Node()); found[everybody] || len(found) != 1 {
			t.Errorf("below a closed znode: %v", found)
		}
		release(t, h)
		remove(t, z, "/locks")
	})
}

// TestRecreatedParentKeepsACL checks that, where the znode above a lock was deleted and
// created again with a restricted ACL, clients that have used the lock before create it
// with that ACL, in the same session.
func TestRecreatedParentKeepsACL(t *testing.T) {
	for name, waits := range map[string]bool{"between two acquires": false, "under a waiter": true} {
		t.Run(name, func(t *testing.T) {
			tidy(t, func(t *testing.T, srv *zktest.Server) {
				z := dialZK(t, srv, identifiedAs("ann").Auth...)
				create(t, z, "/locks", zk.OpenACL())
				c, m := dialWith(t, srv, identifiedAs("ann")), "/locks/job"
				for range 2 { // the first finds no lock, and the second its list
					release(t, acquire(t, c.Mutex(m)))
				}
				first := acquire(t, dialWith(t, srv, identifiedAs("ann")).Mutex(m))
				ops := []zk.Op{zk.DeleteOp(first.Node(), -1)}
				var next *zklock.Hold
				var err error
				done := make(chan struct{}) // closed after next is granted
				take := func() { next, err = c.Mutex(m).Acquire(t.Context()); close(done) }
				if waits {
					go take()
					synctest.Wait()
					queue, _, err := z.Children(t.Context(), m)
					if err != nil || len(queue) != 2 {
						t.Fatal(queue, err)
					}
					// The entry of the waiter is deleted first. A waiter that receives the
					// deletion of the holder before its own is granted for a moment.
					own, holder := m+"/"+queue[0], first.Node()
					if own == holder {
						own = m + "/" + queue[1]
					}
					ops = []zk.Op{zk.DeleteOp(own, -1), zk.DeleteOp(holder, -1)}
				}
				ops = append(ops, zk.DeleteOp(m, -1), zk.DeleteOp("/locks", -1), zk.CreateOp("/locks", nil, zk.CreatorACL(), zk.ModePersistent))
				if _, err := z.Multi(t.Context(), ops...); err != nil {
					t.Fatal(err)
				}
				if !waits {
					go take()
				}
				<-done
				if err != nil {
					t.Fatal(err)
				}
				everybody := zk.ACL{Perms: zk.PermAll, Scheme: "world", ID: "anyone"}
				for _, path := range []string{m, next.Node()} {
					if found := listed(t, z, path); found[everybody] {
						t.Errorf("%s: %v", path, found)
					}
				}
				release(t, next)
				if err := first.Release(t.Context()); !errors.Is(err, zklock.ErrDeleted) {
					t.Errorf("%v", err)
				}
				remove(t, z, m)
				remove(t, z, "/locks")
			})
		})
	}
}

// TestACLOfFirstClientKeepsSharedParentOpen: the client that creates /zklock with a closed
// ACL closes its own lock only.
func TestACLOfFirstClientKeepsSharedParentOpen(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		ann, other := dialWith(t, srv, identifiedWith("ann", zk.CreatorACL())), dial(t, srv)
		sharedParents(t, srv, ann)
		acquire(t, ann.Mutex("closed"))
		release(t, acquire(t, other.Mutex("open")))
		_, err := other.Mutex("closed").Acquire(t.Context())
		wants(t, "another client's acquire", err, zk.ErrNoAuth)
	})
}

// TestClosedChrootKeepsSharedParentClosed checks that the first client below a closed chroot
// creates a /zklock in which other clients can create nothing.
func TestClosedChrootKeepsSharedParentClosed(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		auth := zk.Auth{Scheme: "digest", Data: []byte("ann:secret")}
		create(t, dialZK(t, srv, auth), "/team", zk.CreatorACL())
		dialTeam := func(opts zklock.Options) *zklock.Client {
			opts.DialContext = srv.DialContext
			c, err := zklock.Dial(t.Context(), srv.Servers()+"/team", &opts)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() })
			return c
		}
		release(t, acquire(t, dialTeam(zklock.Options{Auth: []zk.Auth{auth}, ACL: zk.CreatorACL()}).Mutex("a")))
		_, err := dialTeam(zklock.Options{}).Mutex("b").TryAcquire(t.Context())
		wants(t, "another client's lock", err, zk.ErrNoAuth)
	})
}

// TestLockZnodeOfStrangerKeepsItsACL shows a limit of ACLs: a client that may create znodes
// next to a lock can create the lock's znode while it does not exist, and then break the lock.
func TestLockZnodeOfStrangerKeepsItsACL(t *testing.T) {
	bubble(t, func(t *testing.T, srv *zktest.Server) {
		ann := dialWith(t, srv, zklock.Options{Auth: []zk.Auth{{Scheme: "digest", Data: []byte("ann:1")}}, ACL: zk.CreatorACL()})
		eve := srv.Dial(t)
		release(t, acquire(t, ann.Mutex("first")))
		create(t, eve, "/zklock/job", zk.OpenACL())
		h := acquire(t, ann.Mutex("job"))
		if err := eve.Delete(t.Context(), h.Node(), -1); err != nil {
			t.Errorf("the stranger cannot break the lock: %v", err)
		}
		wants(t, "broken", h.Release(t.Context()), zklock.ErrLost)
	})
}

// sharedParents checks the znodes that the first client creates above its lock. A second client
// with other credentials can create locks next to it, and cannot change it. Below a znode that an
// operator closed, no znode is open.
func sharedParents(t *testing.T, srv *zktest.Server, ann *zklock.Client) {
	t.Helper()
	bob := dialWith(t, srv, identifiedWith("bob", zk.CreatorACL()))
	create(t, dialZK(t, srv, identifiedAs("ann").Auth...), "/private", zk.CreatorACL())
	for _, pair := range []struct {
		first, second *zklock.Lock
		open          bool
	}{
		{ann.Mutex("team/a"), bob.Mutex("team/b"), true},
		{ann.Mutex("team/deep/er/a"), bob.Mutex("team/deep/er/b"), true},
		{ann.Semaphore("team/pool/a", 2), bob.Semaphore("team/pool/b", 2), true},
		{ann.Mutex("/apps/x/a"), bob.Mutex("/apps/x/b"), true},
		{zklock.All(ann.Mutex("both/a"), ann.Mutex("both/a/x")), bob.Mutex("both/a/y"), false},
		{ann.Mutex("/private/x/a"), bob.Mutex("/private/x/b"), false},
	} {
		defer release(t, acquire(t, pair.first))
		next, err := pair.second.Acquire(t.Context())
		if (err == nil) != pair.open {
			t.Errorf("%s next to %s: %v", pair.second.Path(), pair.first.Path(), err)
		}
		if err == nil {
			defer release(t, next)
		}
	}
	for _, own := range []string{"team/a", "team/deep/er/a", "/apps/x/a"} {
		if _, err := bob.Mutex(own).TryAcquire(t.Context()); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("another client's acquire of %s: %v", own, err)
		}
	}
	if _, err := bob.Semaphore("team/pool/a", 2).TryAcquire(t.Context()); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("another client's acquire of a permit: %v", err)
	}
}
