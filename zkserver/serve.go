package zkserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/zklock/zklock/internal/memnet"
)

// Serve accepts connections from ln until the server ends, and closes ln. It
// may be called for several listeners at a time, of TCP, unix sockets or
// anything else that gives a net.Conn. For TLS, give it a listener made by
// [Secure], [Unify] or tls.NewListener: the handshake is done on the
// connection's goroutine and within the handshake timeout. It returns
// ErrServerClosed after Shutdown or Close, an error that wraps ErrStorage
// after a failure of the disk, or what a broken listener says.
func (s *Server) Serve(ln net.Listener) error {
	if err := s.addListener(ln); err != nil {
		return err
	}
	defer s.removeListener(ln)
	var delay time.Duration
	for {
		nc, err := ln.Accept()
		if err == nil {
			delay = 0
			s.startHandler(nc, true)
			continue
		}
		if s.draining() {
			return s.endError()
		}
		if !passing(err) {
			return fmt.Errorf("zkserver: accept on %v: %w", ln.Addr(), err)
		}
		delay = min(max(2*delay, 5*time.Millisecond), time.Second)
		s.logPeer(&s.limiters.accept, slog.LevelWarn, "cannot accept, will try again; raise the limit of open files if this stays",
			ln.Addr(), err)
		if !s.sleep(delay) {
			return s.endError()
		}
	}
}

// passing reports whether Accept failed for want of descriptors or memory.
func passing(err error) bool {
	var temporary interface{ Temporary() bool }
	// net.Error's Temporary is deprecated for want of a clear meaning; for
	// Accept it has one, which net/http relies on as well: no descriptors left.
	return errors.As(err, &temporary) && temporary.Temporary() || outOfMemory(err)
}

// ServeConn serves one connection and returns when it has ended. The limits
// on the number of connections and the Accept option do not apply. It returns
// ErrServerClosed, having closed nc, if the server has ended already.
func (s *Server) ServeConn(nc net.Conn) error {
	c, err := s.admit(nc, false)
	if err != nil {
		nc.Close()
		return err
	}
	s.handle(c)
	return nil
}

// DialContext connects from inside the process, without a listener; it has
// the signature of net.Dialer's method so that it can stand in for it.
// network and addr are ignored.
func (s *Server) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, server := memnet.Pipe()
	if err := s.startHandler(server, false); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// startHandler serves nc on a goroutine of its own, which ends with the
// connection; Shutdown and Close wait for it.
func (s *Server) startHandler(nc net.Conn, limited bool) error {
	c, err := s.admit(nc, limited)
	if err != nil {
		nc.Close()
		return err
	}
	go s.handle(c)
	return nil
}

// admit registers a connection, unless the server has ended or a limit is
// reached. The caller of a success must call handle.
func (s *Server) admit(nc net.Conn, limited bool) (*conn, error) {
	from, last := peerOf(nc), limited && takesReserved(nc)
	addr := addressKey(from)
	s.mu.Lock()
	err := s.refusal(addr, limited)
	if err == nil && last {
		err = errDescriptors
	}
	shed := s.makeRoom(addr, err)
	if err != nil && shed == nil {
		closed := s.state != serving
		s.mu.Unlock()
		if !closed {
			s.tellRefused(from, err)
		}
		return nil, err
	}
	s.lastID++
	c := newConn(s, s.lastID, nc, limited)
	c.place = int32(len(s.live))
	s.live = append(s.live, c)
	if limited {
		s.perIP[addr]++
		c.counted = true
		s.noteOpening(c)
	}
	s.handlers.Add(1)
	s.mu.Unlock()
	if shed != nil {
		shed.abort(errShed)
	}
	s.count.accepted.Add(1)
	return c, nil
}

