package zkserver

import (
	"slices"
	"time"

	"github.com/zklock/zklock/internal/tree"
)

const (
	// turnFrames is how many requests of one connection a round takes, so
	// that one client's pipeline does not hold up the others.
	turnFrames = 128
	// roundBytes ends a round early: a batch larger than this gains nothing
	// from sharing a sync.
	roundBytes = 4 << 20
	// stall is how late the loop must be for its next deadline to take that
	// for a pause of the whole process, and stallGrace what clients then get.
	stall      = 50 * time.Millisecond
	stallGrace = 50 * time.Millisecond
	// turnTime is how long a connection's turn may take before the next one has
	// its own, and roundTime how long a round: requests that take long, such as
	// counting a million nodes, hold others up one at a time.
	turnTime  = 5 * time.Millisecond
	roundTime = 20 * time.Millisecond
)

// run is the server's loop: the one goroutine that touches the tree and the
// log. New starts it; it ends when stop is closed, and closes done.
func (s *Server) run() {
	defer close(s.done)
	defer s.publish()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for !cancelled(s.stop) {
		s.round()
		if s.loop.polls > 0 {
			s.sleepPolling()
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
	s.endPolling()
	s.endAudit()
	s.closeStorage()
}

// setTimer sets the timer to the tree's next deadline, or to now if input was
// left over. Without either it is stopped: a server with nothing to wait for
// must not keep the clock of a synctest bubble going, or a test that hangs
// would spin through the years instead of being told of its deadlock.
func (s *Server) setTimer(timer *time.Timer) {
	next, ok := s.loop.tree.NextTick()
	switch {
	case len(s.loop.again) > 0:
		timer.Reset(0)
	case ok:
		// A deadline that has passed since the round is for the next one.
		timer.Reset(max(max(next, s.loop.tickAfter)-s.elapsed(), time.Microsecond))
	default:
		timer.Stop()
	}
}

// round applies what has arrived, makes it durable, and hands out what the tree
// had to say about it when it is.
func (s *Server) round() {
	s.loop.rounds++
	s.land()
	r := taken{began: s.elapsed()}
	calls := s.takeTurns(&r)
	if len(calls) == 0 {
		calls = s.gather(&r)
	}
	s.hear()
	s.tick()
	s.loop.filling.size += r.size
	// A function sees what it likes, so nothing may be on its way.
	s.commit(len(calls) > 0)
	for _, c := range r.conns {
		s.settle(c)
	}
	s.noteIdle()
	for _, f := range calls {
		f()
	}
	s.maybeSnapshot()
}

// tick lets the tree do what is due. After a pause of the process, by SIGSTOP
// or a machine without time to spare, the deadlines of sessions have passed
// whose pings wait in the sockets: the readers get a moment to bring them
// before anybody is expired. A session that ends later harms no lock.
func (s *Server) tick() {
	l, now := &s.loop, s.now()
	due, ok := l.tree.NextTick()
	if ok && now.Mono-due > stall && l.tickAfter <= due {
		l.tickAfter = now.Mono + stallGrace
	}
	if now.Mono < l.tickAfter {
		return
	}
	l.tree.Tick(now, &l.out)
	s.stageSends(now)
	l.longestTurn = max(l.longestTurn, s.elapsed()-now.Mono)
}

// hear keeps sessions from ending whose clients were heard and have to wait for
// their turn: that silence is the server's own.
func (s *Server) hear() {
	l := &s.loop
	for _, list := range [][]*conn{l.again, l.filling.conns, l.flying.conns} {
		for _, c := range list {
			if (c.again || c.revisit) && c.hasInput() {
				l.tree.Heard(c.id, s.now())
			}
		}
	}
}

// takeReady returns the connections with input, in the order in which they
// got it, and the functions to call.
func (s *Server) takeReady() ([]*conn, []func()) {
	for _, c := range s.takeHanded() {
		s.adopt(c)
	}
	conns := s.loop.again
	s.loop.again = nil
	for _, c := range conns {
		c.again = false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.ready {
		c.queued = false
		conns = append(conns, c)
	}
	s.ready = s.ready[:0]
	calls := s.calls
	s.calls = nil
	return conns, calls
}

// takeHanded returns the connections to be polled from now on.
func (s *Server) takeHanded() []*conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	conns := s.handed
	s.handed = nil
	return conns
}

// later puts connections on the list of the next round.
func (s *Server) later(conns ...*conn) {
	for _, c := range conns {
		if !c.again {
			c.again = true
			s.loop.again = append(s.loop.again, c)
		}
	}
}

// apply runs a turn of c's requests through the tree and returns how many
// bytes they and their answers had.
func (s *Server) apply(c *conn) (size int) {
	if c.gone || c.laden() {
		return 0
	}
	if c.waits() {
		// It is here since something came: its client lives, and takes long to read,
		// or has to wait.
		s.loop.tree.Heard(c.id, s.now())
		return 0
	}
	if !c.greeted {
		s.loop.conns[c.id] = c
	}
	s.beginTurn(c)
	now := s.intake(c)
	began := now.Mono
	for n := 0; n < turnFrames && (c.unfinished || c.next < len(c.work.frames)) && !c.laden(); n++ {
		if n > 0 {
			if now = s.now(); now.Mono-began >= turnTime {
				break
			}
		}
		if c.unfinished {
			size += s.request(c, nil, now)
			continue
		}
		frame := c.work.frame(c.next)
		if s.holdBack(c, frame, now.Mono) {
			break
		}
		arrived := c.work.frames[c.next].at
		c.next++
		records, greeting := len(s.loop.out.Records), !c.greeted
		size += len(frame) + s.request(c, frame, now)
		c.staged.answered++
		c.staged.answeredBytes += int64(len(frame))
		s.countRequest(c, frame, pending{c, arrived, len(s.loop.out.Records) > records}, greeting)
	}
	s.touch(c)
	return size
}

// intake sees that c has requests to work off, if any came, and returns a moment at
// which they were here: sessions are heard no earlier than their clients spoke, which
// count from then as well.
func (s *Server) intake(c *conn) tree.Now {
	switch {
	case c.unfinished || c.next < len(c.work.frames):
		// The rest of its last turn.
	case c.polled.on:
		return s.fill(c)
	default:
		c.takeInput()
	}
	return s.now()
}

// request runs one request through the tree, or the rest of the last one, stages what
// it says, and returns the bytes of that.
func (s *Server) request(c *conn, frame []byte, now tree.Now) int {
	if c.ended {
		// The tree has closed this connection: what came after is void.
		c.unfinished = false
		return 0
	}
	out := &s.loop.out
	before := len(out.Records)
	failures, greeted := s.loop.tree.Tallies().AuthFailures, c.greeted
	who, sends := s.auditor(c), len(out.Sends)
	switch {
	case c.unfinished:
		c.unfinished = s.loop.tree.Continue(c.id, now, out)
	case greeted:
		c.unfinished = s.loop.tree.Request(c.id, frame, now, out)
		s.noteProof(c, frame, failures, now.Mono)
	default:
		s.greet(c, frame, now)
	}
	if greeted && s.audit != nil {
		s.auditStep(c, who, frame, sends)
	}
	size := s.stageSends(now)
	for _, rec := range out.Records[before:] {
		size += len(rec)
	}
	return size
}

// stageSends sorts what the tree wants sent by connection, to be handed over
// when the batch is durable.
func (s *Server) stageSends(now tree.Now) (size int) {
	for i := range s.loop.out.Sends {
		send := &s.loop.out.Sends[i]
		c := s.loop.conns[send.Conn]
		if c == nil || c.ended {
			continue
		}
		s.beginTurn(c)
		if len(c.staged.frames) == 0 && len(send.Frame) > keepBuffer {
			c.staged.frames = slices.Clip(send.Frame) // to copy a long answer takes long
		} else {
			c.staged.frames = append(c.staged.frames, send.Frame...)
		}
		c.ended, c.staged.end = send.Close, send.Close
		if len(send.Frame) > 0 {
			s.countSend(c, send.Frame, now)
		}
		size += len(send.Frame)
		s.touch(c)
	}
	clear(s.loop.out.Sends)
	s.loop.out.Sends = s.loop.out.Sends[:0]
	return size
}

// touch notes that c has something in the batch that is being filled.
func (s *Server) touch(c *conn) {
	if b := &s.loop.filling; !c.touched {
		c.touched = true
		b.conns = append(b.conns, c)
	}
}

// settle decides, after a round, when c is looked at again, and ends it if
// there is no more to come.
func (s *Server) settle(c *conn) {
	if c.gone {
		if c.polled.on {
			s.release(c, false)
		}
		return
	}
	switch more, end := c.outlook(); {
	case end && (c.touched || c.aboard), more && c.stuck():
		c.revisit = true
	case end:
		c.gone = true
		s.loop.tree.Disconnect(c.id, s.now())
		delete(s.loop.conns, c.id)
		if s.audit != nil {
			delete(s.audit.unfinished, c.id)
		}
		delete(s.loop.slow, c)
		c.send(nil, true)
		if c.polled.on {
			s.release(c, false)
		}
	case more:
		s.later(c)
	}
}
