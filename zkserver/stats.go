package zkserver

import (
	"encoding/binary"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// Stats is what a server counts. Taken at one moment, between two batches.
type Stats struct {
	// Sessions is the number of sessions that have not ended, connected or not.
	Sessions int
	// IdleSince is when the last session ended, or when the server started if
	// there never was one. It is the zero Time while there are sessions.
	IdleSince time.Time
	// Connections is the number of open connections.
	Connections int
	// Zxid is the last transaction.
	Zxid int64
	// Nodes and Watches count what the tree holds.
	Nodes, Watches int
	// Received and Sent count requests read, and replies and events handed to
	// connections, since the start or the last "srst".
	Received, Sent int64
	// Syncs is how often the log was synced, 0 without DataDir.
	Syncs uint64
}

// Stats returns the counters. It waits for the batch under way, and returns
// what was last once the server has ended.
func (s *Server) Stats() Stats {
	s.ask(s.publish)
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.Connections = len(s.live)
	return st
}

// publish counts. Like all that follows, it belongs to the loop.
func (s *Server) publish() {
	l := &s.loop
	c := l.tree.Counts()
	st := Stats{
		Sessions: c.Sessions, IdleSince: l.idleSince, Zxid: l.tree.Zxid(), Nodes: c.Nodes, Watches: c.Watches,
		Received: l.traffic.received, Sent: l.traffic.sent,
	}
	if l.log != nil {
		st.Syncs = l.log.Stats().Syncs
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats = st
}

// noteIdle keeps the time since which there is no session.
func (s *Server) noteIdle() {
	l := &s.loop
	switch idle := l.tree.SessionCount() == 0; {
	case !idle:
		l.idleSince = time.Time{}
	case l.idleSince.IsZero():
		l.idleSince = time.Now()
	}
}

// traffic counts what passes, for the four-letter words. Latencies run from
// the read of a request to its application.
type traffic struct {
	received, sent int64
	latency        latency
}

// latency is a summary of latencies.
type latency struct {
	min, max, last, total time.Duration
	count                 int64
}

func (l *latency) add(d time.Duration) {
	if l.count == 0 || d < l.min {
		l.min = d
	}
	l.max = max(l.max, d)
	l.last = d
	l.total += d
	l.count++
}

// average is in milliseconds.
func (l *latency) average() float64 {
	if l.count == 0 {
		return 0
	}
	return float64(l.total.Microseconds()) / 1000 / float64(l.count)
}

// connCounts is one connection's part of traffic, for the word "cons".
type connCounts struct {
	traffic
	lastOp    wire.OpCode
	lastXid   int32
	lastZxid  int64
	responded time.Duration // when the last reply was made
}

// request counts a request that was applied after waiting for d.
func (s *Server) countRequest(c *conn, frame []byte, d time.Duration) {
	s.loop.traffic.received++
	s.loop.traffic.latency.add(d)
	c.counts.received++
	c.counts.latency.add(d)
	if len(frame) >= 8 {
		c.counts.lastXid = int32(binary.BigEndian.Uint32(frame))
		c.counts.lastOp = wire.OpCode(int32(binary.BigEndian.Uint32(frame[4:])))
	}
}

// countSend counts a reply or an event: a length, then an xid and a zxid.
func (s *Server) countSend(c *conn, frame []byte) {
	s.loop.traffic.sent++
	c.counts.sent++
	if len(frame) < 20 {
		return
	}
	// An event carries no transaction id, or one that is not the last.
	if int32(binary.BigEndian.Uint32(frame[4:])) != wire.XidEvent {
		c.counts.lastZxid = int64(binary.BigEndian.Uint64(frame[8:]))
		c.counts.responded = s.elapsed()
	}
}
