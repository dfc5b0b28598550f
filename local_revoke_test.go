package zklock_test

import (
	"testing"
	"testing/synctest"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// TestLocalRevoked: whoever has the lock is told that somebody asks for it back, also
// if that was before he looked, and under a hold that was passed on; and a hold that
// is asked for is not passed on any further, whether anybody looks or not.
func TestLocalRevoked(t *testing.T) {
	for _, looks := range []string{"the first", "the second", "nobody"} {
		tidy(t, func(t *testing.T, srv *zktest.Server) {
			c, other := dial(t, srv), dial(t, srv)
			l := c.Mutex("revoked").Local(10)
			h := acquire(t, l)
			if looks == "the first" {
				h.Revoked()
			}
			second, third, fourth := waiting(t, t.Context(), l), waiting(t, t.Context(), l), waiting(t, t.Context(), l)
			foreign := waiting(t, t.Context(), other.Mutex("revoked"))
			release(t, h)
			next := got(t, "the next", second)
			if next.Node() != h.Node() {
				t.Fatal("it was not passed on")
			}
			synctest.Wait()
			if asked, err := other.Mutex("revoked").Revoke(t.Context()); err != nil || len(asked) != 1 {
				t.Fatal(asked, err)
			}
			synctest.Wait()
			if looks != "nobody" {
				asked := next.Revoked()
				synctest.Wait()
				select {
				case <-asked:
				default:
					t.Errorf("%s looked: who has it now was not told", looks)
				}
			}
			release(t, next)
			pending(t, "asked for", third)
			for _, w := range []<-chan *zklock.Hold{foreign, third, fourth} {
				release(t, got(t, "in turn", w))
			}
		})
	}
}
