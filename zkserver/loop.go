package zkserver

import (
	"slices"
	"time"

	"github.com/zklock/zklock/internal/tree"
)

const (
	// turnFrames is how many requests of one connection a round takes, so that one client's
	// pipeline does not delay other clients.
	turnFrames = 128
	// turnBytes is how many bytes of requests, answers, and records a connection's turn may
	// have before the next connection's turn.
	turnBytes = 128 << 10
	// roundBytes ends a round early: a larger batch gains little from sharing a sync, and a
	// request that arrives during a sync waits for three batches. About half of the bytes of
	// a write are the request, and not in the log.
	roundBytes = 5 << 18
	// pauseThreshold is how late the loop must be for a deadline to conclude that the
	// process was paused. pauseGrace is the time that clients then get.
	pauseThreshold = 50 * time.Millisecond
	pauseGrace     = 50 * time.Millisecond
	// turnTime is how long a connection's turn may take before the next connection's turn.
	// roundTime is how long a round may take. So requests that take long, such as counting
	// a million nodes, delay other clients one at a time.
	turnTime  = 5 * time.Millisecond
	roundTime = 20 * time.Millisecond
	// callTime is how long a round may call functions of other goroutines.
	callTime = time.Millisecond
)

// run is the server's loop, the only goroutine that uses the tree and the log. New starts
// it. It ends when stop is closed, and closes done.
func (s *Server) run() {
	defer close(s.done)
	defer s.publish()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for !isClosed(s.stop) {
		s.round()
		if s.loop.polls > 0 {
			s.waitForEvents()
			continue
		}
		s.setTimer(timer)
		select {
		case <-s.stop:
		case <-s.wake:
		case <-timer.C:
		}
	}
	s.drain()
	s.closeAllPolled()
	s.endAudit()
	s.closeStorage()
}

// setTimer sets the timer to the tree's next deadline, or to now if input is left. Without
// either it stops the timer: an idle server must not advance the clock of a synctest
// bubble. Otherwise a test that hangs would run through years of that clock instead of
// reporting a deadlock.
func (s *Server) setTimer(timer *time.Timer) {
	next, ok := s.loop.tree.NextTick()
	switch {
	case len(s.loop.runnable)+len(s.loop.writable) > 0:
		timer.Reset(0)
	case ok:
		// A deadline that passed since the last round belongs to the next round.
		timer.Reset(max(max(next, s.loop.tickNotBefore)-s.elapsed(), time.Microsecond))
	default:
		timer.Stop()
	}
}

// round applies the requests that have arrived, starts to make them durable, and sends the
// output of batches that are durable.
func (s *Server) round() {
	l := &s.loop
	l.rounds++
	s.collectSync()
	r := roundInput{began: s.elapsed()}
	calls := s.takeTurns(&r, s.applyRequests)
	if len(calls) == 0 {
		calls = s.extendRound(&r)
	}
	s.keepWaitingSessions()
	l.filling.size += r.size + s.tick()
	// A function may read any state, so all of it must be durable first.
	s.commit(len(calls) > 0)
	s.rescheduleAll(r.conns)
	s.provideBuffer()
	s.updateIdleSince()
	s.callAll(calls)
	s.flushWritable(turnTime)
	s.maybeSnapshot()
}

// callAll calls functions of other goroutines until callTime has passed, and leaves the
// others to the next rounds: hundreds of clients may send four-letter words at once.
func (s *Server) callAll(calls []func()) {
	if len(calls) == 0 {
		return
	}
	began, spent := s.elapsed(), time.Duration(0)
	n := 0
	for n < len(calls) && spent < callTime {
		calls[n]()
		n++
		spent = s.elapsed() - began
	}
	s.loop.longestTurn = max(s.loop.longestTurn, spent)
	if n < len(calls) {
		s.mu.Lock()
		s.calls = append(calls[n:], s.calls...)
		s.mu.Unlock()
		s.wakeLoop()
	}
}

