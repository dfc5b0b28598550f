package zkserver

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/internal/wire"
)

// dialMem connects to a listener in memory, and reports whether a session was
// given.
func dialMem(t testing.TB, network *memnet.Network, addr string) (*raw, bool) {
	t.Helper()
	nc, err := network.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := over(t, nc)
	c.nc.Write(wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 10_000}))
	frame, err := c.frame()
	if err == nil {
		c.session.Decode(jute.NewReader(frame))
	}
	return c, err == nil
}

// onNetwork serves on a network in memory.
func onNetwork(t testing.TB, opts Options) (*Server, *memnet.Network) {
	t.Helper()
	s := start(t, opts)
	var network memnet.Network
	ln, err := network.Listen("tcp", "10.0.0.1:2181")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	return s, &network
}

func TestMaxClientConns(t *testing.T) {
	for _, test := range []struct {
		name          string
		opts          Options
		open, allowed int
	}{
		{"default", Options{}, 70, 60},
		{"three", Options{MaxClientConns: 3}, 10, 3},
		{"no limit", Options{MaxClientConns: -1}, 100, 100},
		{"of all", Options{MaxClientConns: -1, MaxConns: 5}, 10, 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			test.opts.Logger = discard()
			s, network := onNetwork(t, test.opts)
			var clients []*raw
			for range test.open {
				if c, ok := dialMem(t, network, "10.0.0.1:2181"); ok {
					clients = append(clients, c)
				}
			}
			if len(clients) != test.allowed {
				t.Fatalf("%s: %d of %d connections served, want %d", test.name, len(clients), test.open, test.allowed)
			}
			login(t, s, time.Second) // from inside the process: no limit
			clients[0].nc.Close()
			synctest.Wait()
			if _, ok := dialMem(t, network, "10.0.0.1:2181"); !ok && test.name != "of all" {
				t.Errorf("%s: a connection that ended still counts", test.name)
			}
		})
	}
}

// remoteListener hands out connections that seem to come from given addresses.
type remoteListener struct {
	net.Listener
	remotes chan string
}

// remoteConn is a connection of another address.
type remoteConn struct {
	net.Conn
	remote net.Addr
}

func (c *remoteConn) RemoteAddr() net.Addr { return c.remote }

func (l *remoteListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &remoteConn{nc, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(<-l.remotes))}, nil
}

// TestAddressesOfOneHostCountTogether: a client that has many addresses for the asking
// has one share of the connections.
func TestAddressesOfOneHostCountTogether(t *testing.T) {
	for _, test := range []struct {
		name   string
		first  string
		second string
		one    bool
	}{
		{"loopback", "127.0.0.1:1", "127.200.3.4:1", true},
		{"an IPv6 network", "[2001:db8:1:2::1]:1", "[2001:db8:1:2:ffff:ffff:ffff:ffff]:1", true},
		{"an IPv4 address in IPv6", "192.0.2.1:1", "[::ffff:192.0.2.1]:1", true},
		{"loopback in IPv6 notation", "127.0.0.1:1", "[::ffff:127.9.9.9]:1", true},
		{"a link-local address over two interfaces", "[fe80::1%1]:1", "[fe80::1%2]:1", true},
		{"IPv4", "192.0.2.1:1", "192.0.2.2:1", false},
		{"two IPv6 networks", "[2001:db8:1:2::1]:1", "[2001:db8:1:3::1]:1", false},
		{"IPv4 addresses in IPv6", "[::ffff:192.0.2.1]:1", "[::ffff:192.0.2.2]:1", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := quiet(t)
				opts.Logger = discard()
				opts.MaxClientConns = 1
				s := start(t, opts)
				var network memnet.Network
				ln, err := network.Listen("tcp", "10.0.0.1:2181")
				if err != nil {
					t.Fatal(err)
				}
				remotes := make(chan string, 1)
				go s.Serve(&remoteListener{ln, remotes}) // ends with the server
				remotes <- test.first
				first, ok := dialMem(t, &network, "10.0.0.1:2181")
				if !ok {
					t.Fatal("the first connection was refused")
				}
				remotes <- test.second
				if _, ok := dialMem(t, &network, "10.0.0.1:2181"); ok == test.one {
					t.Errorf("%s next to %s: served %v", test.second, test.first, ok)
				}
				first.nc.Close()
				synctest.Wait()
				remotes <- test.first
				if _, ok := dialMem(t, &network, "10.0.0.1:2181"); !ok {
					t.Error("a connection that ended still counts")
				}
			})
		})
	}
}

