package zkserver

import (
	"fmt"
	"sync"

	"github.com/zklock/zklock/internal/servertest"
	"github.com/zklock/zklock/internal/wire"
)

// fillControls gives a test its hold on the server.
func (s *Server) fillControls(c *servertest.Controls) {
	if c != nil {
		*c = servertest.Controls{Pause: s.pause, JumpSequence: s.jumpSequence}
	}
}

// pause keeps the loop in a call until the function that it returns is called,
// or the server ends.
func (s *Server) pause() (resume func()) {
	held, release := make(chan struct{}), make(chan struct{})
	s.mu.Lock()
	s.calls = append(s.calls, func() {
		close(held)
		select {
		case <-release:
		case <-s.stop:
		}
	})
	s.mu.Unlock()
	s.wakeLoop()
	select {
	case <-held:
	case <-s.done:
	}
	return sync.OnceFunc(func() { close(release) })
}

// jumpSequence returns when the jump is durable.
func (s *Server) jumpSequence(path string, next int32) error {
	var code wire.ErrCode
	ran := s.ask(func() {
		code = s.loop.tree.JumpSequence(path, next, s.now(), &s.loop.out)
		s.wakeLoop()
	})
	// Calls run at the end of a round, behind its sync: the next one's is behind
	// the record's.
	switch {
	case !ran || !s.ask(func() {}):
		return s.endError()
	case code == wire.ErrBadArguments:
		return fmt.Errorf("zkserver: children of %s have had the number %d or a higher one: %w", path, next, code)
	case code != wire.ErrOK:
		return fmt.Errorf("zkserver: no sequence of %s: %w", path, code)
	}
	return nil
}
