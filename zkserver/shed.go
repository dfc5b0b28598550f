package zkserver

import "slices"

// noteBacklog keeps c in mind if its client is behind with reading. It belongs to
// the loop, as all here.
func (s *Server) noteBacklog(c *conn, bytes int) {
	if bytes > keepBuffer {
		s.loop.slow[c] = true
		s.loop.slowGrew = true
	}
}

// backlog is how many bytes wait to be read by the client.
func (c *conn) backlog() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cut {
		return 0
	}
	return len(c.out) + c.writing
}

// shed cuts the connections that are furthest behind with reading when all of
// them together keep more than MaxUnreadTotal. Each is within MaxUnread, but
// there may be thousands.
func (s *Server) shed() {
	l := &s.loop
	if !l.slowGrew {
		return
	}
	l.slowGrew = false
	type debt struct {
		c     *conn
		bytes int
	}
	var total int64
	debts := make([]debt, 0, len(l.slow))
	for c := range l.slow {
		n := c.backlog()
		if n == 0 {
			delete(l.slow, c)
			continue
		}
		total += int64(n)
		debts = append(debts, debt{c, n})
	}
	most := s.opts.MaxUnreadTotal
	if total <= most {
		return
	}
	// By the connection's number where they are equal: no map's order shows.
	slices.SortFunc(debts, func(a, b debt) int {
		if a.bytes != b.bytes {
			return b.bytes - a.bytes
		}
		return int(a.c.id - b.c.id)
	})
	// A quarter more than need be, or the next reply would do it again.
	for _, d := range debts {
		if total <= most*3/4 {
			return
		}
		d.c.abort(errTooSlow)
		delete(l.slow, d.c)
		total -= int64(d.bytes)
	}
}
