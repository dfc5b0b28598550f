package zktest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/servertest"
	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/zkserver"
)

// Server is a ZooKeeper server in the test's process, with a [Relay] before it.
// Its methods may be called from any goroutine.
type Server struct {
	Relay
	opts zkserver.Options
	fs   *memfs.FS // nil unless the data is in memory

	mu       sync.Mutex
	srv      *zkserver.Server // nil while stopped
	controls servertest.Controls
	resume   func() // nil unless paused
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
// may have any timeout from 10ms to an hour; any number of connections, all
// four-letter words and TTL nodes are allowed; warnings go to the test's log. It
// does no I/O and works in testing/synctest bubbles.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	log := func(o *zkserver.Options) {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	s, err := New(append([]Option{log}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// New is Start where there is no test, as in TestMain: Close must end the
// server. It logs nothing unless an option sets a Logger.
func New(opts ...Option) (*Server, error) {
	fs := memfs.New(rand.New(rand.NewPCG(1, 2)))
	s := &Server{opts: zkserver.Options{
		DataDir:           "/zktest",
		FS:                fs,
		MinSessionTimeout: 10 * time.Millisecond,
		MaxSessionTimeout: time.Hour,
		MaxClientConns:    -1,
		FourLetterWords:   []string{"*"},
		ExtendedTypes:     true,
		Logger:            slog.New(slog.DiscardHandler),
	}}
	for _, o := range opts {
		o(&s.opts)
	}
	if s.opts.FS == fs {
		s.fs = fs
	}
	s.opts.Controls = &s.controls
	s.init(s.dialServer, s.dialServer, new(passwords))
	if err := s.boot(); err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends the server and every connection to it. The end of the test that
// was given to Start calls it.
func (s *Server) Close() {
	s.Relay.close()
	s.Stop()
}

// Server returns the server itself, nil while it is stopped: for its Stats, or
// to serve listeners of one's own.
func (s *Server) Server() *zkserver.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.srv
}

// JumpSequence makes next the number of the next sequential child of the node
// at path, as if so many had come and gone: 1<<31 - 3 is two creates before the
// end of the numbers. Numbers never come twice, so that it fails when they have
// passed next. It survives a Restart.
func (s *Server) JumpSequence(path string, next int32) error {
	s.mu.Lock()
	jump, stopped := s.controls.JumpSequence, s.srv == nil
	s.mu.Unlock()
	if stopped {
		return fmt.Errorf("zktest: %w", errStopped)
	}
	return jump(path, next)
}

// errStopped is what a server that does not run answers.
var errStopped = errors.New("the server is stopped; Restart it first")

// boot starts a server on the data there is.
func (s *Server) boot() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	srv, err := zkserver.New(s.opts)
	s.srv = srv
	return err
}

// dialServer connects the relay to the server of the moment.
func (s *Server) dialServer(ctx context.Context) (net.Conn, error) {
	srv := s.Server()
	if srv == nil {
		return nil, errStopped
	}
	return srv.DialContext(ctx, "", "")
}
