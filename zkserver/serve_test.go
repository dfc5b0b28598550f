package zkserver

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/internal/wire"
)

// dialMem connects to a listener in memory, and reports whether the server granted a session.
func dialMem(t testing.TB, network *memnet.Network, addr string) (*rawClient, bool) {
	t.Helper()
	nc, err := network.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	c := newRawClient(t, nc)
	return c, c.connect(wire.ConnectRequest{Timeout: 10_000}) == nil
}

// onNetwork starts a server on a network in memory.
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

func TestMaxClientConnsIsEnforced(t *testing.T) {
	for _, test := range []struct {
		name          string
		opts          Options
		open, allowed int
	}{
		{"default", Options{}, 70, 60},
		{"three", Options{MaxClientConns: 3}, 10, 3},
		{"no limit", Options{MaxClientConns: -1}, 100, 100},
		{"in total", Options{MaxClientConns: -1, MaxConns: 5}, 10, 5},
	} {
		synctest.Test(t, func(t *testing.T) {
			s, network := onNetwork(t, test.opts)
			var clients []*rawClient
			for range test.open {
				if c, ok := dialMem(t, network, "10.0.0.1:2181"); ok {
					clients = append(clients, c)
				}
			}
			if len(clients) != test.allowed {
				t.Fatalf("%s: %d of %d connections served, want %d", test.name, len(clients), test.open, test.allowed)
			}
			login(t, s, time.Second) // connections within the process have no limit
			clients[0].nc.Close()
			synctest.Wait()
			if _, ok := dialMem(t, network, "10.0.0.1:2181"); !ok && test.name != "in total" {
				t.Errorf("%s: a connection that ended still counts", test.name)
			}
		})
	}
}

// remoteListener accepts connections that seem to come from given addresses.
type remoteListener struct {
	net.Listener
	remotes chan string
}

// remoteConn is a connection with another remote address.
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
	remote := <-l.remotes
	if uid, ok := strings.CutPrefix(remote, "user "); ok {
		n, err := strconv.Atoi(uid)
		return &remoteConn{nc, userAddr{nc.RemoteAddr(), n}}, err
	}
	return &remoteConn{nc, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(remote))}, nil
}

// onRemotes starts a server on a network in memory. Each connection seems to come from the next
// address in remotes.
func onRemotes(t *testing.T, opts Options) (s *Server, network *memnet.Network, remotes chan string) {
	t.Helper()
	s, network, remotes = start(t, opts), new(memnet.Network), make(chan string, 1)
	ln, err := network.Listen("tcp", "10.0.0.1:2181")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(&remoteListener{ln, remotes}) // ends with the server
	return s, network, remotes
}

// TestAddressesOfOneHostCountTogether checks that all addresses of one host share its limit of
// connections. On a unix socket, each user has a limit.
func TestAddressesOfOneHostCountTogether(t *testing.T) {
	user := func(n int) string { return fmt.Sprintf("user %d", n) }
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
		{"a user", user(os.Geteuid() + 1), user(os.Geteuid() + 1), true},
		{"two users", user(os.Geteuid() + 1), user(os.Geteuid() + 2), false},
		{"root", user(0), user(0), false},
		{"the server's own user", user(os.Geteuid()), user(os.Geteuid()), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, network, remotes := onRemotes(t, Options{MaxClientConns: 1})
				remotes <- test.first
				first, ok := dialMem(t, network, "10.0.0.1:2181")
				if !ok {
					t.Fatal("the first connection was refused")
				}
				remotes <- test.second
				if _, ok := dialMem(t, network, "10.0.0.1:2181"); ok == test.one {
					t.Errorf("%s after %s: served %v", test.second, test.first, ok)
				}
				first.nc.Close()
				synctest.Wait()
				remotes <- test.first
				if _, ok := dialMem(t, network, "10.0.0.1:2181"); !ok {
					t.Error("a connection that ended still counts")
				}
			})
		})
	}
}

// TestNewConnectionReplacesHalfOpen: an address uses all its connections without a handshake.
// Clients of that address, and of others, still get sessions.
func TestNewConnectionReplacesHalfOpen(t *testing.T) {
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
			var clients []*rawClient
			for i := range 60 {
				c, ok := dialMem(t, network, "10.0.0.1:2181")
				if !ok {
					t.Fatalf("client %d was refused because of connections without a handshake", i)
				}
				clients = append(clients, c)
				silent(1) // replaces another silent one, if any is left
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
				t.Error("the server serves more clients than the limit")
			}
		})
	}
}

// connFrom is a connection from an address.
type connFrom struct {
	net.Conn
	from net.TCPAddr
}

func (c *connFrom) RemoteAddr() net.Addr { return &c.from }

