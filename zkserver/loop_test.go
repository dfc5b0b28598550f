package zkserver

import (
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// TestPausedServerReadsPingsBeforeExpiring blocks the loop for longer than a session timeout. If
// a ping follows immediately, as from the socket's buffer, the session stays. Otherwise it
// expires.
func TestPausedServerReadsPingsBeforeExpiring(t *testing.T) {
	for _, ping := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, testOptions(t))
			c := login(t, s, time.Second)
			c.create("/e", wire.ModeEphemeral)
			s.runOnLoop(func() { time.Sleep(3 * time.Second) })
			time.Sleep(pauseGrace / 2)
			if ping {
				c.do(wire.OpPing, nil)
			}
			time.Sleep(pauseGrace)
			if got := login(t, s, time.Minute).exists("/e"); got != ping {
				t.Errorf("ping after a pause %v: the node exists %v", ping, got)
			}
		})
	}
}

// TestQueuedRequestsKeepSessions: clients write so much to a slow disk that a ping waits in the
// queue beyond the session timeout. Because the ping arrived in time, the session stays until
// its client is silent.
func TestQueuedRequestsKeepSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts, fs := onMemory(t, 43)
		opts.SnapshotBytes = 1 << 40
		s := start(t, opts)
		writer := login(t, s, time.Hour)
		writer.create("/data", wire.ModePersistent)
		writers := make([]*rawClient, 40)
		for i := range writers {
			writers[i] = login(t, s, time.Hour)
		}
		c := login(t, s, 3*time.Second)
		c.create("/e", wire.ModeEphemeral)
		fs.SetFault(func(op memfs.Op) memfs.Fault {
			if op.Kind == memfs.OpSync {
				time.Sleep(time.Second)
			}
			return memfs.Fault{}
		})
		var writes []byte
		for i := range 2 {
			writes = wire.AppendRequest(writes, int32(i), wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 1_000_000), Version: -1})
		}
		for _, w := range writers {
			go w.nc.Write(writes) // ends with the connection
			go w.drain()
		}
		for range 8 {
			c.send(wire.OpPing, nil)
			time.Sleep(time.Second)
		}
		if c.answers(8) != 8 || !c.exists("/e") {
			t.Error("the session ended although its client sent pings")
		}
		time.Sleep(time.Minute)
		if writer.exists("/e") {
			t.Error("the session of a silent client did not end")
		}
	})
}

func (s *Server) countRounds() (n int64) {
	s.runOnLoop(func() { n = s.loop.rounds })
	return n
}

// TestIdleServerWakesOncePerMinute runs a server with a silent session and a container for half
// an hour of the bubble's clock.
func TestIdleServerWakesOncePerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testOptions(t))
		c := login(t, s, time.Hour)
		c.do(wire.OpCreateContainer, &wire.CreateRequest{Path: "/c", ACL: openACL(), Flags: wire.ModeContainer})
		before := s.countRounds()
		time.Sleep(30 * time.Minute)
		if n := s.countRounds() - before; n < 30 || n > 70 {
			t.Errorf("%d rounds in half an hour, want one or two a minute", n)
		}
	})
}

// TestSlowLinkKeepsSession: a client with a slow link takes longer than its session timeout to
// read an answer. Its pings wait in the socket. The session stays until the pings end, as with
// ZooKeeper, which counts a ping when it reads it.
func TestSlowLinkKeepsSession(t *testing.T) {
	for _, pings := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, testOptions(t))
			writer := login(t, s, time.Hour)
			writer.create("/data", wire.ModePersistent)
			writer.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 1_000_000), Version: -1})
			c := login(t, s, 3*time.Second)
			c.create("/e", wire.ModeEphemeral)
			for range 3 {
				c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
			}
			slow := make([]byte, 1000)
			for i := range 3000 {
				if pings && i%500 == 0 {
					c.send(wire.OpPing, nil)
				}
				if _, err := io.ReadFull(c.nc, slow); err != nil {
					break
				}
				time.Sleep(5 * time.Millisecond)
			}
			if writer.exists("/e") != pings {
				t.Errorf("pings %v: the session exists %v", pings, !pings)
			}
			time.Sleep(time.Minute)
			if writer.exists("/e") {
				t.Error("the session of a silent client did not end")
			}
		})
	}
}

// TestServerWithoutSessionsNeverWakes checks that a server without sessions sets no timer. In a
// bubble, a timer would advance the clock and hide a deadlock.
func TestServerWithoutSessionsNeverWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, testOptions(t))
		synctest.Wait()
		before := s.countRounds()
		time.Sleep(1000 * time.Hour) // in the bubble
		// The second count is a round itself.
		if n := s.countRounds() - before; n != 1 {
			t.Errorf("%d rounds in 1000 hours without a session", n)
		}
	})
}

// TestPipelineDoesNotDelayOtherClients floods the server from one connection while another
// client's requests are answered.
func TestPipelineDoesNotDelayOtherClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions(t)
		opts.MaxOutstanding = 100_000
		s := start(t, opts)
		flood, other := login(t, s, time.Hour), login(t, s, time.Hour)
		go flood.drain() // ends with the connection
		var b []byte
		for range 2000 {
			b = wire.AppendRequest(b, 1, wire.OpExists, &wire.ExistsRequest{Path: "/"})
		}
		go flood.nc.Write(b)
		for range 50 {
			other.do(wire.OpExists, &wire.ExistsRequest{Path: "/"})
		}
		synctest.Wait()
		if got := s.Stats().Received; got < 2050 {
			t.Errorf("%d requests received, want all", got)
		}
	})
}

// TestEndsOfConnectionsAreSpreadOverRounds checks that a round without time left does not end a
// connection. A later round does, and its time counts as a turn.
func TestEndsOfConnectionsAreSpreadOverRounds(t *testing.T) {
	s := start(t, testOptions(t))
	login(t, s, time.Hour).create("/x", wire.ModePersistent)
	s.runOnLoop(func() {
		s.loop.longestTurn = 0
		for _, c := range s.loop.conns {
			c.mu.Lock()
			c.readDone = true // as if its input had ended
			c.mu.Unlock()
			if s.reschedule(c, false) || c.phase == connDisconnected || !c.runnable {
				t.Errorf("without time: phase %d, runnable %v", c.phase, c.runnable)
			}
		}
	})
	for s.Stats().Connections > 0 {
		runtime.Gosched()
	}
	if s.Stats().LongestTurn == 0 {
		t.Error("the end of the connection does not count as a turn")
	}
}
