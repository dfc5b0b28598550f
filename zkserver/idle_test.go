package zkserver

import (
	"testing"
	"testing/synctest"
	"time"
)

// A server without sessions waits for nothing but its clients: in a bubble a
// clock that it kept going would hide a deadlock for ever.
func TestServerWithoutSessionsNeverWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, quiet(t))
		rounds := func() (n int64) {
			s.ask(func() { n = s.loop.rounds })
			return n
		}
		synctest.Wait()
		before := rounds()
		time.Sleep(1000 * time.Hour) // in the bubble
		// The question itself is one.
		if n := rounds() - before; n != 1 {
			t.Errorf("%d rounds in 1000 hours without a session", n)
		}
	})
}

// A server in memory that follows another within a millisecond begins higher
// than that one ended: else the clients of the first are refused for ever.
func TestServerInMemoryBeginsHigher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zxid := func() (z int64) {
			s := start(t, quiet(t))
			defer s.Close()
			c := login(t, s, time.Second)
			c.create("/a", 0)
			return s.Stats().Zxid
		}
		first := zxid()
		time.Sleep(time.Microsecond) // in the bubble
		if second := zxid(); second <= first {
			t.Errorf("zxid %#x after %#x", second, first)
		}
	})
}
