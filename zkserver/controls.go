package zkserver

import (
	"fmt"
	"sync"

	"github.com/zklock/zklock/internal/servertest"
	"github.com/zklock/zklock/internal/wire"
)

func init() {
	servertest.Apply = func(options any, setup servertest.Setup) { options.(*Options).setup = setup }
}

// fillControls gives a test control over the server.
func (s *Server) fillControls(c *servertest.Controls) {
	if c != nil {
		*c = servertest.Controls{Pause: s.pause, JumpSequence: s.jumpSequence}
	}
}

// pause blocks the loop until the returned function is called or the server ends.
func (s *Server) pause() (resume func()) {
	paused, resumed := make(chan struct{}), make(chan struct{})
	s.postToLoop(func() {
		close(paused)
		select {
		case <-resumed:
		case <-s.stop:
		}
	})
	select {
	case <-paused:
	case <-s.done:
	}
	return sync.OnceFunc(func() { close(resumed) })
}

// jumpSequence returns when the jump is durable.
func (s *Server) jumpSequence(path string, next int32) error {
	var code wire.ErrCode
	ran := s.runOnLoop(func() {
		code = s.loop.tree.JumpSequence(path, next, s.now(), &s.loop.out)
		s.wakeLoop()
	})
	// Functions run at the end of a round, after its sync. The second one runs after the
	// sync of the record.
	switch {
	case !ran || !s.runOnLoop(func() {}):
		return s.serveError()
	case code == wire.ErrBadArguments:
		return fmt.Errorf("zkserver: set sequence of %s to %d: a child has that number or a higher one: %w", path, next, code)
	case code != wire.ErrOK:
		return fmt.Errorf("zkserver: set sequence of %s to %d: %w", path, next, code)
	}
	return s.storageError() // if the sync failed
}
