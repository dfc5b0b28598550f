package zkserver

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/zklock/zklock/internal/memnet"
)

// ListenAndServe creates a server, listens on the TCP address addr, such as "127.0.0.1:2181",
// and serves until the server ends because of a disk failure or the listener fails. The error
// is never nil. Every client that reaches the address can use the server. To end it, or for TLS and
// unix sockets, use [New] and [Server.Serve].
func ListenAndServe(addr string, o *Options) error {
	s, err := New(o)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return errors.Join(fmt.Errorf("zkserver: %w: give an address of this machine that no other program uses", err), s.Close())
	}
	err = s.Serve(ln)
	return errors.Join(err, s.Close())
}

// Serve accepts connections from ln until the server ends, and closes ln. It may run for
// several listeners at once: TCP, unix sockets, or anything else that provides a net.Conn.
// For TLS, pass a listener made by [Secure], [Unify], or tls.NewListener. The TLS handshake
// runs on the connection's goroutine, within the handshake timeout. Serve returns
// ErrServerClosed after Shutdown or Close, an error that wraps ErrStorage after a disk
// failure, or the error of a listener that fails.
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
			return s.serveError()
		}
		if !temporaryAcceptError(err) {
			return fmt.Errorf("zkserver: accept on %v: %w", ln.Addr(), err)
		}
		delay = min(max(2*delay, 5*time.Millisecond), time.Second)
		s.logPeer(&s.logLimits.accept, slog.LevelWarn, "cannot accept, will retry; if this continues, raise the limit of open files",
			ln.Addr(), err)
		if !s.sleepUnlessStopped(delay) {
			return s.serveError()
		}
	}
}

// temporaryAcceptError reports whether Accept failed because of missing descriptors or
// memory.
func temporaryAcceptError(err error) bool {
	var temporary interface{ Temporary() bool }
	// net.Error's Temporary is deprecated because its meaning is unclear. For Accept it is
	// clear, and net/http also relies on it: no descriptors are left.
	return errors.As(err, &temporary) && temporary.Temporary() || outOfMemory(err)
}

// ServeConn serves one connection and returns when it has ended. The limits on the number
// of connections and the Accept option do not apply. If the server has ended, it closes nc
// and returns ErrServerClosed.
func (s *Server) ServeConn(nc net.Conn) error {
	c, err := s.admit(nc, false)
	if err != nil {
		nc.Close()
		return err
	}
	s.handle(c)
	return nil
}

// DialContext connects from inside the process, without a listener. It has the signature of
// net.Dialer's method, so it can replace that. It ignores network and addr.
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

// startHandler serves nc on a new goroutine, which ends with the connection. Shutdown and
// Close wait for it.
func (s *Server) startHandler(nc net.Conn, limited bool) error {
	c, err := s.admit(nc, limited)
	if err != nil {
		nc.Close()
		return err
	}
	go s.handle(c)
	return nil
}

// admit registers a connection, unless the server has ended or a limit is reached. After
// success the caller must call handle.
//
// It refuses a connection with a reserved descriptor, even if one without a handshake can be
// replaced: the new one would keep its descriptor, and a later one would get the free one.
// The client succeeds when it connects again.
func (s *Server) admit(nc net.Conn, limited bool) (*conn, error) {
	from, last := peerOf(nc), limited && takesReserved(nc)
	addr := addressKey(from)
	s.mu.Lock()
	err := s.admissionError(from, limited)
	if err == nil && last {
		err = errDescriptors
	}
	evicted := s.evictHalfOpen(addr, err)
	if err != nil && (evicted == nil || last) {
		closed := s.state != serving
		s.mu.Unlock()
		if evicted != nil {
			evicted.abort(errEvicted)
		}
		if !closed {
			s.logRefused(from, err)
		}
		return nil, err
	}
	s.lastID++
	c := newConn(s, s.lastID, nc, from, limited)
	c.liveIndex = int32(len(s.live))
	s.live = append(s.live, c)
	if limited {
		s.perIP[addr]++
		s.addHalfOpen(c)
	}
	s.handlers.Add(1)
	s.mu.Unlock()
	if evicted != nil {
		evicted.abort(errEvicted)
	}
	s.count.accepted.Add(1)
	return c, nil
}

