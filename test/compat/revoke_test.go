package compat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
)

// revokeWait bounds how long it takes to learn of a revocation.
const revokeWait = 5 * time.Minute

// awaitRevoked waits for the hold to be asked for, and wants it to be held still.
func awaitRevoked(t *testing.T, h *zklock.Hold) {
	t.Helper()
	limit := time.NewTimer(revokeWait)
	defer limit.Stop()
	select {
	case <-h.Revoked():
	case <-limit.C:
		t.Errorf("%s was not told that it is asked for", h.Node())
	}
	if err := h.Err(); err != nil {
		t.Errorf("a hold that is asked for ended by itself: %v", err)
	}
}

// notRevoked wants that nobody has asked for the hold, as far as it knows.
func notRevoked(t *testing.T, h *zklock.Hold) {
	t.Helper()
	select {
	case <-h.Revoked():
		t.Errorf("%s thinks that it is asked for", h.Node())
	default:
	}
}

// TestCuratorRevokesOurs: Curator's Revoker reaches holders of every kind, by any
// of their znodes, and so does the word of ZooKeeper's recipe.
func TestCuratorRevokesOurs(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		curator, o := harness.Curator(t, s.Addr), newObserver(t, s)
		revokers := map[string]func(ctx context.Context, node string) error{
			"Revoker": func(ctx context.Context, node string) error {
				_, err := curator.Do(ctx, "revoke", node)
				return err
			},
			"recipe": func(ctx context.Context, node string) error {
				_, err := o.Set(ctx, node, []byte("unlock"), -1)
				return err
			},
		}
		for _, c := range []struct {
			layout, kind string
			nodes        int
		}{
			{"", "mutex", 1}, {"", "read", 1}, {"", "write", 1}, {"", "semaphore:3:2", 2}, {"", "multi", 2},
			{"kazoo", "mutex", 1}, {"kazoo", "read", 1}, {"mixed", "mutex", 2}, {"latch", "mutex", 1},
		} {
			client := dialZklock(t, s, c.layout)
			for name, revoke := range revokers {
				for i := range c.nodes {
					t.Run(fmt.Sprint(name, c.layout, c.kind, i), func(t *testing.T) {
						path := s.Chroot + "/" + strings.NewReplacer("/", "-", ":", "-").Replace(t.Name())
						lock, err := makeLock(client, c.kind, path+"1,"+path+"2")
						if c.kind != "multi" {
							lock, err = makeLock(client, c.kind, path)
						}
						if err != nil {
							t.Fatal(err)
						}
						isRevoked(t, lock, i, c.nodes, revoke)
					})
				}
			}
		}
	})
}

// isRevoked takes the lock and has it asked for at one of the hold's znodes.
func isRevoked(t *testing.T, lock *zklock.Lock, i, nodes int, revoke func(ctx context.Context, node string) error) {
	t.Helper()
	hold, err := lock.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	notRevoked(t, hold)
	if len(hold.Nodes()) != nodes {
		t.Fatalf("nodes %q, want %d", hold.Nodes(), nodes)
	}
	if err := revoke(t.Context(), hold.Nodes()[i]); err != nil {
		t.Fatal(err)
	}
	awaitRevoked(t, hold)
	if err := hold.Verify(t.Context()); err != nil {
		t.Errorf("Verify of a hold that is asked for: %v", err)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRevokedBeforeAsked: a revocation that came before anybody looked is not lost.
func TestRevokedBeforeAsked(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		hold, err := dialZklock(t, s, "").Mutex(s.Chroot + "/early").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := harness.Curator(t, s.Addr).Do(t.Context(), "revoke", hold.Node()); err != nil {
			t.Fatal(err)
		}
		awaitRevoked(t, hold)
		if err := hold.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestOursRevokesCurators: Lock.Revoke reaches the listener of a revocable mutex
// of Curator's, and of those who hold and wait asks only the holder.
func TestOursRevokesCurators(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		holder, waiter, o := harness.Curator(t, s.Addr), harness.Curator(t, s.Addr), newObserver(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), handoverWait)
		defer cancel()
		path := s.Chroot + "/revoke"
		lock := dialZklock(t, s, "").Mutex(path)
		node, err := holder.Acquire(ctx, "revocable", path, patience)
		if err != nil {
			t.Fatal(err)
		}
		granted := make(chan error, 1)
		go func() { // ends with the grant, or with ctx
			_, err := waiter.Acquire(ctx, "revocable", path, patience)
			granted <- err
		}()
		o.await(t, ctx, 2, path)
		if _, err := holder.Do(ctx, "revoked", "200"); !errors.Is(err, harness.ErrPeerTimeout) {
			t.Errorf("before the revocation: %v", err)
		}
		asked, err := lock.Revoke(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(asked) != 1 || path+"/"+asked[0].Name != node || !asked[0].Holder {
			t.Errorf("asked %+v, want %s alone", asked, node)
		}
		if _, err := holder.Do(ctx, "revoked", "60000"); err != nil {
			t.Errorf("the listener of Curator's holder: %v", err)
		}
		if err := holder.Release(ctx); err != nil {
			t.Error(err)
		}
		if err := <-granted; err != nil {
			t.Fatal(err)
		}
		if _, err := waiter.Do(ctx, "revoked", "200"); !errors.Is(err, harness.ErrPeerTimeout) {
			t.Errorf("the waiter was asked as well: %v", err)
		}
		if _, err := lock.Revoke(ctx); err != nil {
			t.Fatal(err)
		}
		if _, err := waiter.Do(ctx, "revoked", "60000"); err != nil {
			t.Errorf("the listener of Curator's next holder: %v", err)
		}
		if err := waiter.Release(ctx); err != nil {
			t.Error(err)
		}
		if asked, err := lock.Revoke(ctx); err != nil || len(asked) != 0 {
			t.Errorf("Revoke of a free lock asked %+v, %v", asked, err)
		}
	})
}
