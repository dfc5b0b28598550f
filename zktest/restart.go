package zktest

import (
	"testing"
	"time"
)

// Stop ends the server at once, as SIGKILL would. It closes the connections, and the
// relay refuses new ones until Restart.
func (s *Server) Stop() {
	s.mu.Lock()
	srv := s.srv
	s.srv, s.resume = nil, nil
	s.mu.Unlock()
	if srv != nil {
		srv.Close()
	}
}

// Crash is Stop with a loss of power: a random part of the data that the server had not
// synced is lost. It needs data in memory, which is the default.
func (s *Server) Crash() {
	s.Stop()
	if s.fs != nil {
		s.fs.Crash()
	}
}

// Restart stops the server, if it runs, and starts a server on the same data. Sessions
// continue, each with its full timeout, and clients reconnect by themselves.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop()
	if s.opts.DataDir == "" {
		// An empty server takes its first transaction and session ids from the
		// clock. In a bubble that stands still: clients that have seen more
		// would be refused forever.
		time.Sleep(time.Millisecond)
	}
	if err := s.boot(); err != nil {
		t.Fatal(err)
	}
}

// Pause stops the server's work, as SIGSTOP or a pause of its machine would, until
// Resume: requests wait, the server answers nothing, and no session ends. Methods of
// [Server.Server] such as Stats wait as well. If the server is already stopped or paused,
// Pause does nothing.
func (s *Server) Pause() {
	s.mu.Lock()
	pause, skip := s.controls.Pause, s.srv == nil || s.resume != nil
	if !skip {
		// This is for concurrent calls of Pause, until the real function is there.
		s.resume = func() {}
	}
	srv := s.srv
	s.mu.Unlock()
	if skip {
		return
	}
	resume := pause()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.srv == srv && s.resume != nil {
		s.resume = resume
		return
	}
	resume() // it was resumed, stopped or restarted meanwhile
}

// Resume ends Pause. The server answers the requests that waited. It reads them before
// it expires sessions, so the pause itself ends no session whose client sent a request.
func (s *Server) Resume() {
	s.mu.Lock()
	resume := s.resume
	s.resume = nil
	s.mu.Unlock()
	if resume != nil {
		resume()
	}
}