// admissionError returns why the server cannot take a connection from a peer, or nil. The
// caller holds s.mu.
func (s *Server) admissionError(from peer, limited bool) error {
	addr := addressKey(from)
	switch {
	case s.state != serving:
		return ErrServerClosed
	case !limited:
		return nil
	case s.opts.MaxConns > 0 && len(s.live)-len(s.evicted) >= s.opts.MaxConns:
		return fmt.Errorf("%w: %d are open", errTotal, len(s.live)-len(s.evicted))
	case s.opts.MaxClientConns < 0 || !addr.IsValid() || mayHaveAll(addr):
		return nil
	case s.perIP[addr] >= s.opts.MaxClientConns:
		return fmt.Errorf("%w: %d are open from %s", errPerAddress, s.perIP[addr], from.counted())
	}
	return nil
}

// handle serves an admitted connection until it ends or the loop takes it over. It waits
// for the writer's goroutine, if there is one.
func (s *Server) handle(c *conn) {
	if !s.readConn(c) {
		return
	}
	c.awaitWriter()
	s.unregister(c)
	s.handlers.Done()
}

// readConn reads a connection until it ends. It returns false if the loop takes the
// connection over.
func (s *Server) readConn(c *conn) bool {
	s.setKeepAlive(c.raw)
	s.setHandshakeDeadline(c.nc)
	if err := s.checkAccept(c); err != nil {
		c.abort(fmt.Errorf("%w: %w", errByOption, err))
		c.endRead()
	} else if err := s.handshakeTLS(c); err != nil {
		c.failRead(err)
		c.abort(nil)
		c.endRead()
	} else {
		return c.read()
	}
	return true
}

// checkAccept calls the Accept option for a connection.
func (s *Server) checkAccept(c *conn) error {
	if !c.limited || s.opts.Accept == nil {
		return nil
	}
	return s.opts.Accept(c.raw)
}

// setHandshakeDeadline bounds the time until the first request. A server that drains has
// set a deadline in the past, which must stay.
func (s *Server) setHandshakeDeadline(nc net.Conn) {
	nc.SetDeadline(time.Now().Add(s.opts.HandshakeTimeout))
	if s.draining() {
		nc.SetReadDeadline(past)
	}
}

// unregister removes an ended connection from the server's lists and counts.
func (s *Server) unregister(c *conn) {
	c.mu.Lock()
	reason := c.closeReason
	if c.blockingIO != nil && c.clientCert != nil {
		c.clientCert.expiry.Stop()
		c.clientCert = nil
	}
	c.mu.Unlock()
	s.logClosed(c.peer, reason)
	c.releaseUsage()
	s.requestLimit.wake()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeLive(c)
	if s.evicted[c] {
		delete(s.evicted, c)
	} else if c.limited {
		s.removeHalfOpen(c)
		s.releaseSlot(c)
	}
	if s.state == draining && len(s.live) == 0 {
		close(s.drained)
	}
}

// removeLive removes c from s.live. The caller holds s.mu.
func (s *Server) removeLive(c *conn) {
	last := len(s.live) - 1
	s.live[c.liveIndex] = s.live[last]
	s.live[c.liveIndex].liveIndex = c.liveIndex
	s.live[last] = nil
	s.live = s.live[:last]
}

// releaseSlot frees c's slot among the connections of its address. The caller holds s.mu.
func (s *Server) releaseSlot(c *conn) {
	addr := addressKey(c.peer)
	if s.perIP[addr]--; s.perIP[addr] == 0 {
		delete(s.perIP, addr)
	}
}