// TestNewConnectionReplacesOldestHalfOpen: many addresses have half-open connections. A new one
// replaces the oldest of its address at the limit per address, and the oldest of all addresses at
// the limit in total.
func TestNewConnectionReplacesOldestHalfOpen(t *testing.T) {
	const addrs = 100
	for _, opts := range []Options{{MaxClientConns: 2}, {MaxClientConns: -1, MaxConns: 2 * addrs}} {
		synctest.Test(t, func(t *testing.T) {
			s := start(t, opts)
			dial := func(addr byte) (ended chan struct{}) {
				near, far := memnet.Pipe()
				must(t, s.startHandler(&connFrom{far, net.TCPAddr{IP: net.IPv4(10, 0, 0, addr), Port: 1}}, true))
				ended = make(chan struct{})
				go func() { // ends with the connection
					defer close(ended)
					_, _ = io.Copy(io.Discard, near)
					near.Close()
				}()
				return ended
			}
			var conns []chan struct{} // two of each address
			for i := range 2 * addrs {
				conns = append(conns, dial(byte(i%addrs)))
			}
			const from = 70
			dial(from)
			synctest.Wait()
			want := from
			if opts.MaxConns > 0 {
				want = 0
			}
			for i, ended := range conns {
				select {
				case <-ended:
					if i != want {
						t.Errorf("connection %d was replaced, want %d", i, want)
					}
				default:
					if i == want {
						t.Errorf("connection %d was not replaced", i)
					}
				}
			}
			s.Close()
			if n, m := s.halfOpen.Len(), len(s.halfOpenByAddr); n != 0 || m != 0 {
				t.Errorf("%d connections, and %d addresses, are still half-open", n, m)
			}
		})
	}
}

func TestAcceptOptionRefusesConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions(t)
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

func TestEventReachesThousandsOfConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions(t)
		s := start(t, opts)
		const n = 2000
		clients := make([]*rawClient, n)
		for i := range clients {
			clients[i] = login(t, s, time.Hour)
			clients[i].do(wire.OpExists, &wire.ExistsRequest{Path: "/watched", Watch: true}, wire.ErrNoNode)
		}
		login(t, s, time.Hour).create("/watched", wire.ModePersistent)
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

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// logTo returns a logger that writes to w. The handler serializes writes. A test reads w when
// the server is idle or has ended.
func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// listenMem returns a listener in memory.
func listenMem(t testing.TB) *memnet.Listener {
	t.Helper()
	var network memnet.Network
	ln, err := network.Listen("tcp", "10.0.0.1:2181")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func TestListenersShareOneTree(t *testing.T) {
	s := start(t, testOptions(t))
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s")
	unix, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for _, ln := range []net.Listener{tcp, unix} {
		wg.Go(func() {
			if err := s.Serve(ln); !errors.Is(err, ErrServerClosed) {
				t.Errorf("Serve on %v said %v", ln.Addr(), err)
			}
		})
	}
	var clients []*rawClient
	for _, addr := range []net.Addr{tcp.Addr(), unix.Addr()} {
		clients = append(clients, dialSocket(t, addr.Network(), addr.String()))
	}
	clients[0].create("/seen", wire.ModeEphemeral)
	if !clients[1].exists("/seen") {
		t.Error("the two listeners serve different trees")
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	wg.Wait()
	for _, c := range clients {
		c.wantClosed()
	}
	if err := s.Serve(listenMem(t)); !errors.Is(err, ErrServerClosed) {
		t.Errorf("Serve after Shutdown said %v", err)
	}
}

func TestServeConnReturnsWithTheConnection(t *testing.T) {
	s := start(t, testOptions(t))
	client, server := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeConn(server) }()
	c := newRawClient(t, client)
	c.handshake(wire.ConnectRequest{Timeout: 10_000})
	c.create("/x", wire.ModePersistent)
	client.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	s.Close()
	client, server = net.Pipe()
	if err := s.ServeConn(server); !errors.Is(err, ErrServerClosed) {
		t.Errorf("ServeConn after Close said %v", err)
	}
	client.Close()
}

// failingListener first fails the given number of times, as without free descriptors.
type failingListener struct {
	net.Listener
	failures int
}

type noDescriptors struct{}

func (noDescriptors) Error() string   { return "too many open files" }
func (noDescriptors) Timeout() bool   { return false }
func (noDescriptors) Temporary() bool { return true }

func (l *failingListener) Accept() (net.Conn, error) {
	if l.failures--; l.failures >= 0 {
		return nil, &net.OpError{Op: "accept", Err: noDescriptors{}}
	}
	return l.Listener.Accept()
}

func TestTemporaryAcceptErrorIsRetried(t *testing.T) {
	s := start(t, testOptions(t))
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(&failingListener{Listener: tcp, failures: 3})
	dialTCP(t, tcp.Addr().String())
}

func TestListenAndServeReturnsStartError(t *testing.T) {
	if err := ListenAndServe("127.0.0.1:0", &Options{SnapshotsKept: -5}); !errors.Is(err, ErrInvalidOptions) {
		t.Errorf("with invalid options: %v", err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	dir := t.TempDir()
	opts := testOptions(t)
	opts.DataDir = dir
	if err := ListenAndServe(taken.Addr().String(), &opts); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("on a taken address: %v", err)
	}
	start(t, opts) // the other server has released the directory
}

func TestListenerErrorEndsOnlyItsServe(t *testing.T) {
	s := start(t, testOptions(t))
	ln := listenMem(t)
	ln.Close()
	if err := s.Serve(ln); err == nil || errors.Is(err, ErrServerClosed) {
		t.Errorf("Serve on a closed listener said %v", err)
	}
	login(t, s, time.Second)
}
