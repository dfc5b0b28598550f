package zkserver

import (
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wire"
)

// counters are updated by any goroutine, from the start of the server on, and never reset.
// Stats documents each of them.
type counters struct {
	accepted atomic.Int64

	refusedPerAddress, refusedTotal, refusedByOption atomic.Int64

	cutSlow, cutHandshake, cutFrame, cutBroken atomic.Int64

	throttled, delayedAuths atomic.Int64

	tlsHandshakeFailures, tlsReloads, tlsReloadFailures atomic.Int64

	snapshotsWritten, snapshotsFailed, storageErrors atomic.Int64
}

// traffic counts requests and answers for the four-letter words, since the start or the
// last "srst" or "crst". A latency is the time from the read of a request to its answer,
// including the sync, as in ZooKeeper's ServerStats.
type traffic struct {
	received, sent int64
	latency        latency
	replies        sizes
}

// newTraffic returns a traffic with nothing counted.
func newTraffic() traffic { return traffic{replies: sizes{-1, -1, -1}} }

// sizes are sizes of replies in bytes, -1 before the first (ZooKeeper's BufferStats).
type sizes struct{ last, min, max int }

func (z *sizes) add(n int) {
	z.last = n
	z.max = max(z.max, n)
	if z.min < 0 || n < z.min {
		z.min = n
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

// mean returns the average, or 0 if nothing was counted.
func (l *latency) mean() time.Duration {
	if l.count == 0 {
		return 0
	}
	return l.total / time.Duration(l.count)
}

// connCounts is one connection's part of traffic, as the word "cons" shows it.
type connCounts struct {
	received, sent int64
	latency        latency
	lastOp         wire.OpCode
	lastXid        int32
	lastZxid       int64
	lastReply      time.Duration // when the last reply was created
}

// loopStats are the figures that the loop counts for Stats.
type loopStats struct {
	traffic           traffic
	bytesIn, bytesOut int64
	reads, updates    timing
	fsync, snapshots  timing
	recovery          time.Duration // duration of New
}

// pending is a request that was applied and is answered with its batch.
type pending struct {
	conn   *conn
	at     time.Duration // when the server read it
	update bool
}

// newConnCounts returns the counts of a new connection, and after crst.
func newConnCounts() connCounts { return connCounts{lastXid: -1, lastZxid: -1} }

// countWord counts a four-letter word. ZooKeeper counts it as a request without an answer.
func (s *Server) countWord() {
	s.runOnLoop(func() { s.loop.traffic.received++ })
}

// countRequest counts a request that was applied. greeting reports that it was the connect
// request, which has no header.
func (s *Server) countRequest(c *conn, frame []byte, p pending, greeting bool) {
	l := &s.loop
	l.traffic.received++
	l.bytesIn += int64(len(frame)) + 4
	l.filling.pending = append(l.filling.pending, p)
	c.counts.received++
	if greeting {
		c.counts.lastXid, c.counts.lastOp = 0, wire.OpCreateSession
	} else if len(frame) >= 8 {
		// Pings and similar requests have fixed xids.
		if xid := int32(binary.BigEndian.Uint32(frame)); xid >= 0 {
			c.counts.lastXid = xid
		}
		c.counts.lastOp = wire.OpCode(int32(binary.BigEndian.Uint32(frame[4:])))
	}
}

// countAnswers records the latencies of a batch's requests when their answers leave.
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

// countSend counts a reply or an event. Its frame begins with a length, an xid, and a zxid.
func (s *Server) countSend(c *conn, frame []byte, now tree.Now) {
	l := &s.loop
	l.traffic.sent++
	l.bytesOut += int64(len(frame))
	c.counts.sent++
	if len(frame) < 20 {
		return
	}
	// An event has no transaction id, or not the last one.
	if int32(binary.BigEndian.Uint32(frame[4:])) != wire.XidEvent {
		l.traffic.replies.add(len(frame))
		c.counts.lastZxid = int64(binary.BigEndian.Uint64(frame[8:]))
		c.counts.lastReply = now.Mono
	}
}
