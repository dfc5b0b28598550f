package zklock_test

import (
	"strings"
	"testing"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// TestLongestNames: whatever name a lock was made with, its path names it as well,
// so that tokens are found by it and a re-entered hold has its own.
func TestLongestNames(t *testing.T) {
	tidy(t, func(t *testing.T, srv *zktest.Server) {
		c := dial(t, srv)
		for _, name := range []string{strings.Repeat("x", 512), strings.Repeat("x/", 15) + "x"} {
			for i, l := range []*zklock.Lock{c.Mutex(name), c.Semaphore(name, 1), c.RWMutex(name).Reader()} {
				h := acquire(t, l)
				if h.TokenOf(l.Path()) != h.Token() || h.TokenOf(name) != h.Token() {
					t.Errorf("%.20s: tokens %d, %d, not %d", name, h.TokenOf(l.Path()), h.TokenOf(name), h.Token())
				}
				if i == 0 {
					in := again(t, h, l.Reentrant())
					if in.Token() != h.Token() {
						t.Errorf("%.20s: token %d, after re-entering %d", name, h.Token(), in.Token())
					}
					release(t, in)
				}
				if found, err := c.Inspect(t.Context(), l.Path()); err != nil || len(found) == 0 {
					t.Errorf("%.20s: %+v, %v", name, found, err)
				}
				release(t, h)
			}
		}
		for _, bad := range []string{"/zklock/" + strings.Repeat("x", 513), "/zklock/" + strings.Repeat("x/", 16) + "x", "/" + strings.Repeat("x/", 16) + "x"} {
			_, err := c.Mutex(bad).TryAcquire(t.Context())
			wants(t, bad[:20], err, zklock.ErrInvalidName)
		}
	})
}