// addListener registers ln, so that the server closes it at its end.
func (s *Server) addListener(ln net.Listener) error {
	s.mu.Lock()
	ok := s.state == serving
	if ok {
		s.listeners[ln] = true
	}
	s.mu.Unlock()
	if !ok {
		ln.Close()
		return s.serveError()
	}
	return nil
}

func (s *Server) removeListener(ln net.Listener) {
	ln.Close()
	s.mu.Lock()
	delete(s.listeners, ln)
	s.mu.Unlock()
}

// serveError returns the error that Serve returns once the server has ended.
func (s *Server) serveError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case s.storageErr != nil:
		return s.storageErr // such as a read-only server that drains
	}
	return ErrServerClosed
}

// sleepUnlessStopped waits for d. It returns false if the server ends first.
func (s *Server) sleepUnlessStopped(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.stop:
		return false
	}
}

// Connections that have not sent their connect request are half-open. They count for
// MaxClientConns and MaxConns. When a limit is reached, a new connection replaces the
// oldest half-open one, so a client that sends nothing keeps no other client out.

// halfOpen is the entry of a half-open connection in the server's list and in that of its
// address. The elements are nil once the connect request has arrived, and guarded by srv.mu.
type halfOpen struct {
	addr          netip.Addr
	inAll, inAddr *list.Element
}

// addHalfOpen lists c as half-open. The caller holds s.mu.
func (s *Server) addHalfOpen(c *conn) {
	addr := addressKey(c.peer)
	of := s.halfOpenByAddr[addr]
	if of == nil {
		of = list.New()
		s.halfOpenByAddr[addr] = of
	}
	c.halfOpen = halfOpen{addr: addr, inAll: s.halfOpen.PushBack(c), inAddr: of.PushBack(c)}
}

// removeHalfOpen removes c from the list of half-open connections. The caller holds s.mu.
func (s *Server) removeHalfOpen(c *conn) {
	if c.blockingIO == nil || c.halfOpen.inAll == nil {
		return
	}
	of := s.halfOpenByAddr[c.halfOpen.addr]
	s.halfOpen.Remove(c.halfOpen.inAll)
	of.Remove(c.halfOpen.inAddr)
	c.halfOpen.inAll, c.halfOpen.inAddr = nil, nil
	if of.Len() == 0 {
		delete(s.halfOpenByAddr, c.halfOpen.addr)
	}
}

// handshakeReceived records that c has sent its connect request.
func (s *Server) handshakeReceived(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.removeHalfOpen(c)
}

// evictHalfOpen finds a half-open connection that a new connection from addr may replace,
// and frees its slot. The limit that err names has refused the new one. It returns nil if
// there is none. The caller holds s.mu, and aborts the returned connection.
func (s *Server) evictHalfOpen(addr netip.Addr, err error) *conn {
	var candidates *list.List
	switch {
	case errors.Is(err, errPerAddress):
		candidates = s.halfOpenByAddr[addr]
	case errors.Is(err, errTotal), errors.Is(err, errDescriptors):
		candidates = &s.halfOpen
	}
	if candidates == nil || candidates.Len() == 0 {
		return nil
	}
	c := candidates.Front().Value.(*conn)
	s.removeHalfOpen(c)
	s.releaseSlot(c)
	s.evicted[c] = true
	return c
}

// setKeepAlive turns on TCP keep-alive probes, if the options say so.
func (s *Server) setKeepAlive(nc net.Conn) {
	tc, ok := nc.(*net.TCPConn)
	if !ok || s.opts.KeepAlive == 0 {
		return
	}
	d := s.opts.KeepAlive
	// Three unanswered probes end the connection. An error means that the connection has
	// already ended.
	_ = tc.SetKeepAliveConfig(net.KeepAliveConfig{Enable: d > 0, Idle: max(d, 0), Interval: max(d, 0), Count: 3})
}
