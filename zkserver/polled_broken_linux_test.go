package zkserver

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// TestBrokenWhileBehindIsLetGo has a client that asks for far more than it reads, and
// is killed: its kernel resets the connection. It ends then, and not at the end of
// its session an hour later: nobody will ever take the rest of the answers.
func TestBrokenWhileBehindIsLetGo(t *testing.T) {
	for name, requests := range map[string]int{"one long answer": 1, "more requests behind": 20} {
		t.Run(name, func(t *testing.T) {
			s, addr := serveTCP(t, func(o *Options) { o.MaxFrame = 32 << 20 })
			c := dialTCP(t, addr)
			c.create("/data", wire.ModePersistent)
			c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 12<<20), Version: -1})
			for range requests {
				c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
			}
			k := s.only()
			until(t, "the answers pile up", func() bool { return k.backlog() >= parkBytes })
			c.nc.(*net.TCPConn).SetLinger(0)
			c.nc.Close()
			until(t, "no connection is left", func() bool { return s.Stats().Connections == 0 })
			if st := s.Stats(); st.Sessions != 1 || st.ConnectionsCut.SlowReaders != 0 {
				t.Errorf("%d sessions, %d connections cut as slow; want one, which goes on, and none", st.Sessions, st.ConnectionsCut.SlowReaders)
			}
		})
	}
}

// TestBrokenWhileClosingIsLetGo resets a connection that the server is about to
// close, with an answer that was not read.
func TestBrokenWhileClosingIsLetGo(t *testing.T) {
	s, addr := serveTCP(t, func(o *Options) { o.MaxFrame = 32 << 20 })
	c := dialTCP(t, addr)
	c.create("/data", wire.ModePersistent)
	c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 12<<20), Version: -1})
	c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
	c.send(wire.OpCloseSession, nil)
	k := s.only()
	until(t, "the answers pile up", func() bool { return k.backlog() >= parkBytes })
	c.nc.(*net.TCPConn).SetLinger(0)
	c.nc.Close()
	until(t, "no connection is left", func() bool { return s.Stats().Connections == 0 })
	if n := s.Stats().Sessions; n != 0 {
		t.Errorf("%d sessions are left, want none: the end of it was read", n)
	}
}

// TestClientThatCannotHearIsLetGo has a client on a unix socket that goes on sending
// and has said that it reads no more: it is not served in silence.
func TestClientThatCannotHearIsLetGo(t *testing.T) {
	s := start(t, quiet(t))
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	nc, err := net.Dial("unix", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c := over(t, nc)
	c.handshake(wire.ConnectRequest{Timeout: 3_600_000})
	if err := nc.(*net.UnixConn).CloseRead(); err != nil {
		t.Fatal(err)
	}
	c.send(wire.OpPing, nil)
	until(t, "no connection is left", func() bool { return s.Stats().Connections == 0 })
}

// TestPingBehindALongAnswerCounts sends a ping over a socket behind an answer that its
// client takes its time for: the session ends later for that.
func TestPingBehindALongAnswerCounts(t *testing.T) {
	s, addr := serveTCP(t, func(o *Options) { o.MaxFrame = 32 << 20 })
	c := dialTCP(t, addr)
	c.create("/data", wire.ModePersistent)
	c.do(wire.OpSetData, &wire.SetDataRequest{Path: "/data", Data: make([]byte, 12<<20), Version: -1})
	end := func() (at time.Duration) {
		s.ask(func() {
			for _, at = range s.loop.tree.SessionEnds() {
			}
		})
		return at
	}
	for range 3 {
		c.send(wire.OpGetData, &wire.GetDataRequest{Path: "/data"})
	}
	k := s.only()
	until(t, "requests wait for the client to read", k.backlogged)
	before := end()
	c.send(wire.OpPing, nil)
	until(t, "the ping counts", func() bool { return end() > before })
	if !k.backlogged() {
		t.Error("the client was not behind any more")
	}
}
