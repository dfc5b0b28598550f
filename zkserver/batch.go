package zkserver

import (
	"log/slog"
	"time"
)

// batch is what the loop applied between two syncs, on its way out. There are
// two: one is filled while the other one is synced.
//
// Whatever may tell of a change leaves behind its sync: answers, to reads as
// well, events, the end of connections and what functions for the loop see.
type batch struct {
	conns   []*conn       // have output in it
	pending []pending     // the requests that it answers
	index   uint64        // of its last record in the log, 0 without any
	size    int           // of its requests, answers, events and records, in bytes
	audits  [][]slog.Attr // lines of the audit, written when the answers leave
}

// slowSync is how long a sync takes at the least that is worth a syncer's waking:
// that costs a tenth of it, twice, and halves the batches of clients that wait for
// their answers.
const slowSync = time.Millisecond

// output is what a batch has for one connection.
type output struct {
	frames        []byte
	answered      int   // requests
	answeredBytes int64 // of those requests
	end           bool  // the connection is closed after the frames
}

// reset empties o and keeps its room, unless that is large.
func (o *output) reset() {
	frames := o.frames[:0]
	if cap(frames) > keepBuffer {
		frames = nil
	}
	*o = output{frames: frames}
}

// commit gives the round's records to the log, and begins a sync unless one is
// under way: then what came meanwhile goes with the next. Without records there
// is nothing to wait for but that one. With wait it returns when everything is
// durable and has left.
func (s *Server) commit(wait bool) {
	l := &s.loop
	err := s.record()
	if err != nil {
		s.loseStorage(err)
		return
	}
	if !l.syncing {
		s.board()
		switch {
		case l.flying.index == 0:
			s.deliver()
		case wait || !l.crowded || s.opts.NoSync:
			// Nobody has anything to do for the loop meanwhile, or so it was
			// the last time, or it is over soon: to wake the syncer would only
			// cost time.
			r := s.sync()
			crowded := r.took >= slowSync && s.glance()
			s.landed(r)
			l.crowded = crowded
		default:
			s.startSync()
		}
	}
	if wait {
		s.drain()
	}
}

// drain returns when everything that was applied is durable and has left, or the
// storage is lost.
func (s *Server) drain() {
	for s.loop.syncing {
		s.landed(<-s.synced)
	}
}

// land takes in a sync that has ended. A batch that is large waits for that: the
// log is slower than the clients, who shall not fill the memory.
func (s *Server) land() {
	l := &s.loop
	if l.syncing && l.filling.size > roundBytes {
		s.landed(<-s.synced)
		s.glance() // a ping that came meanwhile is older than what is due now
		return
	}
	select {
	case r := <-s.synced:
		s.landed(r)
	default:
	}
}

// landed lets the batch leave that was synced, and sees to the one behind it.
func (s *Server) landed(r landing) {
	l := &s.loop
	l.syncing = false
	if r.err != nil {
		s.loseStorage(r.err)
		return
	}
	l.fsync.add(r.took, r.at)
	l.durable = r.index
	if l.crowded = len(l.filling.conns) > 0; l.crowded {
		l.overlaps++
	}
	l.crowded = l.crowded && r.took >= slowSync
	// What was appended before the sync began went along with it.
	more := l.filling.index > r.index
	if more {
		s.startSync() // beside the writes to the sockets
	}
	s.deliver()
	if s.board(); !more {
		s.deliver()
	}
}

// board makes the batch that was filled the one to leave next.
func (s *Server) board() {
	l := &s.loop
	l.filling, l.flying = l.flying, l.filling
	for _, c := range l.flying.conns {
		c.touched, c.aboard = false, true
		c.staged, c.held = c.held, c.staged
	}
}

// deliver hands out what is in the batch that may leave.
func (s *Server) deliver() {
	b := &s.loop.flying
	for _, c := range b.conns {
		c.aboard = false
		c.deliver()
		s.endTurn(c)
		if c.revisit {
			c.revisit = false
			s.later(c)
		}
	}
	s.countAnswers(b)
	for _, line := range b.audits {
		s.audit.enqueue(line)
	}
	b.reset()
	s.shed()
	s.pool.wake()
}

// reset empties b and keeps its room, but no connection alive.
func (b *batch) reset() {
	clear(b.conns)
	clear(b.pending)
	clear(b.audits)
	*b = batch{conns: b.conns[:0], pending: b.pending[:0], audits: b.audits[:0]}
}

// drop forgets what b would have said.
func (s *Server) drop(b *batch) {
	for _, c := range b.conns {
		c.touched, c.aboard = false, false
		if c.turn != nil {
			c.staged, c.held = output{}, output{}
		}
		s.endTurn(c)
		if c.revisit {
			c.revisit = false
			s.later(c)
		}
	}
	b.reset()
}
