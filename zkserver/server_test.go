package zkserver

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

func TestEventPrecedesAnswerWithChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testOptions(t))
		a, b := login(t, s, 10*time.Second), login(t, s, 10*time.Second)
		a.create("/x", wire.ModePersistent)
		b.do(wire.OpGetData, &wire.GetDataRequest{Path: "/x", Watch: true})
		a.do(wire.OpSetData, &wire.SetDataRequest{Path: "/x", Data: []byte("new"), Version: -1})
		got := b.do(wire.OpGetData, &wire.GetDataRequest{Path: "/x"}).(*wire.GetDataResponse)
		if string(got.Data) != "new" {
			t.Errorf("data %q, want new", got.Data)
		}
		// The server sends the event before any answer that reflects the change.
		if len(b.events) != 1 || b.events[0].Type != wire.EventNodeDataChanged || b.events[0].Path != "/x" {
			t.Errorf("events %+v, want one change of /x", b.events)
		}
	})
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testOptions(t))
		c := login(t, s, 10*time.Second)
		c.create("/q", wire.ModePersistent)
		const n = 1500
		go func() {
			for range n {
				c.send(wire.OpCreate, &wire.CreateRequest{Path: "/q/n-", ACL: openACL(), Flags: wire.ModeEphemeralSequential})
			}
		}()
		zxid := int64(0)
		for i := range n {
			h, _, err := c.next()
			if err != nil || h.Err != 0 {
				t.Fatal(err, h.Err)
			}
			if want := int32(i) + 2; h.Xid != want || h.Zxid <= zxid {
				t.Fatalf("reply %d has xid %d zxid %#x after %#x", i, h.Xid, h.Zxid, zxid)
			}
			zxid = h.Zxid
		}
	})
}

func TestSessionExpiresAtItsTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testOptions(t))
		watcher := login(t, s, time.Hour)
		expiring := login(t, s, 1300*time.Millisecond)
		expiring.create("/e", wire.ModeEphemeral)
		last := time.Now()
		watcher.do(wire.OpExists, &wire.ExistsRequest{Path: "/e", Watch: true})
		if _, err := watcher.frame(); err != nil {
			t.Fatal(err)
		}
		if after := time.Since(last); after < 1300*time.Millisecond || after > 1400*time.Millisecond {
			t.Errorf("the ephemeral node was deleted after %v, want 1.3s to 1.4s", after)
		}
		expiring.wantClosed() // the server must close the half-open connection
		if again := resume(t, s, expiring); again.session.SessionID != 0 {
			t.Errorf("an expired session was resumed")
		}
		synctest.Wait() // the server may see the ends of connections later
		if st := s.Stats(); st.Sessions != 1 || st.Connections != 1 || st.SessionsExpired != 1 {
			t.Errorf("%d sessions, %d connections, %d expired; want 1 each", st.Sessions, st.Connections, st.SessionsExpired)
		}
	})
}

func TestPingsExtendSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testOptions(t))
		c := login(t, s, time.Second)
		for range 20 {
			time.Sleep(900 * time.Millisecond)
			c.do(wire.OpPing, nil)
		}
		c.create("/still", wire.ModeEphemeral)
	})
}

func TestSessionMovesToANewConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testOptions(t))
		old := login(t, s, 10*time.Second)
		old.create("/e", wire.ModeEphemeral)
		c := resume(t, s, old)
		if c.session.SessionID != old.session.SessionID {
			t.Fatalf("session %#x, want %#x", c.session.SessionID, old.session.SessionID)
		}
		old.wantClosed()
		if !c.exists("/e") {
			t.Error("the ephemeral node was lost")
		}
		c.do(wire.OpCloseSession, nil)
		c.wantClosed()
		if login(t, s, time.Second).exists("/e") {
			t.Error("the ephemeral node outlived its session")
		}
	})
}

