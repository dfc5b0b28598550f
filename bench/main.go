// Command bench compares zklock with other systems on this machine:
//
//	bench server   the embedded server with Apache ZooKeeper
//	bench locks    the locks with those of Curator, kazoo, go-zookeeper, etcd, and redsync
//
// Everything runs on loopback and on one disk, in turns. The output is a table of medians
// with ratios. On another machine, only the ratios are comparable. The command exits with 1 only
// after an error, such as an answer that cannot be right, and not if it misses a goal.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/zklock/zklock/bench/internal/rounds"
	"github.com/zklock/zklock/bench/internal/serverload"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run runs the comparison that the first argument names.
func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("specify a comparison: bench server, or bench locks")
	}
	switch args[0] {
	case "server":
		return server(ctx, args[1:])
	case "locks":
		return locks(ctx, args[1:])
	case "contender": // for "bench locks", which starts the Go libraries by it
		return contend(ctx, args[1:])
	}
	return fmt.Errorf("unknown comparison %q: use bench server, or bench locks", args[0])
}

// server runs "bench server".
func server(ctx context.Context, args []string) error {
	o := serverload.Defaults()
	fs := flag.NewFlagSet("bench server", flag.ContinueOnError)
	fs.BoolFunc("quick", "a rough measurement in a minute, not for publication; later flags override its settings", func(string) error {
		o = o.Quick()
		return nil
	})
	dir := commonFlags(fs, &o.Options)
	out := fs.String("json", filepath.Join("bin", "bench-server.json"), "write all values to this `file`")
	fs.StringVar(&o.Base, "base", "", "compare with this zklock `command`, for example of an earlier commit, instead of Apache ZooKeeper")
	fs.StringVar(&o.Part, "part", "", "measure only this `part`: load or start")
	fs.IntVar(&o.Nodes, "nodes", o.Nodes, "number of znodes for the measurements of memory and start")
	fs.IntVar(&o.Sessions, "sessions", o.Sessions, "number of sessions for the measurement of memory")
	if err := fs.Parse(args); err != nil {
		return err
	}
	remove, err := prepare(&o.Options, *dir)
	if err != nil {
		return err
	}
	defer remove()
	table, err := serverload.Run(ctx, o)
	if err != nil {
		return err
	}
	return report(table, *out)
}

// commonFlags defines the flags of both comparisons, and returns the value of -dir.
func commonFlags(fs *flag.FlagSet, o *rounds.Options) (dir *string) {
	fs.StringVar(&o.Zklock, "zklock", "", "use this zklock `command` as the embedded server instead of building it")
	fs.IntVar(&o.Rounds, "rounds", o.Rounds, "number of rounds")
	fs.DurationVar(&o.Turn, "turn", o.Turn, "length of a measurement of throughput")
	fs.DurationVar(&o.Warm, "warm", o.Warm, "warm-up time of each contender")
	fs.IntVar(&o.Retries, "retries", o.Retries, "how often to repeat a round in which other processes used the processors")
	fs.Float64Var(&o.Quiet, "quiet", o.Quiet, "share of the processors that other processes may use in a round")
	return fs.String("dir", "bin", "`directory` for the servers' files, on the disk to measure")
}

// prepare creates a directory below dir for this run, and returns a function that removes it.
func prepare(o *rounds.Options, dir string) (remove func(), err error) {
	o.Log = os.Stderr
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	temp, err := os.MkdirTemp(dir, "bench-")
	if err != nil {
		return nil, err
	}
	warnOfMemory(temp)
	// Paths in a configuration file are absolute.
	o.Dir, err = filepath.Abs(temp)
	return func() { _ = os.RemoveAll(temp) }, err
}

// warnOfMemory prints a warning if the directory is not on a disk.
func warnOfMemory(dir string) {
	const tmpfsMagic = 0x01021994
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err == nil && st.Type == tmpfsMagic {
		fmt.Fprintf(os.Stderr, "bench: %s is in memory, where syncs cost nothing: set -dir to a directory on a disk\n", dir)
	}
}

// report writes the table to standard output and to the file.
func report(t *rounds.Table, out string) error {
	if err := t.WriteText(os.Stdout); err != nil {
		return err
	}
	y := t.Tally
	fmt.Printf("\n%d rounds kept, %d discarded because other processes used the processors, %d kept although disturbed (at most %.0f %%).\n",
		y.Rounds, y.Discarded, y.Disturbed, 100*y.Worst)
	for _, n := range t.Notes {
		fmt.Println(n)
	}
	f, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(t.WriteJSON(f), f.Close())
}
