package interop

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/zkreal"
)

// TestHandOverAtDeath: who is killed while it holds is followed by who waits,
// when its session has expired, whatever library either uses.
func TestHandOverAtDeath(t *testing.T) {
	ours := func(t *testing.T, addr string) *Peer { return Zklock(t, ZklockOptions{Servers: addr}) }
	curator := func(t *testing.T, addr string) *Peer { return Curator(t, addr) }
	kazoo := func(t *testing.T, addr string) *Peer { return Kazoo(t, addr) }
	onEach(t, func(t *testing.T, s zkreal.SharedServer) {
		o := newObserver(t, s)
		t.Run("each", func(t *testing.T) {
			for name, c := range map[string]struct {
				holder, waiter func(*testing.T, string) *Peer
				holds, waits   string
			}{
				"ours then Curator": {ours, curator, "mutex", "mutex"},
				"Curator then ours": {curator, ours, "mutex", "mutex"},
				"ours then kazoo":   {ours, kazoo, "mutex", "lock-shared"},
				"kazoo then ours":   {kazoo, ours, "lock", "mutex"},
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel() // they only wait for a session to expire
					ctx, cancel := context.WithTimeout(t.Context(), handoverWait)
					defer cancel()
					path := s.Chroot + "/" + strings.ReplaceAll(name, " ", "-")
					holder, waiter := c.holder(t, s.Addr), c.waiter(t, s.Addr)
					if _, err := holder.Acquire(ctx, c.holds, path, patience); err != nil {
						t.Fatal(err)
					}
					granted := make(chan error, 1)
					go func() { // ends with the grant, or with ctx
						_, err := waiter.Acquire(ctx, c.waits, path, patience)
						granted <- err
					}()
					o.await(t, ctx, 2, path)
					died := time.Now()
					holder.Kill()
					if err := <-granted; err != nil {
						t.Fatal(err)
					}
					// The last heartbeat was at most half a timeout before the death.
					if took := time.Since(died); took < SessionTimeout/3 || took > 2*SessionTimeout {
						t.Errorf("granted %v after the death, of a session of %v", took, SessionTimeout)
					} else {
						t.Logf("granted %v after the death", took)
					}
					if err := waiter.Release(ctx); err != nil {
						t.Error(err)
					}
				})
			}
		})
	})
}