func TestRestartKeepsSessionsAndNodes(t *testing.T) {
	for name, stop := range map[string]func(*Server) error{
		"shutdown": func(s *Server) error { return s.Shutdown(context.Background()) },
		"close":    (*Server).Close,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts, _ := onMemory(t, 1)
				s := start(t, opts)
				old := login(t, s, 4*time.Second)
				old.create("/p", wire.ModePersistent)
				old.create("/p/e", wire.ModeEphemeral)
				must(t, stop(s))
				time.Sleep(time.Hour) // no session expires while the server is down

				s = start(t, opts)
				time.Sleep(3900 * time.Millisecond) // a full timeout from the start
				c := resume(t, s, old)
				if c.session.SessionID != old.session.SessionID {
					t.Fatalf("session %#x, want %#x", c.session.SessionID, old.session.SessionID)
				}
				if !c.exists("/p/e") {
					t.Error("the ephemeral node was lost")
				}
				time.Sleep(4100 * time.Millisecond)
				if login(t, s, time.Second).exists("/p/e") {
					t.Error("the session did not expire after the restart")
				}
			})
		})
	}
}

func TestMemoryServerZxidsGrowAcrossRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last int64
		for range 5 {
			s := start(t, testOptions(t))
			c := login(t, s, time.Second)
			for range 100 {
				c.create("/n-", wire.ModePersistentSequential)
			}
			first := c.do(wire.OpExists, &wire.ExistsRequest{Path: "/n-0000000000"}).(*wire.ExistsResponse).Stat.Czxid
			if first <= last {
				t.Fatalf("zxid %#x after %#x", first, last)
			}
			last = c.lastZxid
			s.Close()
			time.Sleep(time.Millisecond)
		}
	})
}

// TestFirstTransactionIDs checks that a new data directory begins in epoch 0, below every
// ensemble. A server in memory begins at the clock and below 2^53, even at the last time for
// which this is documented.
func TestFirstTransactionIDs(t *testing.T) {
	for name, durable := range map[string]bool{"durable": true, "in memory": false} {
		for _, at := range []time.Time{{}, time.Date(2248, 1, 1, 0, 0, 0, 0, time.UTC)} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					time.Sleep(time.Until(at)) // the bubble's clock starts in 2000
					opts := testOptions(t)
					if durable {
						opts, _ = onMemory(t, 1)
					}
					c := login(t, start(t, opts), time.Second)
					c.create("/a", wire.ModePersistent)
					switch got := c.lastZxid; {
					case durable && got != 2: // the session is the first
						t.Errorf("the first create is transaction %d", got)
					case !durable && (got < time.Now().UnixMilli()<<10 || got >= 1<<53):
						t.Errorf("the first create is transaction %d at %v", got, time.Now())
					}
				})
			})
		}
	}
}

func TestShutdownAnswersAppliedRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, _ := onMemory(t, 1)
		s := start(t, opts)
		c := login(t, s, 10*time.Second)
		const n = 100
		for range n {
			c.send(wire.OpCreate, &wire.CreateRequest{Path: "/n-", ACL: openACL(), Flags: wire.ModePersistentSequential})
		}
		must(t, s.Shutdown(t.Context()))
		answered := 0
		for {
			h, _, err := c.next()
			if err != nil {
				break
			}
			if h.Err != 0 {
				t.Fatal(h.Err)
			}
			answered++
		}
		s = start(t, opts)
		kids := login(t, s, time.Second).do(wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/"}).(*wire.GetChildrenResponse).Children
		if applied := len(kids) - 1; applied != answered { // without /zookeeper
			t.Errorf("%d creates applied, %d answered", applied, answered)
		}
	})
}

func TestShutdownEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions(t)
		opts.MaxUnread = 1 << 30
		s := start(t, opts)
		c := login(t, s, time.Hour)
		c.do(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: make([]byte, 1<<19), ACL: openACL()})
		for range 10 { // more than fits into the connection's buffers
			c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/big"})
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown said %v", err)
		}
		if _, err := s.DialContext(t.Context(), "", ""); !errors.Is(err, ErrServerClosed) {
			t.Errorf("DialContext after Shutdown said %v", err)
		}
	})
}

// TestMemoryServerZxidsGrowWithinMillisecond: a server in memory starts within a millisecond of
// the end of another. It must start above that server's last id, or the server would refuse the
// clients of the other one forever.
func TestMemoryServerZxidsGrowWithinMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zxid := func() (z int64) {
			s := start(t, testOptions(t))
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
