package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/zklock/zklock/bench/internal/contender"
	"github.com/zklock/zklock/bench/internal/library"
	"github.com/zklock/zklock/bench/internal/lockload"
)

// locks runs "bench locks".
func locks(ctx context.Context, args []string) error {
	o := lockload.Defaults()
	fs := flag.NewFlagSet("bench locks", flag.ContinueOnError)
	fs.BoolFunc("quick", "a rough measurement in two minutes, not for publication; later flags override its settings", func(string) error {
		o = o.Quick()
		return nil
	})
	dir := fs.String("dir", "bin", "`directory` for the servers' files, on the disk to measure")
	out := fs.String("out", filepath.Join("bin", "bench-locks"), "write all values to `file`.json, and a chart to file.svg")
	fs.StringVar(&o.Zklock, "zklock", "", "use this zklock `command` as the embedded server instead of building it")
	fs.IntVar(&o.Rounds, "rounds", o.Rounds, "number of rounds")
	fs.DurationVar(&o.Turn, "turn", o.Turn, "length of a measurement")
	fs.DurationVar(&o.Warm, "warm", o.Warm, "warm-up time of each contender")
	fs.IntVar(&o.Retries, "retries", o.Retries, "how often to repeat a round in which other processes used the processors")
	fs.Float64Var(&o.Quiet, "quiet", o.Quiet, "share of the processors that other processes may use in a round")
	fs.Func("row", "measure only rows whose name contains `text`; repeatable", list(&o.Rows))
	fs.Func("column", "measure only contenders whose name contains `text`; repeatable", list(&o.Columns))
	if err := fs.Parse(args); err != nil {
		return err
	}
	o.Log = os.Stderr
	var remove func()
	var err error
	if o.Dir, remove, err = workDir(*dir); err != nil {
		return err
	}
	defer remove()
	table, err := lockload.Run(ctx, o)
	if err != nil {
		return err
	}
	if err := report(table, *out+".json"); err != nil {
		return err
	}
	fmt.Println()
	if err := lockload.WriteGoals(os.Stdout, o, table); err != nil {
		return err
	}
	f, err := os.Create(*out + ".svg")
	if err != nil {
		return err
	}
	return errors.Join(lockload.WriteChart(f, table), f.Close())
}

// list returns a function that appends a flag's value to a list.
func list(values *[]string) func(string) error {
	return func(v string) error {
		*values = append(*values, v)
		return nil
	}
}

// contend runs "bench contender".
func contend(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("specify a library: bench contender %s", strings.Join(library.Names, "|"))
	}
	l, err := library.New(args[0])
	if err != nil {
		return err
	}
	return contender.Serve(ctx, l, os.Stdin, os.Stdout)
}
