package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/netutil"
)

// refusedRounds is how many times each server must refuse a connection before a command
// that does not wait (--try) fails.
const refusedRounds = 3

// errRefused is the cause of a context that ended because all servers refused connections.
var errRefused = errors.New("all servers refused the connection")

// dialState is what the last attempt to reach a server led to.
type dialState string

const (
	dialBegun   dialState = "no answer yet"
	dialReached dialState = "connected, no session yet"
	dialRefused dialState = "refused"
	dialUnknown dialState = "unknown host"
	dialFailed  dialState = "failed"
)

// dialStateOf returns the state after an attempt that returned err.
func dialStateOf(err error) dialState {
	var dns *net.DNSError
	switch {
	case err == nil:
		return dialReached
	case errors.Is(err, syscall.ECONNREFUSED):
		return dialRefused
	case errors.As(err, &dns):
		return dialUnknown
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded):
		return dialBegun
	}
	return dialFailed
}

// dialFunc makes a connection, as Options.DialContext.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// dialing follows the attempts to reach the first server.
type dialing struct {
	dial    dialFunc
	servers int    // number of servers
	refused func() // called when each server has refused refusedRounds times in a row; may be nil

	mu       sync.Mutex // guards the rest
	address  string     // of the last attempt; empty before the first
	state    dialState
	refusals map[string]int // by address, since a server last answered otherwise
}

// DialContext makes a connection, as Options.DialContext.
func (d *dialing) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	d.note(address, dialBegun)
	conn, err := d.dial(ctx, network, address)
	d.note(address, dialStateOf(err))
	return conn, err
}

// note records the state of an attempt.
func (d *dialing) note(address string, state dialState) {
	d.mu.Lock()
	// A new attempt does not hide why the last one failed.
	if state != dialBegun || d.address != address {
		d.address, d.state = address, state
	}
	all := false
	switch state {
	case dialRefused:
		if d.refusals == nil {
			d.refusals = map[string]int{}
		}
		d.refusals[address]++
		all = len(d.refusals) >= d.servers
		for _, n := range d.refusals {
			all = all && n >= refusedRounds
		}
	case dialReached, dialUnknown, dialFailed:
		d.refusals = nil
	}
	d.mu.Unlock()
	if all && d.refused != nil {
		d.refused()
	}
}

// describe returns the line about the attempts. left is the time until the command gives up.
func (d *dialing) describe(left time.Duration) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.address == "" {
		return "connecting"
	}
	then := "retrying"
	if d.state == dialReached || d.state == dialBegun {
		then = "waiting"
	}
	return fmt.Sprintf("connecting to %s (%s, %s for %s)", legible.Name(d.address), d.state, then, ShortDuration(max(left, 0).Round(time.Second)))
}

// connect calls dial with a function that makes connections and is followed: on a terminal,
// a line tells what the command waits for. Elsewhere, one line after --connect-timeout does, unless
// -E 0 is given: cron would mail that line. With --try, connect fails when all servers have refused
// the connection refusedRounds times.
func (s *Settings) connect(ctx context.Context, t *target, dial func(context.Context, dialFunc) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	_, hosts, _ := Addresses(t.Servers)
	d := &dialing{dial: t.Dial(), servers: len(hosts)}
	if d.dial == nil {
		d.dial = netutil.Dial
	}
	if s.Try {
		d.refused = func() { cancel(errRefused) }
	}
	deadline, _ := ctx.Deadline()
	describe := func() string { return d.describe(time.Until(deadline)) }
	switch {
	case term.IsTerminal(2):
		defer startProgress(Stderr, s.Link.Foreground, describe).Stop()
	case s.Conflict != 0 && time.Until(deadline) > s.Connect.D:
		// Its function runs on a goroutine of its own, which ends with it.
		defer time.AfterFunc(s.Connect.D, func() {
			Warn("no server answered within %s: %s", ExactDuration(s.Connect.D), describe())
		}).Stop()
	}
	err := dial(ctx, d.DialContext)
	if err != nil && context.Cause(ctx) == errRefused {
		return fmt.Errorf("connect to %s: refused %d times; start the servers, or correct --servers", s.ServersText(), refusedRounds)
	}
	return err
}
