package security

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// dialAs makes a client with an identity; an empty user has none.
func dialAs(t *testing.T, srv *zktest.Server, user string, acl []zk.ACL) *zklock.Client {
	t.Helper()
	o := &zklock.Options{SessionTimeout: timeout, DialContext: srv.DialContext, ACL: acl}
	if user != "" {
		o.Auth = []zk.Auth{{Scheme: "digest", Data: []byte(user + ":password")}}
	}
	c, err := zklock.Dial(t.Context(), srv.Servers(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// operator is a plain client with an identity.
func operator(t *testing.T, srv *zktest.Server, user string) *zk.Client {
	t.Helper()
	return srv.Dial(t, func(o *zk.Options) {
		if user != "" {
			o.Auth = []zk.Auth{{Scheme: "digest", Data: []byte(user + ":password")}}
		}
	})
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
		t.Fatal("it never happened")
	}
}

// lostSoon fails unless the hold is lost within an eighth of the session's timeout
// and a round trip.
func lostSoon(t *testing.T, h *zklock.Hold) {
	t.Helper()
	begun := time.Now()
	closed(t, h.Done())
	if took := time.Since(begun); took > timeout/8+time.Second/10 || !errors.Is(h.Err(), zklock.ErrLost) {
		t.Errorf("after %v: %v", took, h.Err())
	}
}

// TestWhoDeletesBreaks: whoever may delete in the lock's znode can break the lock,
// whatever the entries' own ACL says: ZooKeeper looks at the parent's. The holder
// is told.
func TestWhoDeletesBreaks(t *testing.T) {
	for name, acl := range map[string][]zk.ACL{
		"open": nil, "entries that only their maker may change": append(zk.CreatorACL(), zk.ReadACL()...),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t)
				if _, _, err := operator(t, srv, "").Create(t.Context(), "/open", nil, nil, zk.ModePersistent); err != nil {
					t.Fatal(err)
				}
				h := acquire(t, dialAs(t, srv, "ann", acl).Mutex("/open"))
				if err := operator(t, srv, "").Delete(t.Context(), h.Node(), -1); err != nil {
					t.Fatalf("a stranger's delete: %v", err)
				}
				lostSoon(t, h)
			})
		})
	}
}

// TestRecommendedACL is the set-up that SECURITY.md gives: below a znode that is the
// team's alone, locks work, outlive crashes, and are nobody else's to see, take,
// break or revoke.
func TestRecommendedACL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		if _, _, err := operator(t, srv, "team").Create(t.Context(), "/team", nil, zk.CreatorACL(), zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		first, second := dialAs(t, srv, "team", zk.CreatorACL()), dialAs(t, srv, "team", zk.CreatorACL())
		h := acquire(t, first.Mutex("/team/a/b"))
		if _, err := second.Mutex("/team/a/b").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrLocked) {
			t.Errorf("a colleague: %v", err)
		}
		for _, user := range []string{"", "eve"} {
			strangerFails(t, srv, user, h)
		}
		if err := h.Err(); err != nil {
			t.Fatalf("after the strangers: %v", err)
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
			t.Errorf("a colleague's wish: %v", err)
		}
		closed(t, next.Revoked())
	})
}

// strangerFails fails the test if somebody else can do anything about a hold.
func strangerFails(t *testing.T, srv *zktest.Server, user string, h *zklock.Hold) {
	t.Helper()
	op, l := operator(t, srv, user), dialAs(t, srv, user, nil).Mutex("/team/a/b")
	for what, do := range map[string]func() error{
		"delete":  func() error { return op.Delete(t.Context(), h.Node(), -1) },
		"set":     func() error { _, err := op.Set(t.Context(), h.Node(), nil, -1); return err },
		"get":     func() error { _, _, err := op.Get(t.Context(), h.Node()); return err },
		"set ACL": func() error { _, err := op.SetACL(t.Context(), "/team", zk.OpenACL(), -1); return err },
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

// TestClosedZnodeOfOpenEntries: where the lock's znode is the team's alone and the
// entries are open, as the command makes them, strangers can't find any.
func TestClosedZnodeOfOpenEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		if _, _, err := operator(t, srv, "team").Create(t.Context(), "/closed", nil, zk.CreatorACL(), zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		h := acquire(t, dialAs(t, srv, "team", nil).Mutex("/closed"))
		if _, err := dialAs(t, srv, "team", nil).Mutex("/closed").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrLocked) {
			t.Errorf("a colleague: %v", err)
		}
		eve, l := operator(t, srv, "eve"), dialAs(t, srv, "eve", nil).Mutex("/closed")
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
	})
}

// TestQueueingIsNoBreaking: whoever may create and not delete can stand in the queue,
// which holds others up, and can't be granted beside the holder or end his hold.
func TestQueueingIsNoBreaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		acl := append(zk.CreatorACL(), zk.ACL{Perms: zk.PermRead | zk.PermCreate, Scheme: "world", ID: "anyone"})
		if _, _, err := operator(t, srv, "team").Create(t.Context(), "/shared", nil, acl, zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		h := acquire(t, dialAs(t, srv, "team", acl).Mutex("/shared"))
		eve := operator(t, srv, "eve")
		if err := eve.Delete(t.Context(), h.Node(), -1); !errors.Is(err, zk.ErrNoAuth) {
			t.Errorf("eve's delete: %v", err)
		}
		if _, err := dialAs(t, srv, "eve", nil).Mutex("/shared").TryAcquire(t.Context()); !errors.Is(err, zklock.ErrLocked) {
			t.Errorf("eve's try: %v", err)
		}
		time.Sleep(timeout)
		if err := h.Err(); err != nil {
			t.Error(err)
		}
	})
}
