package lockload

import (
	"errors"
	"fmt"
	"time"

	"github.com/zklock/zklock/bench/internal/rounds"
)

// Options select the measurements and their durations. [Defaults] returns those of the command.
type Options struct {
	rounds.Options
	// Many is the number of waiters in the queue that drains, and Locks the number of held
	// locks in the rows about growth.
	Many, Locks int
	// Rows and Columns, unless empty, select the rows and contenders whose names contain
	// one of these texts.
	Rows, Columns []string
}

// Defaults returns options for a comparison of about half an hour.
func Defaults() Options {
	return Options{
		Options: rounds.Options{Rounds: 7, Turn: time.Second, Warm: 8 * time.Second, Quiet: 0.1, Retries: 1},
		Many:    1000, Locks: 10_000,
	}
}

// Quick returns options for a rough comparison of about two minutes.
func (o Options) Quick() Options {
	o.Rounds, o.Turn, o.Warm, o.Many, o.Locks, o.Retries = 1, 300*time.Millisecond, 2*time.Second, 200, 1000, 0
	return o
}

// ErrInvalidOptions is wrapped by errors about Options.
var ErrInvalidOptions = errors.New("lockload: invalid option")

func (o *Options) check() error {
	switch {
	case o.Rounds < 1 || o.Many < 1 || o.Locks < 1:
		return fmt.Errorf("%w: Rounds, Many or Locks is less than 1", ErrInvalidOptions)
	case o.Turn < time.Millisecond || o.Warm < 0 || o.Retries < 0:
		return fmt.Errorf("%w: Turn is less than a millisecond, or Warm or Retries negative", ErrInvalidOptions)
	}
	return nil
}
