package zkserver

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestBadOptionsAreNamed(t *testing.T) {
	for field, opts := range map[string]Options{
		"TickTime":               {TickTime: -time.Second},
		"MinSessionTimeout":      {MinSessionTimeout: time.Nanosecond},
		"MaxSessionTimeout":      {MaxSessionTimeout: 1 << 62},
		"is above":               {MinSessionTimeout: time.Minute, MaxSessionTimeout: time.Second},
		"HandshakeTimeout":       {HandshakeTimeout: -1},
		"ContainerCheckInterval": {ContainerCheckInterval: -1},
		"MaxConns":               {MaxConns: -1},
		"MaxFrame":               {MaxFrame: 10},
		"at most 268435456":      {MaxFrame: 1 << 30},
		"MaxOutstanding":         {MaxOutstanding: -5},
		"MaxUnread":              {MaxUnread: 1},
		"SnapshotRecords":        {SnapshotRecords: -1},
		"SnapshotBytes":          {SnapshotBytes: -1},
		`"mnrt"`:                 {FourLetterWords: []string{"ruok", "mnrt"}},
	} {
		opts.Logger = discard()
		s, err := New(opts)
		if err == nil {
			s.Close()
		}
		if !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, want an error that wraps ErrOptions and names it", field, err)
		}
	}
}

func TestSessionTimeoutsAreClamped(t *testing.T) {
	for _, test := range []struct {
		opts      Options
		ask, want time.Duration
	}{
		{Options{}, time.Second, 4 * time.Second},
		{Options{}, 10 * time.Second, 10 * time.Second},
		{Options{}, time.Hour, 40 * time.Second},
		{Options{}, -time.Second, 4 * time.Second},
		{Options{TickTime: 500 * time.Millisecond}, 0, time.Second},
		{Options{MinSessionTimeout: 50 * time.Second}, time.Hour, 50 * time.Second},
		{Options{MaxSessionTimeout: time.Hour}, 2 * time.Hour, time.Hour},
	} {
		test.opts.Logger = discard()
		c := login(t, start(t, test.opts), test.ask)
		if got := time.Duration(c.session.Timeout) * time.Millisecond; got != test.want {
			t.Errorf("asked for %v with %v: got %v, want %v", test.ask, test.opts.MinSessionTimeout, got, test.want)
		}
	}
}
