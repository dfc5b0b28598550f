//go:build !unix

package local

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/zklock/zklock/internal/netutil"
)

// Dialer returns errors: this system has no local server.
type Dialer struct {
	Place Place
	Exe   func() (string, error)
	Idle  time.Duration
}

// DialContext returns an error.
func (d *Dialer) DialContext(context.Context, string, string) (net.Conn, error) {
	return nil, errNone()
}

// First returns false.
func (d *Dialer) First() bool { return false }

// Connect returns an error.
func (p Place) Connect(context.Context) (net.Conn, error) { return nil, errNone() }

// Check returns an error.
func (p Place) Check() error { return errNone() }

// DialNamed connects.
func DialNamed(ctx context.Context, network, address string) (net.Conn, error) {
	return netutil.Dial(ctx, network, address)
}

// Status is the state of a local server.
type Status struct {
	Dir, Socket string
	PID         int
	Sessions    string
}

// Status returns an error.
func (p Place) Status(context.Context) (Status, error) { return Status{}, errNone() }

// Stop returns an error.
func (p Place) Stop(context.Context) error { return errNone() }

// Serve returns an error.
func Serve(_ context.Context, _ Place, _ time.Duration, ready func(string)) error {
	err := errNone()
	ready(err.Error())
	return err
}

func errNone() error {
	return fmt.Errorf("%w: this system has none; %s, and see zklock serve --listen", ErrUnavailable, Advice)
}
