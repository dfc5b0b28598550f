package zkserver

import (
	"context"
	"net"
	"slices"
)

// Shutdown ends the server in good order: it accepts and reads nothing more,
// answers the requests that it has read, closes every connection, writes a
// snapshot and gives the data directory up. Sessions are not ended: with a
// data directory they go on when a server runs on it again. If ctx ends first
// the rest is done as by Close, and ctx's error is returned. It returns nil
// when the server has ended already. It must not be called from the Accept
// option.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if s.state == serving {
		s.state = draining
		if len(s.live) == 0 {
			close(s.drained)
		}
	}
	listeners, conns := s.everything()
	s.mu.Unlock()
	for _, ln := range listeners {
		ln.Close()
	}
	for _, c := range conns {
		// The reader ends; the loop answers what it has read, and then
		// closes the connection.
		c.stopReading()
	}
	s.call(s.stopPolling)
	select {
	case <-s.drained:
		s.end(nil, true)
	case <-s.done:
	case <-ctx.Done():
		s.Close()
		return ctx.Err()
	}
	<-s.done
	s.handlers.Wait()
	return nil
}

// stopReading ends the reading of a connection that has a goroutine for it.
func (c *conn) stopReading() {
	c.mu.Lock()
	var nc net.Conn
	if c.driven != nil {
		nc = c.nc
	}
	c.mu.Unlock()
	if nc != nil {
		nc.SetReadDeadline(past)
	}
}

// Close ends the server at once: connections are cut, what was not yet
// acknowledged may be lost, and no snapshot is written. What was acknowledged
// is in the data directory, if there is one. It returns when every goroutine
// of the server has ended, and nil. It must not be called from the Accept
// option.
func (s *Server) Close() error {
	s.end(nil, false)
	<-s.done
	s.handlers.Wait()
	return nil
}

// Done is closed when the server has ended, by Shutdown or Close, or because
// its storage failed in a way that leaves nothing to be read; see [ErrStorage].
// A server that has become read-only has not ended.
func (s *Server) Done() <-chan struct{} { return s.done }

// end closes listeners and connections and tells the loop to end. Only the
// first call has an effect. err is what Serve shall return.
func (s *Server) end(err error, graceful bool) {
	s.mu.Lock()
	if s.state == closed {
		s.mu.Unlock()
		return
	}
	if err == nil {
		err = s.storageErr // a server that was read-only did not end well
	}
	s.state, s.err, s.graceful = closed, err, graceful
	listeners, conns := s.everything()
	s.mu.Unlock()
	close(s.stop)
	s.wakeLoop()
	for _, ln := range listeners {
		ln.Close()
	}
	for _, c := range conns {
		c.abort(net.ErrClosed)
	}
}

// everything lists what is open. The caller holds s.mu.
func (s *Server) everything() ([]net.Listener, []*conn) {
	listeners := make([]net.Listener, 0, len(s.listeners))
	for ln := range s.listeners {
		listeners = append(listeners, ln)
	}
	return listeners, slices.Clone(s.live)
}
