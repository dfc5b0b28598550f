package serve

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/spf13/pflag"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/cmd/zklock/internal/config"
)

// logFlags are the flags for the log of a server.
type logFlags struct{ format, level string }

func (l *logFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&l.format, "log-format", "text", "`format`: text (default) or json")
	f.StringVar(&l.level, "log-level", "info", "`level`: debug, info (default), warn, error")
}

// logger returns the logger. Both handlers quote control characters.
func (l *logFlags) logger(w io.Writer) (*slog.Logger, error) {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[l.level]
	if !ok {
		return nil, cli.UsageError("--log-level is %q: give debug, info, warn, or error%s", l.level, config.DidYouMean(l.level, slices.Sorted(maps.Keys(levels))))
	}
	opts := &slog.HandlerOptions{Level: min(level, auditLevel)}
	switch l.format {
	case "text":
		return slog.New(leveled{slog.NewTextHandler(w, opts), level}), nil
	case "json":
		return slog.New(leveled{slog.NewJSONHandler(w, opts), level}), nil
	}
	return nil, cli.UsageError("--log-format is %q: give text or json%s", l.format, config.DidYouMean(l.format, []string{"text", "json"}))
}

// The level and the message of a line of the audit log.
const (
	auditLevel   = slog.LevelInfo
	auditMessage = "audit"
)

// leveled handles the records from a level on, and all lines of the audit log: --log-level does
// not turn that off.
type leveled struct {
	slog.Handler
	level slog.Level
}

// Handle implements slog.Handler.
func (h leveled) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < h.level && (r.Level != auditLevel || r.Message != auditMessage) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h leveled) WithAttrs(attrs []slog.Attr) slog.Handler {
	return leveled{h.Handler.WithAttrs(attrs), h.level}
}

// WithGroup implements slog.Handler.
func (h leveled) WithGroup(name string) slog.Handler {
	return leveled{h.Handler.WithGroup(name), h.level}
}