// tick lets the tree act on passed deadlines. After a pause of the process, by SIGSTOP or
// on an overloaded machine, sessions are past their deadlines although their pings wait in
// the sockets. The readers get a moment to read these pings before any session expires. A
// session that ends later harms no lock. It returns the size of the tree's output in bytes.
func (s *Server) tick() (size int) {
	l, now := &s.loop, s.now()
	due, ok := l.tree.NextTick()
	if ok && now.Mono-due > pauseThreshold && l.tickNotBefore <= due {
		l.tickNotBefore = now.Mono + pauseGrace
	}
	if now.Mono < l.tickNotBefore {
		return 0
	}
	before := len(l.out.Records)
	l.tree.Tick(now, &l.out)
	size = s.stageSends(now)
	for _, rec := range l.out.Records[before:] {
		size += len(rec)
	}
	l.longestTurn = max(l.longestTurn, s.elapsed()-now.Mono)
	return size
}

// keepWaitingSessions extends the sessions of clients whose requests have arrived and wait
// for their turn. They are not silent; the server is slow.
func (s *Server) keepWaitingSessions() {
	l := &s.loop
	for _, list := range [][]*conn{l.runnable, l.filling.conns, l.inFlight.conns} {
		for _, c := range list {
			if (c.runnable || c.exchange != nil && c.requeueOnDelivery) && c.hasInput() {
				l.tree.KeepAlive(c.id, s.now())
			}
		}
	}
	for _, w := range l.buffers.waiting {
		l.tree.KeepAlive(w.c.id, s.now())
	}
}

// takeReady returns the connections with input, in the order of arrival, and the functions
// to call.
func (s *Server) takeReady() ([]*conn, []func()) {
	for _, c := range s.takeHandedOver() {
		s.startPolling(c)
	}
	conns := s.loop.runnable
	s.loop.runnable = nil
	for _, c := range conns {
		c.runnable = false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.ready {
		c.onReadyList = false
		conns = append(conns, c)
	}
	s.ready = s.ready[:0]
	calls := s.calls
	s.calls = nil
	return conns, calls
}

// takeHandedOver returns the connections that the loop polls from now on.
func (s *Server) takeHandedOver() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	conns := s.handedOver
	s.handedOver = nil
	return conns
}

// requeue puts connections on the list of the next round.
func (s *Server) requeue(conns ...*conn) {
	for _, c := range conns {
		if !c.runnable {
			c.runnable = true
			s.loop.runnable = append(s.loop.runnable, c)
		}
	}
}

// requeueFirst puts a connection at the front of the list of the next round.
func (s *Server) requeueFirst(c *conn) {
	s.requeue(c)
	list := s.loop.runnable
	copy(list[1:], list[:slices.Index(list, c)])
	list[0] = c
}

// applyRequests gives c its turn: it applies c's requests to the tree. It returns the size
// of the requests and their answers in bytes.
func (s *Server) applyRequests(c *conn) (size int) {
	if c.phase == connDisconnected || c.outputFull() {
		return 0
	}
	if c.mustWait() {
		// Input made c ready, so its client is alive. It reads slowly, or must wait.
		s.loop.tree.KeepAlive(c.id, s.now())
		return 0
	}
	if c.phase == connNew {
		s.loop.conns[c.id] = c
	}
	s.beginExchange(c)
	now := s.takeRequests(c)
	began := now.Mono
	first := 0 // bytes of the first request
	for n := 0; n < turnFrames && (c.phase == connContinuing || c.next < len(c.work.frames)) && !c.outputFull(); n++ {
		if n > 0 {
			if now = s.now(); now.Mono-began >= turnTime || size >= turnBytes {
				break
			}
		}
		if c.phase == connContinuing {
			size += s.applyRequest(c, nil, now)
		} else {
			frame := c.work.frame(c.next)
			if n == 0 {
				first = len(frame)
			} else if s.loop.cheapFirst && first < smallRequest && len(frame) >= smallRequest {
				break // it must not overtake the small requests of others
			}
			if s.delayAuth(c, frame, now.Mono) {
				break
			}
			arrived := c.work.frames[c.next].at
			c.next++
			records, greeting := len(s.loop.out.Records), c.phase == connNew
			size += len(frame) + s.applyRequest(c, frame, now)
			if want := s.loop.tree.TakeWantedBuffer(); want > 0 {
				c.next--
				s.awaitBuffer(c, want)
				break
			}
			c.lastSize = len(frame)
			s.countRequest(c, frame, pending{c, arrived, len(s.loop.out.Records) > records}, greeting)
		}
		if c.phase != connContinuing { // else the tree keeps the request
			c.filling.answered++
			c.filling.answeredBytes += int64(c.lastSize)
		}
	}
	s.addToBatch(c)
	return size
}

