package zkserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

const (
	// logBurst is how many lines of one kind are logged at once, and logEvery
	// the time after which there may be another: a peer that connects in a loop
	// must not fill the disk. About 20 MB a day remain in the worst case.
	logBurst = 20
	logEvery = time.Second
)

// limiter lets a burst of log lines pass and then one at a time. It counts
// what it swallows, and tells with the next line that passes.
type limiter struct {
	mu      sync.Mutex
	began   bool
	tokens  int
	filled  time.Duration // when tokens was brought up to date
	skipped int64
}

// pass reports whether a line may be logged at the moment now, and how many
// were not since the last.
func (l *limiter) pass(now time.Duration) (skipped int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.began {
		l.began, l.tokens, l.filled = true, logBurst, now
	}
	if n := (now - l.filled) / logEvery; n > 0 {
		l.tokens = int(min(int64(l.tokens)+int64(n), logBurst))
		l.filled += n * logEvery
	}
	if l.tokens == 0 {
		l.skipped++
		return 0, false
	}
	l.tokens--
	skipped, l.skipped = l.skipped, 0
	return skipped, true
}

// limiters are one for each kind of line that a peer can provoke.
type limiters struct{ refused, ended, accept limiter }

// tellRefused counts and logs a connection that a limit turned away.
func (s *Server) tellRefused(peer net.Addr, err error) {
	switch {
	case errors.Is(err, errPerAddress):
		s.count.refusedPerAddress.Add(1)
	case errors.Is(err, errTotal), errors.Is(err, errDescriptors):
		s.count.refusedTotal.Add(1)
	case errors.Is(err, errByOption):
		s.count.refusedByOption.Add(1)
	}
	s.logPeer(&s.limiters.refused, slog.LevelWarn, "connection refused", peer, err)
}

// tellEnded counts and logs a connection that ended with a reason: nil is a
// client that went away, net.ErrClosed the end of the server.
func (s *Server) tellEnded(peer net.Addr, reason error) {
	if reason == nil || errors.Is(reason, net.ErrClosed) {
		return
	}
	if errors.Is(reason, errByOption) {
		s.tellRefused(peer, reason)
		return
	}
	level := slog.LevelInfo
	switch {
	case errors.Is(reason, errTooSlow):
		s.count.cutSlow.Add(1)
		level = slog.LevelWarn
	case errors.Is(reason, errHandshake):
		s.count.cutHandshake.Add(1)
	case errors.Is(reason, errTLS):
		// Counted where it happened.
	case badFrame(reason):
		s.count.cutFrame.Add(1)
		level = slog.LevelWarn
	default:
		s.count.cutBroken.Add(1)
	}
	s.logPeer(&s.limiters.ended, level, "connection closed", peer, reason)
}

// badFrame reports whether a connection ended because of what was sent, not
// because the network broke in the middle of a frame.
func badFrame(reason error) bool {
	var network net.Error
	return errors.Is(reason, wire.ErrFrame) && !errors.Is(reason, io.ErrUnexpectedEOF) && !errors.As(reason, &network)
}

// logPeer logs a line about a peer, unless there were too many.
func (s *Server) logPeer(l *limiter, level slog.Level, msg string, peer net.Addr, reason error) {
	skipped, ok := l.pass(s.elapsed())
	if !ok {
		return
	}
	args := []any{"remote", peer.String(), "error", reason}
	if skipped > 0 {
		args = append(args, "not_logged", skipped)
	}
	s.log.Log(context.Background(), level, msg, args...)
}
