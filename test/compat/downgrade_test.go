package compat

import (
	"context"
	"testing"

	"github.com/zklock/zklock/test/harness"
)

// TestDowngradeAdmitsCuratorReaders downgrades our writer to a reader. Curator's reader
// is granted, and Curator's writer is not, before and after the downgrade.
func TestDowngradeAdmitsCuratorReaders(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		reader, writer, o := harness.Curator(t, s.Addr), harness.Curator(t, s.Addr), newObserver(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), handoverWait)
		defer cancel()
		path := s.Chroot + "/downgrade"
		hold, err := dialZklock(t, s, "").RWMutex(path).Writer().Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		line := []*acquirer{{peer: reader, kind: "read"}, {peer: writer, kind: "write"}}
		for i, c := range line {
			c.acquire(ctx, path, func(error) {})
			o.await(t, ctx, i+2, path)
		}
		token := hold.Token()
		if err := hold.Downgrade(ctx); err != nil {
			t.Fatal(err)
		}
		if hold.Token() != token {
			t.Errorf("token %#x became %#x", token, hold.Token())
		}
		if err := line[0].wait(ctx); err != nil {
			t.Fatalf("Curator's reader after the downgrade: %v", err)
		}
		o.await(t, ctx, 3, path)
		if err := hold.Verify(ctx); err != nil {
			t.Errorf("Verify after the downgrade: %v", err)
		}
		for _, release := range []func(context.Context) error{hold.Release, reader.Release} {
			select {
			case <-line[1].granted:
				t.Fatalf("Curator's writer was granted next to a reader: %v", line[1].err)
			default:
			}
			if err := release(ctx); err != nil {
				t.Error(err)
			}
		}
		if err := line[1].wait(ctx); err != nil {
			t.Fatalf("Curator's writer after all readers: %v", err)
		}
		if err := writer.Release(ctx); err != nil {
			t.Error(err)
		}
	})
}
