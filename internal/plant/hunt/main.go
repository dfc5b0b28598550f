package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/plant"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var (
	errFlags  = errors.New("hunt: see the usage above")
	errBug    = errors.New("hunt: no such bug")
	errEscape = errors.New("hunt: not every bug was caught by its layer, with the control passing")
)

// run is the command: it hunts and prints what it found.
func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("hunt", flag.ContinueOnError)
	flags.SetOutput(out)
	atOnce := flags.Int("j", 2, "how many tests run at a time")
	docs := flags.String("docs", "", "a document, to write the lasting part of the table into")
	layer := flags.String("layer", "", "only the bugs of this layer")
	quick := flags.Bool("quick", false, "leave out the layers that need Apache ZooKeeper")
	if err := flags.Parse(args); err != nil {
		return errFlags
	}
	chosen, err := choose(flags.Args(), *layer, *quick)
	if err != nil {
		return err
	}
	root, err := repository(ctx)
	if err != nil {
		return err
	}
	if *docs != "" {
		if err := document(filepath.Join(root, *docs)); err != nil {
			return err
		}
	}
	bin, err := os.MkdirTemp("", "hunt")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(bin) }()
	return hunt(ctx, hunter{root: root, bin: bin}, chosen, *atOnce, out)
}

// hunt builds what is needed, runs it and reports.
func hunt(ctx context.Context, h hunter, chosen []trap, atOnce int, out io.Writer) error {
	begun := time.Now()
	list := append(controls(chosen), chosen...)
	var used []layer
	for _, l := range layers() {
		if slices.ContainsFunc(list, func(t trap) bool { return t.layer == l.name }) {
			used = append(used, l)
		}
	}
	if err := h.buildAll(ctx, used); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d layers built in %v\n", len(used), time.Since(begun).Round(time.Second))
	require := os.Getenv("ZKLOCK_REQUIRE_REAL") == "1"
	n := 0
	found := h.all(ctx, list, atOnce, func(f finding) {
		n++
		fmt.Fprintf(out, "%3d of %d  %-20s %-12s %s\n", n, len(list), f.bug, f.layer, f.outcome)
	})
	fmt.Fprintln(out)
	report(out, found, require)
	bad, left := 0, 0
	for _, f := range found {
		if !f.good(require) {
			bad++
		}
		if f.outcome == skipped {
			left++
		}
	}
	fmt.Fprintf(out, "\n%d bugs and %d controls in %v: %d not as they should be, %d skipped\n",
		len(chosen), len(list)-len(chosen), time.Since(begun).Round(time.Second), bad, left)
	if bad > 0 {
		return errEscape
	}
	return nil
}

// choose returns the traps of these bugs, all if none is named.
func choose(names []string, layer string, quick bool) ([]trap, error) {
	var chosen []trap
	for _, t := range traps() {
		l, _ := layerNamed(t.layer)
		if layer != "" && t.layer != layer || quick && l.real || len(names) > 0 && !slices.Contains(names, string(t.bug)) {
			continue
		}
		chosen = append(chosen, t)
	}
	for _, name := range names {
		if !slices.ContainsFunc(traps(), func(t trap) bool { return t.bug == plant.Bug(name) }) {
			return nil, fmt.Errorf("%w: %s", errBug, name)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%w that fits", errBug)
	}
	return chosen, nil
}

// repository finds the root of the repository.
func repository(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/zklock/zklock").Output()
	if err != nil {
		return "", fmt.Errorf("hunt: the repository's root is not found: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// document writes the lasting table into a document.
func document(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("hunt: %w", err)
	}
	changed, err := insert(string(text), lasting(traps())+"\nThe layers:\n\n"+lastingLayers())
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(changed), 0o644)
}
