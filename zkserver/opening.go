package zkserver

import (
	"container/list"
	"errors"
	"net/netip"
)

// Connections that have not sent their connect request yet are half-open. They take
// places of MaxClientConns and MaxConns as others do, but give them up: where a limit
// is reached, a new connection takes the place of the oldest half-open one. A client
// that says nothing keeps nobody out.

// opening is the place of a half-open connection in the server's list.
type opening struct {
	addr netip.Addr
	at   *list.Element // nil once the connect request is there; guarded by srv.mu
}

// noteOpening lists c as half-open. The caller holds s.mu.
func (s *Server) noteOpening(c *conn) {
	c.opening = opening{addr: addressKey(c.peer)}
	c.opening.at = s.openings.PushBack(c)
	s.openingsOf[c.opening.addr]++
}

// noteOpened takes c off the list. The caller holds s.mu.
func (s *Server) noteOpened(c *conn) {
	if c.driven == nil || c.opening.at == nil {
		return
	}
	s.openings.Remove(c.opening.at)
	c.opening.at = nil
	if s.openingsOf[c.opening.addr]--; s.openingsOf[c.opening.addr] == 0 {
		delete(s.openingsOf, c.opening.addr)
	}
}

// opened notes that c has sent its connect request.
func (s *Server) opened(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteOpened(c)
}

// makeRoom finds a half-open connection whose place one from addr may take, which was
// refused because of the limit that err names, and frees that place. It returns nil if
// there is none. The caller holds s.mu, and cuts what is returned.
func (s *Server) makeRoom(addr netip.Addr, err error) *conn {
	switch {
	case errors.Is(err, errPerAddress):
		if s.openingsOf[addr] == 0 {
			return nil
		}
	case !errors.Is(err, errTotal) && !errors.Is(err, errDescriptors):
		return nil
	}
	for e := s.openings.Front(); e != nil; e = e.Next() {
		c := e.Value.(*conn)
		if errors.Is(err, errPerAddress) && c.opening.addr != addr {
			continue
		}
		s.noteOpened(c)
		s.uncount(c)
		s.leaving++
		return c
	}
	return nil
}
