package zkserver

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/internal/netutil"
	"github.com/zklock/zklock/internal/wire"
)

// TestClosedConnectionsAreCounted checks counters and log for each way in which a connection
// ends.
func TestClosedConnectionsAreCounted(t *testing.T) {
	for _, test := range []struct {
		name   string
		reason error
		want   ConnectionsCut
		level  string
	}{
		{"client went away", nil, ConnectionsCut{}, ""},
		{"server's end", net.ErrClosed, ConnectionsCut{}, ""},
		{"slow", errTooSlow, ConnectionsCut{SlowReaders: 1}, "WARN"},
		{"silent", errHandshake, ConnectionsCut{HandshakeTimeouts: 1}, "INFO"},
		{"too long", fmt.Errorf("%w: length 9", wire.ErrFrame), ConnectionsCut{FrameTooLong: 1}, "WARN"},
		{"cut short", fmt.Errorf("%w: %w", wire.ErrFrame, io.ErrUnexpectedEOF), ConnectionsCut{Broken: 1}, "INFO"},
		{"reset", &net.OpError{Op: "read", Err: errors.New("reset")}, ConnectionsCut{Broken: 1}, "INFO"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			opts := testOptions(t)
			opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
			s := start(t, opts)
			log.Reset()
			client, _ := memnet.Pipe()
			s.logClosed(client.RemoteAddr(), test.reason)
			if got := s.Stats().ConnectionsCut; got != test.want {
				t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
			}
			if !strings.Contains(log.String(), test.level) || (log.Len() == 0) != (test.level == "") {
				t.Errorf("%s: logged %q, want %q", test.name, log.String(), test.level)
			}
		})
	}
}

// TestRefusedConnectionsAreCounted checks that the server counts refusals by limit.
func TestRefusedConnectionsAreCounted(t *testing.T) {
	for _, test := range []struct {
		name string
		opts Options
		want ConnectionsRefused
	}{
		{"per address", Options{MaxClientConns: 2}, ConnectionsRefused{TooManyPerAddress: 3}},
		{"in total", Options{MaxConns: 2}, ConnectionsRefused{TooManyConns: 3}},
		{"option", Options{Accept: func(net.Conn) error { return errors.New("no") }}, ConnectionsRefused{ByAccept: 5}},
	} {
		synctest.Test(t, func(t *testing.T) {
			test.opts.Logger = discard()
			s, network := onNetwork(t, test.opts)
			for range 5 {
				dialMem(t, network, "10.0.0.1:2181")
			}
			synctest.Wait()
			if got := s.Stats().ConnectionsRefused; got != test.want {
				t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
			}
		})
	}
}

func TestRefusalLogIsRateLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s, network := onNetwork(t, Options{MaxClientConns: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		for range 500 {
			dialMem(t, network, "10.0.0.1:2181")
		}
		synctest.Wait()
		if got := s.Stats().ConnectionsRefused.TooManyPerAddress; got != 499 {
			t.Errorf("%d refused, want 499", got)
		}
		if lines := strings.Count(log.String(), "connection refused"); lines != netutil.LogBurst {
			t.Errorf("%d lines logged, want %d", lines, netutil.LogBurst)
		}
		if !strings.Contains(log.String(), "raise maxClientCnxns (zklock serve --max-conns-per-address)") {
			t.Errorf("the log does not name the setting: %s", log.String())
		}
	})
}
