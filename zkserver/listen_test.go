package zkserver

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/internal/wire"
)

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }

// logTo writes a log where a test can read it. The handler serializes writes;
// the test reads when the server has ended or is idle.
func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

// listenMem makes a listener in memory.
func listenMem(t testing.TB) *memnet.Listener {
	t.Helper()
	var network memnet.Network
	ln, err := network.Listen("tcp", "10.0.0.1:2181")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func TestSeveralListeners(t *testing.T) {
	s := start(t, quiet(t))
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
	var clients []*raw
	for _, addr := range []net.Addr{tcp.Addr(), unix.Addr()} {
		nc, err := net.Dial(addr.Network(), addr.String())
		if err != nil {
			t.Fatal(err)
		}
		c := over(t, nc)
		c.handshake(wire.ConnectRequest{Timeout: 10_000})
		clients = append(clients, c)
	}
	clients[0].create("/seen", wire.ModeEphemeral)
	if !clients[1].exists("/seen") {
		t.Error("the two listeners lead to different trees")
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
	s := start(t, quiet(t))
	client, server := net.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.ServeConn(server) }()
	c := over(t, client)
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

// shakyListener fails a few times, as one does that runs out of descriptors.
type shakyListener struct {
	net.Listener
	failures int
}

type shortage struct{}

func (shortage) Error() string   { return "too many open files" }
func (shortage) Timeout() bool   { return false }
func (shortage) Temporary() bool { return true }

func (l *shakyListener) Accept() (net.Conn, error) {
	if l.failures--; l.failures >= 0 {
		return nil, &net.OpError{Op: "accept", Err: shortage{}}
	}
	return l.Listener.Accept()
}

func TestAcceptIsTriedAgain(t *testing.T) {
	s := start(t, quiet(t))
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(&shakyListener{Listener: tcp, failures: 3})
	nc, err := net.Dial("tcp", tcp.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	nc.SetDeadline(time.Now().Add(time.Minute))
	c := over(t, nc)
	c.handshake(wire.ConnectRequest{Timeout: 10_000})
}

func TestBrokenListenerEndsServeAlone(t *testing.T) {
	s := start(t, quiet(t))
	ln := listenMem(t)
	ln.Close()
	if err := s.Serve(ln); err == nil || errors.Is(err, ErrServerClosed) {
		t.Errorf("Serve on a closed listener said %v", err)
	}
	login(t, s, time.Second)
}
