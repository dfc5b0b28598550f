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
	fs.BoolFunc("quick", "a rough measurement in about two minutes, not for publication; later flags override its settings", func(string) error {
		o = o.Quick()
		return nil
	})
	dir := commonFlags(fs, &o.Options)
	out := fs.String("out", filepath.Join("bin", "bench-locks"), "write all values to `file`.json, and a chart to file.svg")
	fs.Func("row", "measure only rows whose name contains `text`; repeatable", list(&o.Rows))
	fs.Func("column", "measure only contenders whose name contains `text`; repeatable", list(&o.Columns))
	if err := fs.Parse(args); err != nil {
		return err
	}
	remove, err := prepare(&o.Options, *dir)
	if err != nil {
		return err
	}
	defer remove()
	table, runErr := lockload.Run(ctx, o)
	if table == nil {
		return runErr
	}
	if err := errors.Join(runErr, report(table, *out+".json")); err != nil {
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