// takeRequests fills c's work list if it is empty and input has arrived. It returns a time
// at which these requests were here: the tree extends a session from that time, which must
// not be earlier than the client's message.
func (s *Server) takeRequests(c *conn) tree.Now {
	switch {
	case c.phase == connContinuing || c.next < len(c.work.frames):
		// Requests of the last turn are left.
	case c.polled.active:
		return s.readRequests(c)
	default:
		c.takeInput()
	}
	return s.now()
}

// applyRequest applies one request to the tree, or continues the last one, and stages its
// output. It returns the size of that output in bytes.
func (s *Server) applyRequest(c *conn, frame []byte, now tree.Now) int {
	if c.phase >= connClosing {
		// The tree has closed this connection: requests after that are ignored.
		return 0
	}
	out := &s.loop.out
	before := len(out.Records)
	failures, phase := s.loop.tree.Counters().AuthFailures, c.phase
	by, sends := s.requesterOf(c), len(out.Sends)
	switch phase {
	case connContinuing:
		c.setContinuing(s.loop.tree.Continue(c.id, now, out))
	case connServing:
		s.loop.tree.LendBuffer(c.buffer)
		c.buffer = nil
		c.setContinuing(s.loop.tree.Request(c.id, frame, now, out))
		s.countAuth(c, frame, failures, now.Mono)
	default:
		s.connect(c, frame, now)
	}
	if phase != connNew && s.audit != nil {
		s.auditStep(c, by, frame, sends)
	}
	s.loop.work += s.loop.tree.Work()
	size := s.stageSends(now)
	for _, rec := range out.Records[before:] {
		size += len(rec)
	}
	return size
}

// setContinuing records whether the last request continues in the next turn.
func (c *conn) setContinuing(more bool) {
	c.phase = connServing
	if more {
		c.phase = connContinuing
	}
}

// stageSends distributes the tree's output to the connections. It leaves when the batch is
// durable.
func (s *Server) stageSends(now tree.Now) (size int) {
	for i := range s.loop.out.Sends {
		send := &s.loop.out.Sends[i]
		c := s.loop.conns[send.Conn]
		if c == nil || c.phase >= connClosing {
			continue
		}
		s.beginExchange(c)
		c.filling.frames.add(send.Frame)
		if send.Close {
			c.phase, c.filling.end = connClosing, true
		}
		if len(send.Frame) > 0 {
			s.countSend(c, send.Frame, now)
		}
		size += len(send.Frame)
		s.addToBatch(c)
	}
	clear(s.loop.out.Sends)
	s.loop.out.Sends = s.loop.out.Sends[:0]
	return size
}

// addToBatch records that c has output in the batch being filled.
func (s *Server) addToBatch(c *conn) {
	if b := &s.loop.filling; !c.filling.listed {
		c.filling.listed = true
		b.conns = append(b.conns, c)
	}
}

// rescheduleAll reschedules the connections of a round. Many may have come to their end: it
// ends as many as the time of a turn permits, but at least one, and leaves the others to
// the next rounds.
func (s *Server) rescheduleAll(conns []*conn) {
	began, spent := s.elapsed(), time.Duration(0)
	for _, c := range conns {
		if s.reschedule(c, spent < turnTime) {
			spent = s.elapsed() - began
		}
	}
	s.loop.longestTurn = max(s.loop.longestTurn, spent)
}

