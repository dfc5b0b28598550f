package serverload

import (
	"errors"
	"fmt"
	"time"

	"github.com/zklock/zklock/bench/internal/rounds"
)

// Options select the measurements and their durations. [Defaults] returns those of the command.
type Options struct {
	rounds.Options
	// Base is another zklock command to compare with, such as one of an earlier
	// commit; empty means Apache ZooKeeper.
	Base string
	// Part is "load" or "start" for one part of the rows, or empty for both.
	Part string
	// Clients are the numbers of clients in the rows for pairs and reads.
	Clients []int
	// Watchers is the number of sessions that watch one node.
	Watchers int
	// Sessions and Nodes are their numbers when memory is measured.
	Sessions, Nodes int
	// Rest is the idle time before a measurement of memory, in which a server can return memory.
	Rest time.Duration
	// Data is the size of each node's data in bytes.
	Data int
}

// Defaults returns options for a comparison that takes about eight minutes on a quiet
// machine.
func Defaults() Options {
	return Options{
		Options: rounds.Options{Rounds: 7, Turn: time.Second, Warm: 15 * time.Second, Quiet: 0.1, Retries: 3},
		Clients: []int{1, 16, 256}, Watchers: 1000, Sessions: 1000, Nodes: 100_000, Rest: 6 * time.Second, Data: 16,
	}
}

// Quick returns options for a rough comparison of about a minute.
func (o Options) Quick() Options {
	o.Rounds, o.Turn, o.Warm, o.Nodes, o.Retries = 3, 300*time.Millisecond, 5*time.Second, 20_000, 0
	return o
}

// ErrInvalidOptions is wrapped by errors about Options.
var ErrInvalidOptions = errors.New("serverload: invalid option")

// check returns an error about the first invalid option.
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