// refusal says why a connection from addr cannot be taken. The caller holds
// s.mu.
func (s *Server) refusal(addr netip.Addr, limited bool) error {
	switch {
	case s.state != serving:
		return ErrServerClosed
	case !limited:
		return nil
	case s.opts.MaxConns > 0 && len(s.live)-s.leaving >= s.opts.MaxConns:
		return fmt.Errorf("%w: %d are open", errTotal, len(s.live)-s.leaving)
	case addr.IsValid() && s.opts.MaxClientConns >= 0 && s.perIP[addr] >= s.opts.MaxClientConns:
		return fmt.Errorf("%w: %d are open from %v", errPerAddress, s.perIP[addr], addr)
	}
	return nil
}

// handle serves an admitted connection to its end, or until the loop has taken
// it over. It waits for the writer's goroutine, if there is one.
func (s *Server) handle(c *conn) {
	if !s.converse(c) {
		return
	}
	c.awaitWriter()
	s.forget(c)
	s.handlers.Done()
}

// converse reads a connection to its end, or until the loop has taken it over:
// then it returns false.
func (s *Server) converse(c *conn) bool {
	s.keepAlive(c.raw)
	s.setHandshakeDeadline(c.nc)
	if err := s.vet(c); err != nil {
		c.abort(fmt.Errorf("%w: %w", errByOption, err))
		c.endRead()
	} else if err := s.secure(c); err != nil {
		c.failRead(err)
		c.abort(nil)
		c.endRead()
	} else {
		return c.read()
	}
	return true
}

// vet asks the Accept option about a connection.
func (s *Server) vet(c *conn) error {
	if !c.limited || s.opts.Accept == nil {
		return nil
	}
	return s.opts.Accept(c.raw)
}

// setHandshakeDeadline bounds the time until the first request. A server that
// began to drain has set a deadline in the past, which must stay.
func (s *Server) setHandshakeDeadline(nc net.Conn) {
	nc.SetDeadline(time.Now().Add(s.opts.HandshakeTimeout))
	if s.draining() {
		nc.SetReadDeadline(past)
	}
}

// forget removes an ended connection from the server's books.
func (s *Server) forget(c *conn) {
	c.mu.Lock()
	reason := c.reason
	if c.driven != nil && c.proven != nil {
		c.proven.ends.Stop()
	}
	c.mu.Unlock()
	s.tellEnded(c.peer, reason)
	c.giveBack()
	s.pool.wake()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unlist(c)
	if c.counted {
		s.noteOpened(c)
		s.uncount(c)
	} else if c.limited {
		s.leaving--
	}
	if s.state == draining && len(s.live) == 0 {
		close(s.drained)
	}
}

// unlist takes c out of the list of all. The caller holds s.mu.
func (s *Server) unlist(c *conn) {
	last := len(s.live) - 1
	s.live[c.place] = s.live[last]
	s.live[c.place].place = c.place
	s.live[last] = nil
	s.live = s.live[:last]
}

// uncount frees c's place among the connections of its address. The caller holds s.mu.
func (s *Server) uncount(c *conn) {
	c.counted = false
	addr := addressKey(c.peer)
	if s.perIP[addr]--; s.perIP[addr] == 0 {
		delete(s.perIP, addr)
	}
}

// addListener registers ln, so that the server's end closes it.
func (s *Server) addListener(ln net.Listener) error {
	s.mu.Lock()
	ok := s.state == serving
	if ok {
		s.listeners[ln] = true
	}
	s.mu.Unlock()
	if !ok {
		ln.Close()
		return s.endError()
	}
	return nil
}

func (s *Server) removeListener(ln net.Listener) {
	ln.Close()
	s.mu.Lock()
	delete(s.listeners, ln)
	s.mu.Unlock()
}

// endError is what Serve returns once the server has ended.
func (s *Server) endError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case s.storageErr != nil:
		return s.storageErr // a read-only server that drains, say
	}
	return ErrServerClosed
}

// sleep waits for d, or until the server ends, which it reports as false.
func (s *Server) sleep(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.stop:
		return false
	}
}
