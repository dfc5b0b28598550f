package zkserver

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// TestNonReadingClientIsThrottled keeps replies for any time, in bounded memory.
func TestNonReadingClientIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.MaxOutstanding = 50
		s := start(t, opts)
		c := login(t, s, time.Hour)
		const size, n = 100_000, 400
		c.do(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: make([]byte, size), ACL: openACL()})
		go func() {
			for range n {
				c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/big"})
			}
		}()
		synctest.Wait() // everything stands: nobody reads
		held := 0
		s.runOnLoop(func() {
			for _, x := range s.loop.conns {
				held += len(x.out) + x.writing + len(x.in.buf)
			}
		})
		if most := maxPending + inboxBytes + 2*size; held > most {
			t.Errorf("%d bytes are held for a client that does not read, want at most %d", held, most)
		}
		login(t, s, time.Hour).create("/other", wire.ModePersistent) // others are served
		for i := range n {
			if _, _, err := c.next(); err != nil {
				t.Fatalf("reply %d of %d: %v", i, n, err)
			}
		}
	})
}

func TestUnreadEventsCloseConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.MaxUnread = 100 << 10
		var log strings.Builder
		opts.Logger = logTo(&log)
		s := start(t, opts)
		deaf, busy := login(t, s, time.Hour), login(t, s, time.Hour)
		deaf.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/", Mode: 1})
		for range 10_000 {
			busy.create("/some-rather-long-name-", wire.ModePersistentSequential)
		}
		deaf.wantClosed()
		if again := resume(t, s, deaf); again.session.SessionID != deaf.session.SessionID {
			t.Error("the session did not survive the cut")
		}
		s.Close()
		if !strings.Contains(log.String(), errTooSlow.Error()) {
			t.Errorf("the log does not name the cause: %s", log.String())
		}
	})
}

// TestMaxUnreadTotalClosesSlowest has many clients that do not read, each within its own
// limit.
func TestMaxUnreadTotalClosesSlowest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.MaxUnreadTotal = 2 << 20
		opts.Logger = discard()
		s := start(t, opts)
		good := login(t, s, time.Hour)
		good.do(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: make([]byte, 300_000), ACL: openACL()})
		const n = 30
		for range n {
			deaf := login(t, s, time.Hour)
			deaf.send(wire.OpGetData, &wire.GetDataRequest{Path: "/big"})
			synctest.Wait()
			held := 0
			s.runOnLoop(func() {
				for _, c := range s.loop.conns {
					held += c.unread()
				}
			})
			if held > 2<<20 {
				t.Fatalf("%d bytes are kept for clients that do not read", held)
			}
		}
		st := s.Stats()
		if cut := st.ConnectionsCut.SlowReaders; cut < n/2 || st.Connections != n+1-int(cut) {
			t.Errorf("%d were cut and %d connections are left of %d", cut, st.Connections, n+1)
		}
		good.create("/fine", wire.ModePersistent)
	})
}
