package compat

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// TestKazooReaderWaitsForLaterWriters shows why readers of kazoo 2.8 need a timeout: a reader
// waits for the last writer in the queue, also for one after the reader. Such a writer waits for
// the reader, until one times out.
func TestKazooReaderWaitsForLaterWriters(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		first, reader, o := harness.Kazoo(t, s.Addr), harness.Kazoo(t, s.Addr), newObserver(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), handoverWait)
		defer cancel()
		path := s.Chroot + "/later"
		writer := dialZklock(t, s, "kazoo").RWMutex(path).Writer()
		if _, err := first.Acquire(ctx, "write", path, patience); err != nil {
			t.Fatal(err)
		}
		read, wrote := make(chan error, 1), make(chan error, 1)
		// Longer than a stall of the machine, because the writer must enqueue before the timeout.
		const limit = 8 * time.Second
		go func() { // ends with the timeout
			_, err := reader.Acquire(ctx, "read", path, limit)
			read <- err
		}()
		o.await(t, ctx, 2, path)
		go func() { // ends after the reader's timeout, or with ctx
			hold, err := writer.Acquire(ctx)
			if err == nil {
				err = hold.Release(ctx)
			}
			wrote <- err
		}()
		o.await(t, ctx, 3, path)
		if err := first.Release(ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-read; !errors.Is(err, harness.ErrPeerTimeout) {
			t.Errorf("kazoo's reader: %v; update the documentation", err)
		}
		if err := <-wrote; err != nil {
			t.Errorf("the writer after the reader's timeout: %v", err)
		}
	})
}
