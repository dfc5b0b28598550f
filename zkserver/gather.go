package zkserver

import "time"

// gatherTime is how long after its beginning a round may still be joined: about
// as long as a sync of a good disk. Whoever came first waits for those behind it.
const gatherTime = 300 * time.Microsecond

// taken is what a round took from the connections.
type taken struct {
	began time.Duration // the round
	conns []*conn       // in the order of their turns
	size  int           // of the requests and of what came of them, in bytes
}

// takeTurns gives every connection with input its turn, as far as the round has
// room, and returns the functions to call.
func (s *Server) takeTurns(r *taken) []func() {
	conns, calls := s.takeReady()
	at := s.elapsed()
	free := s.byDebt(conns, at)
	for i, c := range conns {
		// Of those in debt one has its turn whatever the time, or none might ever.
		if s.full(r, at) || i > free && at-r.began > turnTime {
			s.later(conns[i:]...)
			conns = conns[:i]
			break
		}
		r.size += s.apply(c)
		began := at
		at = s.elapsed()
		s.owe(c, at-began, at)
	}
	if r.conns == nil {
		r.conns = conns
	} else {
		r.conns = append(r.conns, conns...)
	}
	return calls
}

// full reports whether the round has taken as much as it may at the moment at.
func (s *Server) full(r *taken, at time.Duration) bool {
	return s.loop.filling.size+r.size > roundBytes || at-r.began > roundTime
}

// gather takes in what arrived while the round was at work: it goes along with the
// sync that is due now, instead of waiting for the end of that and for one of its
// own. A sync costs the processor as much as several requests do, and of clients that
// go on at once upon an answer most are back by then. Nobody is waited for: without
// anything new the sync begins. Functions to call end it.
func (s *Server) gather(r *taken) (calls []func()) {
	for len(calls) == 0 && s.syncDue() {
		if at := s.elapsed(); s.full(r, at) || at-r.began >= gatherTime || !s.glance() {
			break
		}
		calls = s.takeTurns(r)
	}
	return calls
}

// syncDue reports whether the round ends in a sync that begins at once.
func (s *Server) syncDue() bool {
	l := &s.loop
	return l.log != nil && !s.opts.NoSync && !l.syncing && len(l.out.Records) > 0
}
