package zkserver

import (
	"fmt"
	"net"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// gatedTCP is a server with a port whose syncs wait for the gate and give what
// comes through it; the loop leaves them to the syncer.
func gatedTCP(t *testing.T, outstanding int) (g *gated, c *raw, open func()) {
	mem, fs := onMemory(t, 63)
	s, addr := serveTCP(t, func(o *Options) { o.DataDir, o.FS, o.MaxOutstanding = mem.DataDir, mem.FS, outstanding })
	g = &gated{Server: s, fs: fs, gate: make(chan error)}
	let := sync.OnceFunc(func() { close(g.gate) })
	t.Cleanup(let) // or the server's end would wait
	c = dialTCP(t, addr)
	c.nc.SetDeadline(time.Now().Add(20 * time.Second))
	g.shut()
	return g, c, let
}

// until waits for what another goroutine brings about.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// pipeline is n creates, of nodes with data of this size.
func pipeline(n, size int) (all []byte) {
	for i := range n {
		all = wire.AppendRequest(all, int32(i+1), wire.OpCreate,
			&wire.CreateRequest{Path: fmt.Sprintf("/n%d", i), Data: make([]byte, size), ACL: openACL()})
	}
	return all
}

// TestHeldBackConnectionOutlivesAQuestion has a client with as many requests
// unanswered as it may have, and more in the socket. In the very round that finds
// this somebody asks for the figures, which wait for the sync: the rest is answered
// all the same, without another byte of the client's.
func TestHeldBackConnectionOutlivesAQuestion(t *testing.T) {
	g, c, open := gatedTCP(t, 2)
	held, written, asked := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go g.ask(func() { // the rounds of the loop, which does not look up meanwhile
		close(held)
		<-written
		g.glance()
		g.round()
		g.call(func() { close(asked) })
		g.round()
	})
	<-held
	c.write(pipeline(5, 10))
	close(written)
	until(t, "the connection is held back", func() bool { return g.count.throttled.Load() > 0 })
	open()
	<-asked
	for range 5 {
		wantAnswer(t, c)
	}
}

// TestLostStorageLetsGoOfConnections fails a sync under clients that have sent as
// much as they may, or far more: their sockets are closed, and forgotten.
func TestLostStorageLetsGoOfConnections(t *testing.T) {
	for name, of := range map[string]struct{ outstanding, requests, size int }{
		"all taken":             {1, 1, 10},
		"more in the socket":    {3, 40, 10_000},
		"no bound, and a flood": {1000, 40, 100_000},
	} {
		t.Run(name, func(t *testing.T) {
			g, c, open := gatedTCP(t, of.outstanding)
			go c.nc.Write(pipeline(of.requests, of.size)) // ends with the connection
			g.gate <- syscall.EIO
			open()
			until(t, "no connection is left", func() bool { return g.Stats().Connections == 0 })
			if n := g.Stats().Outstanding; n != 0 {
				t.Errorf("%d requests are outstanding without a connection", n)
			}
		})
	}
}

// TestCutWithAnswersOnTheirWayIsLetGo closes a session behind as many answers as
// may wait for a sync, and cuts the connection before they have left.
func TestCutWithAnswersOnTheirWayIsLetGo(t *testing.T) {
	g, c, open := gatedTCP(t, 1000)
	g.fs.SetFault(nil)
	c.create("/data", wire.ModePersistent)
	c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, parkBytes-130), Version: -1})
	g.shut()
	all := wire.AppendRequest(pipeline(1, 10), 2, wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
	all = wire.AppendRequest(all, 3, wire.OpCloseSession, nil)
	c.write(all)
	k := g.only()
	until(t, "all is applied", func() bool { return g.pool.requests.Load() == 3 })
	k.abort(errTooSlow)
	until(t, "the loop has looked", func() bool { return !g.hasReady() })
	open()
	until(t, "no connection is left", func() bool { return g.Stats().Connections == 0 })
}

// only is the one connection.
func (s *Server) only() (c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.live) > 0 {
		c = s.live[0]
	}
	return c
}

// TestPingDuringAWaitForTheDiskCounts has the loop wait for a sync, with a large
// batch behind it, until a session's time is just over. Its ping came in time, and
// stands in the socket.
func TestPingDuringAWaitForTheDiskCounts(t *testing.T) {
	s, addr := serveTCP(t, nil)
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := over(t, nc)
	c.handshake(wire.ConnectRequest{Timeout: 1000})
	s.ask(func() {
		due, _ := s.loop.tree.NextTick()
		s.loop.syncing, s.loop.filling.size = true, roundBytes+1
		c.send(wire.OpPing, nil)
		time.AfterFunc(due+stall/10-s.elapsed(), func() { s.synced <- landing{index: s.loop.durable} })
		s.round()
	})
	wantAnswer(t, c)
	if c.exists("/a") {
		t.Error("there is a node")
	}
}

// TestCutBeforeItIsPolled cuts a connection that was handed over, and the loop sees
// to that before it takes it over: then there is nothing to be polled any more.
func TestCutBeforeItIsPolled(t *testing.T) {
	s, _ := serveTCP(t, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	nc, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	k, err := s.admit(nc, true)
	if err != nil || s.thePoller() == nil {
		t.Fatalf("no connection, or no poller: error %v", err)
	}
	fd, err := takeSocket(nc)
	if err != nil {
		t.Fatal(err)
	}
	polls := -1
	s.ask(func() {
		first := wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 30_000})
		s.acceptHanded(k, &polled{fd: int32(fd), partial: first, readable: true})
		handed := s.takeHanded()
		k.abort(errTooSlow)
		s.round()
		s.round()
		for _, c := range handed {
			s.adopt(c)
		}
		s.round()
		polls = s.loop.polls
	})
	if n := s.Stats().Connections; polls != 0 || n != 0 {
		t.Errorf("%d sockets are polled and %d connections open, want none", polls, n)
	}
}