// TestHalfOpenConnectionsGiveWay has an address use up its connections without a
// handshake: clients of that address, and of others, still get sessions.
func TestHalfOpenConnectionsGiveWay(t *testing.T) {
	for _, opts := range []Options{{MaxClientConns: 60}, {MaxClientConns: -1, MaxConns: 60}} {
		synctest.Test(t, func(t *testing.T) {
			opts.Logger = discard()
			s, network := onNetwork(t, opts)
			silent := func(n int) {
				for range n {
					nc, err := network.DialContext(t.Context(), "tcp", "10.0.0.1:2181")
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { nc.Close() })
				}
				synctest.Wait()
			}
			silent(60)
			var clients []*raw
			for i := range 60 {
				c, ok := dialMem(t, network, "10.0.0.1:2181")
				if !ok {
					t.Fatalf("client %d is shut out by connections without a handshake", i)
				}
				clients = append(clients, c)
				silent(1) // takes the place of another silent one, if any is left
			}
			synctest.Wait()
			st := s.Stats()
			if st.Connections != 60 || st.ConnectionsCut.HandshakeTimeouts != 119 {
				t.Errorf("%d connections, want 60; %d without a handshake were cut, want 119", st.Connections, st.ConnectionsCut.HandshakeTimeouts)
			}
			for i, c := range clients {
				if _, err := c.try(wire.OpPing, nil); err != nil {
					t.Errorf("client %d, with a handshake, was cut: %v", i, err)
				}
			}
			if _, ok := dialMem(t, network, "10.0.0.1:2181"); ok {
				t.Error("there are more clients than connections may be")
			}
		})
	}
}

func TestAcceptOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		var log strings.Builder
		opts.Logger = logTo(&log)
		refuse := true
		opts.Accept = func(nc net.Conn) error {
			if refuse {
				return errors.New("another user")
			}
			return nil
		}
		s, network := onNetwork(t, opts)
		if _, ok := dialMem(t, network, "10.0.0.1:2181"); ok {
			t.Error("a refused connection was served")
		}
		synctest.Wait()
		refuse = false
		if _, ok := dialMem(t, network, "10.0.0.1:2181"); !ok {
			t.Error("an accepted connection was not served")
		}
		s.Close()
		if !strings.Contains(log.String(), "another user") {
			t.Errorf("the log does not say why: %s", log.String())
		}
	})
}

func TestMaxFrame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.MaxFrame = 1000
		s := start(t, opts)
		c := login(t, s, time.Hour)
		c.do(wire.OpCreate, &wire.CreateRequest{Path: "/x", Data: make([]byte, 900), ACL: openACL()})
		c.send(wire.OpSetData, &wire.SetDataRequest{Path: "/x", Data: make([]byte, 1100), Version: -1})
		c.wantClosed()
	})
}

// TestClientThatDoesNotRead has replies held back without a bound on time, and
// the memory they take bounded.
func TestClientThatDoesNotRead(t *testing.T) {
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
		s.ask(func() {
			for _, x := range s.loop.conns {
				held += len(x.out) + x.writing + len(x.in.buf)
			}
		})
		if most := parkBytes + inboxBytes + 2*size; held > most {
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

func TestFloodOfEventsCutsTheClientOff(t *testing.T) {
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

// TestOnePipelineDoesNotHoldUpOthers floods the server from one connection and
// counts how many of its replies come before another's one.
func TestOnePipelineDoesNotHoldUpOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		opts.MaxOutstanding = 100_000
		s := start(t, opts)
		flood, other := login(t, s, time.Hour), login(t, s, time.Hour)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for {
				if _, _, err := flood.next(); err != nil {
					return
				}
			}
		}()
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
		flood.nc.Close()
		<-done
	})
}

func TestManyConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := quiet(t)
		s := start(t, opts)
		const n = 2000
		clients := make([]*raw, n)
		for i := range clients {
			clients[i] = login(t, s, time.Hour)
			clients[i].do(wire.OpExists, &wire.ExistsRequest{Path: "/bell", Watch: true}, wire.ErrNoNode)
		}
		login(t, s, time.Hour).create("/bell", wire.ModePersistent)
		for i, c := range clients {
			if c.do(wire.OpPing, nil); len(c.events) != 1 {
				t.Fatalf("client %d has %d events, want 1", i, len(c.events))
			}
		}
		if st := s.Stats(); st.Sessions != n+1 || st.Connections != n+1 {
			t.Errorf("%d sessions and %d connections, want %d", st.Sessions, st.Connections, n+1)
		}
	})
}
