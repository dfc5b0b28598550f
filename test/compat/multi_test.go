package compat

import (
	"context"
	"errors"
	"testing"

	"github.com/zklock/zklock/test/harness"
)

// TestAllDeadlocksWithLocksAcquiredOneByOne shows why an All needs a timeout or InOrder. A Curator
// client holds lock A and acquires lock B while an All of both waits: the client waits for the
// All's entry in the queue of B, and the All waits for A. With InOrder, the All has no entry in the
// queue of B yet.
func TestAllDeadlocksWithLocksAcquiredOneByOne(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		first, second, o := harness.Curator(t, s.Addr), harness.Curator(t, s.Addr), newObserver(t, s)
		client := dialZklock(t, s, "")
		for kind, waits := range map[string]bool{"multi": true, "in-order": false} {
			t.Run(kind, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), handoverWait)
				defer cancel()
				one, two := s.Chroot+"/"+kind+"-1", s.Chroot+"/"+kind+"-2"
				lock, err := makeLock(client, kind, one+","+two)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := first.Acquire(ctx, "mutex", one, patience); err != nil {
					t.Fatal(err)
				}
				granted := make(chan error, 1)
				go func() { // ends with the grant, or with ctx
					hold, err := lock.Acquire(ctx)
					if err == nil {
						err = hold.Release(ctx)
					}
					granted <- err
				}()
				// Both peers stand for one client with two locks.
				entries, limit := 2, patience
				if waits {
					entries, limit = 3, refusal
				}
				o.await(t, ctx, entries, one, two)
				_, err = second.Acquire(ctx, "mutex", two, limit)
				if waited := errors.Is(err, harness.ErrPeerTimeout); waited != waits {
					t.Errorf("Curator's second lock: %v, want that it waits: %v", err, waits)
				}
				if err == nil {
					if err := second.Release(ctx); err != nil {
						t.Error(err)
					}
				}
				if err := first.Release(ctx); err != nil {
					t.Error(err)
				}
				if err := <-granted; err != nil {
					t.Errorf("zklock after Curator's release: %v", err)
				}
				o.await(t, ctx, 0, one, two)
			})
		}
	})
}
