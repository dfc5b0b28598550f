package compat

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// TestKazooReaderWaitsForLaterWriters is why kazoo 2.8's readers need a time
// limit: one that waits takes the last writer of the queue for the one before
// it. A writer behind it then waits for the reader, and the reader for the
// writer, until one gives up.
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
		// Longer than the machine stands still: the writer has to come before it ends.
		const limit = 8 * time.Second
		go func() { // ends with its limit
			_, err := reader.Acquire(ctx, "read", path, limit)
			read <- err
		}()
		o.await(t, ctx, 2, path)
		go func() { // ends when the reader has given up, or with ctx
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
			t.Errorf("kazoo's reader: %v; it has become better, so say so in the documentation", err)
		}
		if err := <-wrote; err != nil {
			t.Errorf("the writer after the reader gave up: %v", err)
		}
	})
}
