package serverload

import (
	"errors"
	"fmt"
	"io"
	"time"
)

// Options is what to measure and how long. All must be given; [Defaults] are the
// ones that the command has.
type Options struct {
	// Dir is where the servers keep their files, both on the disk it is on.
	Dir string
	// Zklock is the command to run as embedded server; empty means to build it.
	Zklock string
	// Base is another zklock command to compare with, such as one of an earlier
	// commit; empty means Apache ZooKeeper.
	Base string
	// Part is "load" or "start" for one half of the rows, empty for both.
	Part string
	// Rounds is how often everything is measured.
	Rounds int
	// Turn is how long one measurement of throughput takes.
	Turn time.Duration
	// Warm is how long each server gets load before the first round: a JVM
	// compiles what it runs often.
	Warm time.Duration
	// Clients are the numbers of clients of the rows for pairs and reads.
	Clients []int
	// Watchers is how many sessions watch one node.
	Watchers int
	// Sessions and Nodes are how many there are when memory is measured.
	Sessions, Nodes int
	// Rest is how long a server is left in peace before its memory is measured,
	// which it may use to give some back.
	Rest time.Duration
	// Data is how many bytes each node has.
	Data int
	// Quiet is the share of processor time, 0 to 1, that other processes may
	// have in a round that counts; Retries is how often another is repeated.
	Quiet   float64
	Retries int
	// Log gets the progress. Nil is silent.
	Log io.Writer
}

// Defaults takes about eight minutes on a quiet machine, more on a busy one.
func Defaults() Options {
	return Options{
		Rounds: 7, Turn: time.Second, Warm: 15 * time.Second, Clients: []int{1, 16, 256},
		Watchers: 1000, Sessions: 1000, Nodes: 100_000, Rest: 6 * time.Second, Data: 16, Quiet: 0.1, Retries: 3,
	}
}

// Quick makes them as small as still gives a picture: about a minute.
func (o Options) Quick() Options {
	o.Rounds, o.Turn, o.Warm, o.Nodes, o.Retries = 3, 300*time.Millisecond, 5*time.Second, 20_000, 0
	return o
}

// ErrInvalidOptions is wrapped by errors about Options.
var ErrInvalidOptions = errors.New("serverload: invalid option")

// check names the first number that makes no sense.
func (o *Options) check() error {
	for name, n := range map[string]int{
		"Rounds": o.Rounds, "Watchers": o.Watchers, "Sessions": o.Sessions, "Nodes": o.Nodes,
	} {
		if n < 1 {
			return fmt.Errorf("%w: %s is %d, give at least 1", ErrInvalidOptions, name, n)
		}
	}
	for _, n := range o.Clients {
		if n < 1 {
			return fmt.Errorf("%w: Clients has %d, give at least 1", ErrInvalidOptions, n)
		}
	}
	if o.Part != "" && o.Part != "load" && o.Part != "start" {
		return fmt.Errorf("%w: Part is %q, give load or start, or nothing for both", ErrInvalidOptions, o.Part)
	}
	if o.Turn <= 0 || o.Warm < 0 || o.Rest < 0 || o.Data < 0 || o.Retries < 0 {
		return fmt.Errorf("%w: Turn, Warm, Rest, Data or Retries is negative or without length", ErrInvalidOptions)
	}
	return nil
}
