package zkserver

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"

	"github.com/zklock/zklock/internal/netutil"
	"github.com/zklock/zklock/internal/wire"
)

// logLimiters has a limiter for each kind of line that a client can cause.
type logLimiters struct{ refused, ended, accept netutil.LogLimiter }

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
func (s *Server) logPeer(l *netutil.LogLimiter, level slog.Level, msg string, peer net.Addr, reason error) {
	skipped, ok := l.Allow(s.elapsed())
	if !ok {
		return
	}
	args := []any{"remote", peer.String(), "error", reason}
	if skipped > 0 {
		args = append(args, "not_logged", skipped)
	}
	s.log.Log(context.Background(), level, msg, args...)
}
