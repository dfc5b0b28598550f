package compat

import (
	"errors"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
)

// TestResizeWithCurator checks that zklock and Curator's semaphore with a SharedCount use the
// stored size, and that a smaller size ends no hold. A Curator client with a fixed number uses that
// number, and zklock counts its lease.
func TestResizeWithCurator(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		ctx := t.Context()
		path := s.Chroot + "/resized"
		c := dialZklock(t, s, "curator")
		l := c.ResizableSemaphore(path)
		follower, fixed := harness.Curator(t, s.Addr), harness.Curator(t, s.Addr)
		resize := func(n int) {
			t.Helper()
			if err := c.Resize(ctx, path, n); err != nil {
				t.Fatal(err)
			}
		}
		locked := func(what string) {
			t.Helper()
			if _, err := l.TryAcquire(ctx); !errors.Is(err, zklock.ErrLocked) {
				t.Errorf("%s: %v", what, err)
			}
		}
		resize(1)
		if _, err := follower.Acquire(ctx, "resizable", path, patience); err != nil {
			t.Fatal(err)
		}
		locked("Curator has the one permit")
		granted := make(chan *zklock.Hold, 1)
		go func() { // ends with the acquire
			h, err := l.Acquire(ctx)
			if err != nil {
				t.Error(err)
			}
			granted <- h
		}()
		resize(2)
		h := <-granted
		if h == nil {
			return
		}
		resize(1)
		if err := h.Verify(ctx); err != nil {
			t.Errorf("after a smaller size: %v", err)
		}
		if err := follower.Release(ctx); err != nil {
			t.Fatal(err)
		}
		locked("the one permit is held")
		if _, err := follower.Acquire(ctx, "resizable", path, refusal); !errors.Is(err, harness.ErrPeerTimeout) {
			t.Errorf("Curator with a SharedCount, beyond the size: %v", err)
		}
		if _, err := fixed.Acquire(ctx, "semaphore:2", path, patience); err != nil {
			t.Errorf("Curator with a fixed number: %v", err)
		}
		if err := h.Release(ctx); err != nil {
			t.Fatal(err)
		}
		locked("Curator has a permit by a fixed number")
		if err := fixed.Release(ctx); err != nil {
			t.Fatal(err)
		}
		resize(2)
		for range 2 {
			h, err := l.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Release(ctx)
		}
		resize(3)
		if _, err := follower.Acquire(ctx, "resizable", path, patience); err != nil {
			t.Errorf("Curator with a SharedCount, after a larger size: %v", err)
		}
	})
}
