package zkserver

import "time"

// landing is what came of a sync.
type landing struct {
	err   error
	index uint64 // of the last record that is durable
	took  time.Duration
	at    time.Duration // when it ended
}

// startSync has the syncer make durable what was appended to the log.
func (s *Server) startSync() {
	s.loop.syncing = true
	s.syncs <- struct{}{}
}

// syncer syncs the log, so that the loop need not wait for it. New starts it, and
// the loop ends it by closing syncs; Close waits for that. There is one sync at a
// time, and each has its landing taken in before the next.
func (s *Server) syncer() {
	defer s.handlers.Done()
	for range s.syncs {
		s.synced <- s.sync()
		s.wakeLoop()
	}
}

// sync makes durable what was appended to the log: one write and one sync for all
// of it.
func (s *Server) sync() landing {
	began := s.elapsed()
	err := s.loop.log.Sync()
	at := s.elapsed()
	return landing{err: err, index: s.loop.log.Durable(), took: at - began, at: at}
}
