package zktest

import (
	"testing"
	"time"
)

// Stop ends the server at once, as SIGKILL would. Connections are cut, and new
// ones refused until Restart.
func (s *Server) Stop() {
	s.mu.Lock()
	srv := s.srv
	s.srv, s.resume = nil, nil
	s.mu.Unlock()
	if srv != nil {
		srv.Close()
	}
}

// Crash is Stop with a loss of power: what the server had not synced is lost,
// in part and by chance. Only with the data in memory, as by default.
func (s *Server) Crash() {
	s.Stop()
	if s.fs != nil {
		s.fs.Crash()
	}
}

// Restart stops the server, if it runs, and starts one on the same data.
// Sessions go on, each with its full timeout; clients come back by themselves.
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

// Pause holds the server up, as SIGSTOP or a pause of its machine would: what
// clients send waits, nothing is answered, no session ends. Stats and other
// questions to [Server.Server] wait as well. A server that is stopped or paused
// already stays so.
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

// Resume ends Pause. What has waited is answered, and clients that the pause
// would have made late are heard before they are expired.
func (s *Server) Resume() {
	s.mu.Lock()
	resume := s.resume
	s.resume = nil
	s.mu.Unlock()
	if resume != nil {
		resume()
	}
}
