package interop

import (
	"context"
	"testing"

	"github.com/zklock/zklock/test/zkreal"
)

// TestDowngradeBesideCurator: while our writer becomes a reader no writer of
// Curator's gets in, before or after, and Curator's reader does.
func TestDowngradeBesideCurator(t *testing.T) {
	onEach(t, func(t *testing.T, s zkreal.SharedServer) {
		reader, writer, o := Curator(t, s.Addr), Curator(t, s.Addr), newObserver(t, s)
		ctx, cancel := context.WithTimeout(t.Context(), handoverWait)
		defer cancel()
		path := s.Chroot + "/downgrade"
		hold, err := dialZklock(t, s, "").RWMutex(path).Writer().Acquire(ctx)
		if err != nil {
			t.Fatal(err)
		}
		line := []*comer{
			{peer: reader, kind: "read", granted: make(chan error, 1)},
			{peer: writer, kind: "write", granted: make(chan error, 1)},
		}
		for i, c := range line {
			go func() { // ends with the grant, or with ctx
				_, err := c.peer.Acquire(ctx, c.kind, path, handoverWait)
				c.granted <- err
			}()
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
			case err := <-line[1].granted:
				t.Fatalf("Curator's writer was granted beside a reader: %v", err)
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
