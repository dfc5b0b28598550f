package interop

import (
	"context"
	"errors"
	"testing"

	"github.com/zklock/zklock/test/zkreal"
)

// TestAllBesideOneByOne is why an All has a time limit, and why there is InOrder.
// A program of Curator's that holds one lock and then wants another meets an All
// of both: it waits for the All's place in the second queue, and the All for the
// first lock. In order, the All keeps no place in the second queue yet.
func TestAllBesideOneByOne(t *testing.T) {
	onEach(t, func(t *testing.T, s zkreal.SharedServer) {
		first, second, o := Curator(t, s.Addr), Curator(t, s.Addr), newObserver(t, s)
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
				o.await(t, ctx, 2, one)
				// The same program, as it were, wants the second lock.
				limit := patience
				if waits {
					limit = refusal
				}
				_, err = second.Acquire(ctx, "mutex", two, limit)
				if waited := errors.Is(err, ErrTimeout); waited != waits {
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
					t.Errorf("ours, when Curator's gave up: %v", err)
				}
				o.await(t, ctx, 0, one, two)
			})
		}
	})
}
