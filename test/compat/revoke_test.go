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

// revokeWait limits the time until a holder receives a release request.
const revokeWait = 5 * time.Minute

// awaitRevoked waits until the hold receives a release request, which must not end the hold.
func awaitRevoked(t *testing.T, h *zklock.Hold) {
	t.Helper()
	limit := time.NewTimer(revokeWait)
	defer limit.Stop()
	select {
	case <-h.Revoked():
	case <-limit.C:
		t.Errorf("%s received no release request", h.Node())
	}
	if err := h.Err(); err != nil {
		t.Errorf("the release request ended the hold: %v", err)
	}
}

// notRevoked fails the test if the hold has received a release request.
func notRevoked(t *testing.T, h *zklock.Hold) {
	t.Helper()
	select {
	case <-h.Revoked():
		t.Errorf("%s reports a release request", h.Node())
	default:
	}
}

// TestCuratorRevokesZklock checks that release requests of Curator's Revoker, and those of
// ZooKeeper's recipe, reach holders of every kind at each of their znodes.
func TestCuratorRevokesZklock(t *testing.T) {
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

// isRevoked acquires the lock, and writes a release request to one of the hold's znodes.
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
		t.Errorf("Verify after a release request: %v", err)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRevokedReportsEarlierRequest checks a release request before the first call of Revoked.
func TestRevokedReportsEarlierRequest(t *testing.T) {
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

// TestZklockRevokesCurator checks that Lock.Revoke reaches the listener of Curator's holder, and
// not that of a waiter.
func TestZklockRevokesCurator(t *testing.T) {
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
		revoked, err := lock.Revoke(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(revoked) != 1 || path+"/"+revoked[0].Name != node || !revoked[0].Holder {
			t.Errorf("revoked %+v, want only %s", revoked, node)
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
			t.Errorf("the waiter received a release request: %v", err)
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
		if revoked, err := lock.Revoke(ctx); err != nil || len(revoked) != 0 {
			t.Errorf("Revoke of a free lock: %+v, %v", revoked, err)
		}
	})
}
