package cli

import (
	"bytes"
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
)

// TestDialingDescribesLastAttempt checks that a new attempt does not hide the error of the last
// one.
func TestDialingDescribesLastAttempt(t *testing.T) {
	d := &dialing{}
	for _, tt := range []struct {
		address string
		state   dialState
		want    string
	}{
		{"", dialBegun, "connecting"},
		{"zk1:2181", dialBegun, "connecting to zk1:2181 (no answer yet, waiting for 9s)"},
		{"zk1:2181", dialRefused, "connecting to zk1:2181 (refused, retrying for 9s)"},
		{"zk1:2181", dialBegun, "connecting to zk1:2181 (refused, retrying for 9s)"},
		{"zk2:2181", dialStateOf(&net.DNSError{}), "connecting to zk2:2181 (unknown host, retrying for 9s)"},
		{"zk2:2181", dialStateOf(errors.New("x")), "connecting to zk2:2181 (failed, retrying for 9s)"},
		{"zk1:2181", dialStateOf(nil), "connecting to zk1:2181 (connected, no session yet, waiting for 9s)"},
	} {
		d.note(tt.address, tt.state)
		if got := d.describe(9200 * time.Millisecond); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.address, tt.state, got, tt.want)
		}
	}
}

// TestDialingReportsRefusalByAllServers checks that this needs three refusals by each server, and
// no answer in between.
func TestDialingReportsRefusalByAllServers(t *testing.T) {
	var answer error
	refused := 0
	d := &dialing{servers: 2, refused: func() { refused++ },
		dial: func(context.Context, string, string) (net.Conn, error) { return nil, answer }}
	try := func(err error, servers ...string) {
		answer = err
		for _, s := range servers {
			_, _ = d.DialContext(t.Context(), "tcp", s)
		}
	}
	try(syscall.ECONNREFUSED, "a:1", "a:1", "a:1", "a:1", "b:1", "b:1")
	try(nil, "b:1")
	try(syscall.ECONNREFUSED, "a:1", "b:1", "a:1", "b:1", "a:1")
	if refused != 0 {
		t.Fatalf("reported %d times before each server refused three times", refused)
	}
	if try(syscall.ECONNREFUSED, "b:1"); refused != 1 {
		t.Errorf("reported %d times, want once", refused)
	}
}

// TestExplainNamesDialOnce: the errors of package zk name the dial too.
func TestExplainNamesDialOnce(t *testing.T) {
	s := Settings{Servers: "x:1"}
	inner := errors.New("zk: dial x:1: refused")
	if got := s.Explain(&zklock.Error{Op: "dial", Err: inner}); got.Error() != inner.Error() {
		t.Errorf("%v", got)
	}
	if got := s.Explain(zk.ErrClosed); !errors.Is(got, zk.ErrClosed) {
		t.Errorf("%v", got)
	}
}

// TestWaitIncludesAnOutageAtItsStart checks how long a command that acquires a lock tries to reach
// the first server, and that it says after --connect-timeout that no server answers: a mistake in
// --servers must not stay hidden for hours.
func TestWaitIncludesAnOutageAtItsStart(t *testing.T) {
	old := Stderr
	defer func() { Stderr = old }()
	for _, tt := range []struct {
		args  string
		took  time.Duration
		lines int
	}{
		{"-w 1h", time.Hour, 1},
		{"-w 1h -E 0", time.Hour, 0}, // cron would mail the line
		{"-w 1h --connect-timeout 20s", 20 * time.Second, 0},
		{"-w 3s", 3 * time.Second, 0},
		{"", defaultConnect, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			var s Settings
			f := pflag.NewFlagSet("x", pflag.ContinueOnError)
			s.ConnectionFlags(f)
			s.WaitFlags(f)
			if err := f.Parse(append(strings.Fields(tt.args), "--servers", "127.0.0.1:1")); err != nil {
				t.Fatal(err)
			}
			if err := s.Check(f); err != nil {
				t.Fatal(err)
			}
			text := new(bytes.Buffer)
			Stderr = text
			began := time.Now()
			_, _, err := s.Locks(t.Context(), zklock.Options{})
			want := "no server answered within " + ExactDuration(tt.took)
			if took := time.Since(began); took != tt.took || err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: after %v: %v", tt.args, took, err)
			}
			line := "no server answered within 10s: connecting to 127.0.0.1:1 (refused, retrying for "
			if got := strings.Count(text.String(), line); got != tt.lines {
				t.Errorf("%q: printed %q", tt.args, text)
			}
		})
	}
}
