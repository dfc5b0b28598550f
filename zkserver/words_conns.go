package zkserver

import (
	"fmt"
	"net"
	"slices"
	"time"
)

// connView is a connection as stat and cons show it.
type connView struct {
	remote  string
	state   int // 1 for one whose requests are read, 0 for one that asks a word
	queued  int
	counts  connCounts
	session int64 // 0 for none
	timeout int32
	since   time.Duration
	est     int64 // when it was accepted and last answered, wall clock in ms
	resp    int64
}

// eachConn shows every open connection, oldest first, to use.
func (s *Server) eachConn(a *answer, use func(connView)) {
	conns := s.open()
	inPieces(s, a, func(yield func(connView) bool) {
		for _, c := range conns {
			if !yield(s.view(c)) {
				return
			}
		}
	}, use)
}

// open lists the open connections, oldest first.
func (s *Server) open() []*conn {
	s.mu.Lock()
	_, conns := s.everything()
	s.mu.Unlock()
	slices.SortFunc(conns, func(a, b *conn) int { return int(a.id - b.id) })
	return conns
}

// view is c as it is now, for the loop.
func (s *Server) view(c *conn) connView {
	wall := func(d int64) int64 { return s.start.UnixMilli() + d }
	v := connView{
		remote: remoteName(c.peer), state: 1, queued: c.outstanding(), counts: c.counts,
		since: c.since, est: wall(c.since.Milliseconds()), resp: wall(c.counts.responded.Milliseconds()),
	}
	if c.asking() {
		v.state, v.counts.received = 0, 1
	}
	v.session, v.timeout, _ = s.loop.tree.Session(c.id)
	return v
}

// brief is what stat shows, without the last parenthesis.
func (v *connView) brief() string {
	return fmt.Sprintf(" %s[%d](queued=%d,recved=%d,sent=%d", v.remote, v.state, v.queued, v.counts.received, v.counts.sent)
}

// details is what cons adds for a connection with a session.
func (v *connView) details() string {
	if v.session == 0 {
		return ""
	}
	k, lcxid := &v.counts, ""
	if k.lastXid >= 0 {
		lcxid = ",lcxid=" + hex(int64(k.lastXid))
	}
	return fmt.Sprintf(",sid=%s,lop=%s,est=%d,to=%d%s,lzxid=%s,lresp=%d,llat=%d,minlat=%d,avglat=%d,maxlat=%d",
		hex(v.session), opName(k.lastOp), v.est, v.timeout, lcxid, hex(k.lastZxid), v.resp,
		k.latency.last.Milliseconds(), k.latency.min.Milliseconds(), k.latency.mean().Milliseconds(), k.latency.max.Milliseconds())
}

// remoteName is the peer as Java writes an address.
func remoteName(peer net.Addr) string { return "/" + peer.String() }

// outstanding counts the requests that were read and not yet answered, for the
// loop.
func (s *Server) outstanding() (n int) {
	for _, c := range s.loop.conns {
		n += c.outstanding()
	}
	return n
}

func (c *conn) outstanding() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.waiting
	if c.driven != nil {
		n += len(c.in.frames)
	}
	return n
}

// asking reports whether c asks a four-letter word.
func (c *conn) asking() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.driven != nil && c.word
}
