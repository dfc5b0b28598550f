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

// A Server is a ZooKeeper server in the test's process, with a [Relay] in front of it. It
// is safe for concurrent use.
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

// OnDisk returns an option that keeps the data in the directory dir, instead of memory.
func OnDisk(dir string) Option {
	return func(o *zkserver.Options) { o.DataDir = dir }
}

// Volatile is an option that stores no data: after Restart, the server is empty.
func Volatile(o *zkserver.Options) { o.DataDir = "" }

// inMemory is the data directory in the file system in memory.
const inMemory = "/zktest"

// Start starts a server that ends with the test. By default, its data directory is in
// memory, so that Restart keeps the data. Sessions may have any timeout from 10ms to an
// hour. Any number of connections, all four-letter words, and TTL nodes are allowed.
// Warnings go to the test's log. The server does no I/O and works in testing/synctest
// bubbles.
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

// New is Start without a test, as in TestMain. The caller must call Close. The server logs
// nothing unless an option sets a Logger.
func New(opts ...Option) (*Server, error) {
	s := &Server{opts: zkserver.Options{
		DataDir:           inMemory,
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
	setup := servertest.Setup{Controls: &s.controls}
	if s.opts.DataDir == inMemory {
		s.fs = memfs.New(rand.New(rand.NewPCG(1, 2)))
		setup.FS = s.fs
	}
	servertest.Apply(&s.opts, setup)
	s.init(s.dialServer, s.dialServer, new(passwords))
	if err := s.boot(); err != nil {
		return nil, err
	}
	return s, nil
}

// Close ends the server and all its connections. The end of the test that was passed to
// Start calls it.
func (s *Server) Close() {
	s.Relay.close()
	s.Stop()
}

// Server returns the server itself, for its Stats or to serve other listeners. It returns
// nil while the server is stopped.
func (s *Server) Server() *zkserver.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.srv
}

// JumpSequence sets the number of the next sequential child of the node at path, as if that
// many children had been created and deleted. 1<<31 - 3 is two creates before the last
// number. JumpSequence fails if next was already used, because numbers never repeat, and if
// the server is stopped or paused. It survives a Restart.
func (s *Server) JumpSequence(path string, next int32) error {
	s.mu.Lock()
	jump, stopped, paused := s.controls.JumpSequence, s.srv == nil, s.resume != nil
	s.mu.Unlock()
	switch {
	case stopped:
		return fmt.Errorf("zktest: %w", errStopped)
	case paused:
		return errors.New("zktest: the server is paused; Resume it first")
	}
	return jump(path, next)
}

// errStopped is the error of calls to a stopped server.
var errStopped = errors.New("the server is stopped; Restart it first")

// boot starts a server on the existing data.
func (s *Server) boot() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	srv, err := zkserver.New(&s.opts)
	s.srv = srv
	return err
}

// dialServer connects the relay to the running server.
func (s *Server) dialServer(ctx context.Context) (net.Conn, error) {
	srv := s.Server()
	if srv == nil {
		return nil, errStopped
	}
	return srv.DialContext(ctx, "", "")
}
