package zktest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zkserver"
)

// placeholder is what Servers returns: an address reserved for documentation,
// so that a test that forgets DialContext reaches nobody.
const placeholder = "192.0.2.1:2181"

// Server is a ZooKeeper server in the test's process, with a [Relay] before it.
type Server struct {
	Relay
	listeners
	opts zkserver.Options
	fs   *memfs.FS // nil unless the data is in memory

	mu  sync.Mutex
	srv *zkserver.Server // nil while stopped
}

// Option changes the options that [Start] gives to the server.
type Option func(*zkserver.Options)

// OnDisk keeps the data in a directory of the file system.
func OnDisk(dir string) Option {
	return func(o *zkserver.Options) { o.DataDir, o.FS = dir, nil }
}

// Volatile keeps nothing at all: after Restart the server is empty.
func Volatile(o *zkserver.Options) { o.DataDir, o.FS = "", nil }

// Start starts a server that ends with the test. Unless options say otherwise
// its data directory is in memory, so that Restart keeps the data; sessions
// may have any timeout from 10ms to an hour; all four-letter words and TTL
// nodes are allowed; warnings go to the test's log. It does no I/O and works
// in testing/synctest bubbles.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	fs := memfs.New(rand.New(rand.NewPCG(1, 2)))
	s := &Server{opts: zkserver.Options{
		DataDir:           "/zktest",
		FS:                fs,
		MinSessionTimeout: 10 * time.Millisecond,
		MaxSessionTimeout: time.Hour,
		MaxClientConns:    -1,
		FourLetterWords:   []string{"*"},
		ExtendedTypes:     true,
		Logger:            slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}}
	for _, o := range opts {
		o(&s.opts)
	}
	if s.opts.FS == fs {
		s.fs = fs
	}
	s.init(s.dialServer)
	t.Cleanup(s.shut)
	if err := s.boot(); err != nil {
		t.Fatal(err)
	}
	return s
}

// Servers is the connection string for zk.Options with this server's
// DialContext. It leads nowhere without that.
func (s *Server) Servers() string { return placeholder }

// Addr is the address of ListenTCP, and what Servers returns before.
func (s *Server) Addr() string {
	if s.ln == nil {
		return placeholder
	}
	return s.listeners.addr
}

// ListenTCP makes the server reachable on a loopback port too, for other
// processes, and returns its address. It is not for synctest bubbles.
func (s *Server) ListenTCP(t testing.TB) string {
	t.Helper()
	if err := s.listen(&s.Relay); err != nil {
		t.Fatal(err)
	}
	return s.listeners.addr
}

// DialContext connects to the server through the relay, within the process. It
// has the signature of zk.Options.DialContext and ignores network and addr.
func (s *Server) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	client, relay := memnet.Pipe()
	if err := s.connect(ctx, relay); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// Dial makes a client that is closed with the test. Each edit may change its
// options, which begin with this server's DialContext.
func (s *Server) Dial(t testing.TB, edit ...func(*zk.Options)) *zk.Client {
	t.Helper()
	opts := &zk.Options{DialContext: s.DialContext}
	for _, e := range edit {
		e(opts)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := zk.Dial(ctx, s.Servers(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// Server returns the server itself, nil while it is stopped.
func (s *Server) Server() *zkserver.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.srv
}

// FS returns the file system in memory, for faults of the disk, or nil if the
// data is elsewhere.
func (s *Server) FS() *memfs.FS { return s.fs }

// Stop ends the server at once, as SIGKILL would. Connections are cut, and new
// ones refused until Restart.
func (s *Server) Stop() {
	s.mu.Lock()
	srv := s.srv
	s.srv = nil
	s.mu.Unlock()
	if srv != nil {
		srv.Close()
	}
}

// Crash is Stop with a loss of power: what the server had not synced is lost,
// in part and by chance. Only with the data in memory.
func (s *Server) Crash() {
	s.Stop()
	if s.fs != nil {
		s.fs.Crash()
	}
}

// Restart stops the server, if it runs, and starts one on the same data.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop()
	if s.opts.DataDir == "" {
		// An empty server takes its first transaction and session ids from the
		// clock. In a bubble that stands still: clients that have seen more
		// would be refused for ever.
		time.Sleep(time.Millisecond)
	}
	if err := s.boot(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) boot() error {
	srv, err := zkserver.New(s.opts)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.srv = srv
	return nil
}

// dialServer connects the relay to the server of the moment.
func (s *Server) dialServer(ctx context.Context) (net.Conn, error) {
	srv := s.Server()
	if srv == nil {
		return nil, fmt.Errorf("zktest: the server is stopped")
	}
	return srv.DialContext(ctx, "", "")
}

// shut ends everything, at the test's end.
func (s *Server) shut() {
	s.listeners.close()
	s.Relay.close()
	s.Stop()
}