// reschedule decides, after a round, when c has its next turn. If no more input comes, it
// ends c, or puts the end off to the next round if there is no time for it now. It reports
// whether it ended c.
func (s *Server) reschedule(c *conn, timeLeft bool) (ended bool) {
	if c.phase == connDisconnected {
		if c.polled.active {
			s.closePolled(c, false)
		}
		return false
	}
	switch more, end := c.inputState(); {
	case end && c.inBatch(), more && c.waitsForDelivery():
		c.requeueOnDelivery = true
	case more, end && !timeLeft:
		s.requeue(c)
	case end:
		c.phase = connDisconnected
		s.loop.tree.Disconnect(c.id, s.now())
		delete(s.loop.conns, c.id)
		if s.audit != nil {
			delete(s.audit.pending, c.id)
		}
		delete(s.loop.slowReaders, c)
		c.send(pieces{}, true)
		if c.polled.active {
			s.closePolled(c, false)
		}
		return true
	}
	return false
}

// extendTime is how long after its start a round still takes requests: about as long as a
// sync of a good disk. The first requests of the round wait for the later ones.
const extendTime = 300 * time.Microsecond

// roundInput is what a round took from the connections.
type roundInput struct {
	began    time.Duration // start of the round
	conns    []*conn       // in the order of their turns
	size     int           // of the requests and their output, in bytes
	slowTurn bool          // one of the turns took turnTime or longer
}

// takeTurns gives each connection with input its turn until the round is full, and returns
// the functions to call.
func (s *Server) takeTurns(r *roundInput, apply func(*conn) int) []func() {
	conns, calls := s.takeReady()
	at, arrived, full := s.elapsed(), conns, false
	if len(s.loop.charges) > 0 || s.loop.cheapFirst {
		arrived = slices.Clone(conns)
	}
	free := s.orderByCharge(conns, at)
	for i, c := range conns {
		// One charged connection has its turn in any case, or none might ever have one.
		if s.roundFull(r, at) || i > free && at-r.began > turnTime {
			s.requeueExcept(arrived, conns[:i])
			conns, full = conns[:i], true
			break
		}
		s.loop.work, c.nextSize = 0, 0
		began, size := at, apply(c)
		r.size += size
		at = s.elapsed()
		s.charge(c, turn{at - began, s.loop.work, size}, at)
		r.slowTurn = r.slowTurn || at-began >= turnTime
	}
	// Many clients may send expensive or large requests at once. Other clients need not wait
	// for all of these. Of full rounds, every second one goes by the order of arrival, so that
	// no connection waits for all that come later.
	s.loop.cheapFirst = full && !s.loop.cheapFirst
	if r.conns == nil {
		r.conns = conns
	} else {
		r.conns = append(r.conns, conns...)
	}
	return calls
}

// requeueExcept requeues the connections that had no turn, in the order of their arrival: a
// connection whose charge ends must not be taken for a new one.
func (s *Server) requeueExcept(arrived, served []*conn) {
	had := make(map[*conn]bool, len(served))
	for _, c := range served {
		had[c] = true
	}
	for _, c := range arrived {
		if !had[c] {
			s.requeue(c)
		}
	}
}

// roundFull reports whether the round, at the time at, has taken as much as it may.
func (s *Server) roundFull(r *roundInput, at time.Duration) bool {
	return r.slowTurn || s.loop.filling.size+r.size > roundBytes || at-r.began > roundTime
}

// extendRound takes requests that arrived during the round, so that they share the sync
// that is due now. Otherwise they would wait for the end of that sync and for another one.
// A sync costs the processor as much as several requests do. Of clients that send again
// upon an answer, most have sent by then. The round waits for no client: without new
// requests the sync begins. A function to call ends the round.
func (s *Server) extendRound(r *roundInput) (calls []func()) {
	for len(calls) == 0 && s.syncDue() {
		if at := s.elapsed(); s.roundFull(r, at) || at-r.began >= extendTime || !s.checkForWork() {
			break
		}
		calls = s.takeTurns(r, s.applyRequests)
	}
	return calls
}

// syncDue reports whether the round ends in a sync that begins at once.
func (s *Server) syncDue() bool {
	l := &s.loop
	return l.log != nil && !s.opts.NoSync && !l.syncing && len(l.out.Records) > 0
}
