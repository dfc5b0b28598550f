package zkserver

import (
	"log/slog"
	"time"
)

// batch is what the loop applied between two syncs, and the output of it. There are two
// batches: the loop fills one while the syncer syncs the other.
//
// Everything that may reveal a change leaves after its sync: answers, also to reads,
// events, the end of connections, and what functions on the loop see.
type batch struct {
	conns   []*conn       // with output in the batch
	pending []pending     // the requests that the batch answers
	index   uint64        // of the batch's last record in the log, 0 without records
	zxid    int64         // of the batch's last transaction, if it has records
	size    int           // of requests, answers, events, and records, in bytes
	audits  [][]slog.Attr // lines of the audit log, written when the answers leave
}

// minAsyncSync is the shortest sync that is worth the syncer's goroutine. To wake the
// goroutine costs a tenth of this, twice, and halves the batches of clients that wait for
// their answers.
const minAsyncSync = time.Millisecond

// output is the part of a batch for one connection.
type output struct {
	frames        pieces
	answered      int   // requests
	answeredBytes int64 // of those requests
	end           bool  // close the connection after the frames
	listed        bool  // the batch's list contains the connection
}

// reset empties o. It keeps the buffer unless that is large.
func (o *output) reset() {
	first := o.frames.first[:0]
	if cap(first) > keepBuffer {
		first = nil
	}
	*o = output{frames: pieces{first: first}}
}

// commit appends the round's records to the log and starts a sync. If a sync is running,
// the records wait for the next sync. A batch without records waits only for the running
// sync. With wait, commit returns when everything is durable and has left.
func (s *Server) commit(wait bool) {
	l := &s.loop
	err := s.appendRecords()
	if err != nil {
		s.storageFailed(err)
		return
	}
	if !l.syncing {
		s.swapBatches()
		switch {
		case l.inFlight.index == 0:
			s.deliver(turnTime)
		case wait || !l.busyDuringSync || s.opts.NoSync:
			// The last sync ended before any client sent a request, or this sync is short:
			// waking the syncer would only cost time.
			r := s.sync()
			busy := r.took >= minAsyncSync && s.checkForWork()
			s.syncDone(r)
			l.busyDuringSync = busy
		default:
			s.startSync()
		}
	}
	if wait {
		s.drain()
	}
}

// drain returns when everything that was applied is durable and has left, or when the
// storage has failed.
func (s *Server) drain() {
	for s.loop.syncing {
		s.syncDone(<-s.synced)
	}
}

// collectSync processes the result of a sync that has ended. If the batch being filled is
// large, it waits for the sync: the log is slower than the clients, and their requests must
// not fill the memory.
func (s *Server) collectSync() {
	l := &s.loop
	if l.syncing && l.filling.size > roundBytes {
		s.syncDone(<-s.synced)
		s.checkForWork() // a ping that arrived during the sync is older than the deadlines that are due now
		return
	}
	select {
	case r := <-s.synced:
		s.syncDone(r)
	default:
	}
}

// syncDone delivers the batch that was synced, and starts the sync of the next batch.
func (s *Server) syncDone(r syncResult) {
	l := &s.loop
	l.syncing = false
	if r.err != nil {
		s.storageFailed(r.err)
		return
	}
	l.fsync.add(r.took, r.at)
	l.durableIndex = r.index
	if l.busyDuringSync = len(l.filling.conns) > 0; l.busyDuringSync {
		l.overlaps++
	}
	l.busyDuringSync = l.busyDuringSync && r.took >= minAsyncSync
	// The sync included everything that was appended before it began.
	more := l.filling.index > r.index
	if more {
		s.startSync() // concurrent with the writes to the sockets
	}
	s.deliver(turnTime)
	if s.swapBatches(); !more {
		s.deliver(turnTime)
	}
}

// swapBatches makes the filled batch the one in flight.
func (s *Server) swapBatches() {
	l := &s.loop
	l.filling, l.inFlight = l.inFlight, l.filling
	for _, c := range l.inFlight.conns {
		c.filling, c.inFlight = c.inFlight, c.filling
	}
}

// deliver sends the output of the batch in flight. One change may have an event for thousands
// of clients: once limit has passed, it leaves the events of clients that get no answer to
// the next rounds.
func (s *Server) deliver(limit time.Duration) {
	b := &s.loop.inFlight
	if b.index != 0 {
		s.loop.acknowledgedZxid = b.zxid
	}
	began := s.elapsed()
	for _, c := range b.conns {
		o := &c.inFlight
		c.deliver(o.answered == 0 && !o.end && s.elapsed()-began >= limit)
		s.afterDelivery(c)
	}
	s.countAnswers(b)
	for _, line := range b.audits {
		s.audit.enqueue(line)
	}
	b.reset()
	s.cutSlowReaders()
	s.requestLimit.wake()
}

// afterDelivery ends c's exchange if it is empty, and makes c runnable if it waited for the
// delivery.
func (s *Server) afterDelivery(c *conn) {
	requeue := c.requeueOnDelivery
	c.requeueOnDelivery = false
	s.endExchange(c)
	if requeue {
		s.requeue(c)
	}
}

// reset empties b. It keeps the slices' capacity, but no reference to a connection.
func (b *batch) reset() {
	clear(b.conns)
	clear(b.pending)
	clear(b.audits)
	*b = batch{conns: b.conns[:0], pending: b.pending[:0], audits: b.audits[:0]}
}

// discard drops the output of b.
func (s *Server) discard(b *batch) {
	for _, c := range b.conns {
		if c.exchange != nil {
			c.filling, c.inFlight = output{}, output{}
			s.afterDelivery(c)
		}
	}
	b.reset()
}

// syncResult is the result of a sync.
type syncResult struct {
	err   error
	index uint64 // of the last record that is durable
	took  time.Duration
	at    time.Duration // when it ended
}

// startSync lets the syncer sync what was appended to the log.
func (s *Server) startSync() {
	s.loop.syncing = true
	s.syncs <- struct{}{}
}

// syncer syncs the log, so that the loop does not wait for the disk. New starts it. The
// loop ends it by closing syncs, and Close waits for its end. One sync runs at a time; the
// loop processes its result before the next one starts.
func (s *Server) syncer() {
	defer s.handlers.Done()
	for range s.syncs {
		s.synced <- s.sync()
		s.wakeLoop()
	}
}

// sync makes durable what was appended to the log, with one write and one sync.
func (s *Server) sync() syncResult {
	began := s.elapsed()
	err := s.loop.log.Sync()
	at := s.elapsed()
	return syncResult{err: err, index: s.loop.log.Durable(), took: at - began, at: at}
}
