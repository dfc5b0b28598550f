package zkserver

import (
	"encoding/binary"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wire"
)

// traffic counts what passes, for the four-letter words, until "srst" or
// "crst". Latencies run from the read of a request to its answer, the sync in
// between included, as in ZooKeeper's ServerStats.
type traffic struct {
	received, sent int64
	latency        latency
	replies        sizes
}

// newTraffic is a traffic with nothing counted.
func newTraffic() traffic { return traffic{replies: sizes{-1, -1, -1}} }

// sizes are of replies in bytes, -1 for none yet (ZooKeeper's BufferStats).
type sizes struct{ last, least, most int }

func (z *sizes) add(n int) {
	z.last = n
	z.most = max(z.most, n)
	if z.least < 0 || n < z.least {
		z.least = n
	}
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

// mean is the average, 0 where nothing was counted.
func (l *latency) mean() time.Duration {
	if l.count == 0 {
		return 0
	}
	return l.total / time.Duration(l.count)
}

// connCounts is one connection's part of traffic, as far as the word "cons" shows it.
type connCounts struct {
	received, sent int64
	latency        latency
	lastOp         wire.OpCode
	lastXid        int32
	lastZxid       int64
	responded      time.Duration // when the last reply was made
}

// figures are what the loop counts, for Stats.
type figures struct {
	traffic           traffic
	bytesIn, bytesOut int64
	reads, updates    timing
	fsync, snapshots  timing
	recovery          time.Duration // of New
}

// pending is a request that was applied and is answered with its batch.
type pending struct {
	conn   *conn
	at     time.Duration // when it was read
	update bool
}

// newConnCounts is what a connection starts with, and what crst leaves.
func newConnCounts() connCounts { return connCounts{lastXid: -1, lastZxid: -1} }

// countWord counts a four-letter word, which ZooKeeper takes for a request
// without an answer.
func (s *Server) countWord() {
	s.ask(func() { s.loop.traffic.received++ })
}

// countRequest counts a request that was applied; greeting says that it was
// the connect request, which has no header.
func (s *Server) countRequest(c *conn, frame []byte, p pending, greeting bool) {
	l := &s.loop
	l.traffic.received++
	l.bytesIn += int64(len(frame)) + 4
	l.filling.pending = append(l.filling.pending, p)
	c.counts.received++
	if greeting {
		c.counts.lastXid, c.counts.lastOp = 0, wire.OpCreateSession
	} else if len(frame) >= 8 {
		// Pings and the like have xids of their own that say nothing.
		if xid := int32(binary.BigEndian.Uint32(frame)); xid >= 0 {
			c.counts.lastXid = xid
		}
		c.counts.lastOp = wire.OpCode(int32(binary.BigEndian.Uint32(frame[4:])))
	}
}

// countAnswers times the requests of a batch once their answers may leave.
func (s *Server) countAnswers(b *batch) {
	l, now := &s.loop, s.elapsed()
	for i := range b.pending {
		p := &b.pending[i]
		d := now - p.at
		l.traffic.latency.add(d)
		p.conn.counts.latency.add(d)
		if p.update {
			l.updates.add(d, now)
		} else {
			l.reads.add(d, now)
		}
	}
}

// countSend counts a reply or an event: a length, then an xid and a zxid.
func (s *Server) countSend(c *conn, frame []byte, now tree.Now) {
	l := &s.loop
	l.traffic.sent++
	l.bytesOut += int64(len(frame))
	c.counts.sent++
	if len(frame) < 20 {
		return
	}
	// An event carries no transaction id, or one that is not the last.
	if int32(binary.BigEndian.Uint32(frame[4:])) != wire.XidEvent {
		l.traffic.replies.add(len(frame))
		c.counts.lastZxid = int64(binary.BigEndian.Uint64(frame[8:]))
		c.counts.responded = now.Mono
	}
}
