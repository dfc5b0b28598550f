package compat

import (
	"context"
	"errors"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
)

// TestReaderFailsOnPathOfForeignMutex: Curator's mutex and kazoo's Lock do not wait for readers.
// So a reader on their path fails, unless an option allows it.
func TestReaderFailsOnPathOfForeignMutex(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		for name, c := range map[string]struct {
			holder *harness.Peer
			kind   string
		}{
			"curator": {harness.Curator(t, s.Addr), "mutex"},
			"kazoo":   {harness.Kazoo(t, s.Addr), "lock"},
		} {
			t.Run(name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), handoverWait)
				defer cancel()
				path := s.Chroot + "/" + name
				if _, err := c.holder.Acquire(ctx, c.kind, path, patience); err != nil {
					t.Fatal(err)
				}
				if _, err := dialZklock(t, s, "").RWMutex(path).Reader().Acquire(ctx); !errors.Is(err, zklock.ErrForeignMutex) {
					t.Errorf("a reader's Acquire = %v, want ErrForeignMutex", err)
				}
				opts, err := clientOptions("")
				if err != nil {
					t.Fatal(err)
				}
				opts.AllowForeignMutex = true
				reader := dialWith(t, s, opts).RWMutex(path).Reader()
				short, stop := context.WithTimeout(ctx, refusal)
				if _, err := reader.Acquire(short); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a reader with AllowForeignMutex = %v, want that it waits for the holder", err)
				}
				stop()
				if err := c.holder.Release(ctx); err != nil {
					t.Error(err)
				}
				hold, err := reader.Acquire(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := c.holder.Acquire(ctx, c.kind, path, patience); err != nil {
					t.Errorf("%s does not hold together with a reader: %v; update the documentation", name, err)
				} else if err := c.holder.Release(ctx); err != nil {
					t.Error(err)
				}
				if err := hold.Release(ctx); err != nil {
					t.Error(err)
				}
			})
		}
	})
}
