//go:build !unix

package local

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/home"
)

// Dialer refuses: there is no local server on this system.
type Dialer struct {
	Place Place
	Exe   string
	Idle  time.Duration
}

// DialContext refuses.
func (d *Dialer) DialContext(context.Context, string, string) (net.Conn, error) {
	return nil, errNone()
}

// Connect refuses.
func (p Place) Connect(context.Context) (net.Conn, error) { return nil, errNone() }

// Status is what can be known of a local server from outside.
type Status struct {
	Dir, Socket string
	PID         int
	Sessions    string
}

// Status refuses.
func (p Place) Status(context.Context) (Status, error) { return Status{}, errNone() }

// Stop refuses.
func (p Place) Stop(context.Context) error { return errNone() }

// Serve refuses.
func Serve(_ context.Context, _ Place, _ time.Duration, ready func(string)) error {
	err := errNone()
	ready(err.Error())
	return err
}

func errNone() error {
	return fmt.Errorf("%w: there is none on this system; %s, and see zklock serve --listen", ErrUnavailable, home.Advice)
}
