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
	// logBurst is how many lines of one kind are logged at once, and logEvery the time
	// after which another one may follow: a client that connects in a loop must not fill
	// the disk. In the worst case about 20 MB a day are logged.
	logBurst = 20
	logEvery = time.Second
)

// logLimiter lets a burst of log lines pass and then one line at a time. It counts the
// lines that it drops; the next line that passes reports how many.
type logLimiter struct {
	mu      sync.Mutex
	began   bool
	tokens  int
	filled  time.Duration // when tokens was updated
	skipped int64
}

// allow reports whether a line may be logged at the time now, and how many lines were
// dropped since the last one.
func (l *logLimiter) allow(now time.Duration) (skipped int64, ok bool) {
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

// logLimiters has a logLimiter for each kind of line that a client can cause.
type logLimiters struct{ refused, ended, accept logLimiter }

// logRefused counts and logs a connection that a limit refused.
func (s *Server) logRefused(peer net.Addr, err error) {
	switch {
	case errors.Is(err, errPerAddress):
		s.count.refusedPerAddress.Add(1)
	case errors.Is(err, errTotal), errors.Is(err, errDescriptors):
		s.count.refusedTotal.Add(1)
	case errors.Is(err, errByOption):
		s.count.refusedByOption.Add(1)
	}
	s.logPeer(&s.logLimits.refused, slog.LevelWarn, "connection refused", peer, err)
}

// logClosed counts and logs a connection that ended for a reason: nil means that the client
// closed it, net.ErrClosed that the server ended.
func (s *Server) logClosed(peer net.Addr, reason error) {
	if reason == nil || errors.Is(reason, net.ErrClosed) {
		return
	}
	if errors.Is(reason, errByOption) {
		s.logRefused(peer, reason)
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
		// handshakeError has counted it.
	case badFrame(reason):
		s.count.cutFrame.Add(1)
		level = slog.LevelWarn
	default:
		s.count.cutBroken.Add(1)
	}
	s.logPeer(&s.logLimits.ended, level, "connection closed", peer, reason)
}

// badFrame reports whether a connection ended because of what the client sent, and not
// because the network failed within a frame.
func badFrame(reason error) bool {
	var network net.Error
	return errors.Is(reason, wire.ErrFrame) && !errors.Is(reason, io.ErrUnexpectedEOF) && !errors.As(reason, &network)
}

// logPeer logs a line about a peer, unless there were too many.
func (s *Server) logPeer(l *logLimiter, level slog.Level, msg string, peer net.Addr, reason error) {
	skipped, ok := l.allow(s.elapsed())
	if !ok {
		return
	}
	args := []any{"remote", peer.String(), "error", reason}
	if skipped > 0 {
		args = append(args, "not_logged", skipped)
	}
	s.log.Log(context.Background(), level, msg, args...)
}
