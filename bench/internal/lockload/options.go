package lockload

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Options is what to measure and how long. All must be given; [Defaults] are the
// ones that the command has.
type Options struct {
	// Dir is where servers keep their files, all on the disk it is on.
	Dir string
	// Zklock is the command to run as embedded server; empty means to build it.
	Zklock string
	// Rounds is how often everything is measured, Turn how long at a time.
	Rounds int
	Turn   time.Duration
	// Warm is how long each contender works before the first round: a JVM
	// compiles what it runs often.
	Warm time.Duration
	// Many is how many wait in the queue that drains, Locks how many locks are
	// held in the rows about growth.
	Many, Locks int
	// Rows and Columns, where not empty, leave out the rows and the contenders in
	// whose names none of these is.
	Rows, Columns []string
	// Quiet and Retries are as rounds.Plan has them.
	Quiet   float64
	Retries int
	// Log gets the progress. Nil is silent.
	Log io.Writer
}

// Defaults takes about half an hour.
func Defaults() Options {
	return Options{Rounds: 7, Turn: time.Second, Warm: 8 * time.Second, Many: 1000, Locks: 10_000, Quiet: 0.1, Retries: 1}
}

// Quick gives a picture in two minutes.
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
