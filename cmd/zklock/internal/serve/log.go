package serve

import (
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
	opts := &slog.HandlerOptions{Level: level}
	switch l.format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, cli.UsageError("--log-format is %q: give text or json%s", l.format, config.DidYouMean(l.format, []string{"text", "json"}))
}
