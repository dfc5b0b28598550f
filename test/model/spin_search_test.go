package model_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

// The limits of one search.
const (
	timeLimit   = 20 * time.Minute
	memoryLimit = 3000 // MB
	depthLimit  = "1000000"
	hashSize    = "22" // 2^22 slots; affects only the speed
)

// ErrRun reports that a run has no result.
var ErrRun = errors.New("spec: spin came to no result")

// A Result is what one search found.
type Result struct {
	Errors   int
	Kind     string // of the error: ByAssertion, ByDeadlock, or empty
	Complete bool   // spin searched every state
	States   int64  // distinct states
	Memory   float64
	Elapsed  time.Duration
}

// Missing returns an error that names the missing tool if spin or gcc is not installed.
func Missing() error {
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("spec: %s is not installed (scripts/install-deps): %w", tool, err)
		}
	}
	return nil
}

// Search compiles the model in dir and runs the search. It returns an error if there is no
// result. If the model does not hold, the Result has errors.
func (m *Model) Search(ctx context.Context, c Check, dir string) (Result, error) {
	path, err := filepath.Abs(m.Path)
	if err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrRun, err)
	}
	flags := []string{"-a", path}
	if c.Flag != "" {
		flags = []string{"-D" + c.Flag, "-a", path}
	}
	if _, err := run(ctx, dir, "spin", flags...); err != nil {
		return Result{}, err
	}
	// Most refutations are fast, so that optimization would take most of the time.
	optimize := "-O0"
	if c.Want == Sound {
		optimize = "-O1"
	}
	if _, err := run(ctx, dir, "gcc", "-w", optimize, "-DSAFETY", "-DMEMLIM="+strconv.Itoa(memoryLimit), "-o", "pan", "pan.c"); err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeLimit)
	defer cancel()
	out, err := run(ctx, dir, filepath.Join(dir, "pan"), append(c.options(), "-n", "-m"+depthLimit, "-w"+hashSize)...)
	if err != nil {
		return Result{}, err
	}
	return result(out)
}

// options returns the flags that restrict a search to the wanted kind of error.
func (c Check) options() []string {
	switch {
	case c.Want == Broken && c.By == ByDeadlock:
		return []string{"-A"}
	case c.Want != Sound:
		return []string{"-E"}
	}
	return nil
}

// Judge returns nil if the check wants this result.
func (c Check) Judge(r Result) error {
	kind := c.By
	if c.Want == Reach {
		kind = ByAssertion
	}
	switch {
	case c.Want == Sound && r.Errors > 0:
		return fmt.Errorf("spec: %s: does not hold (%s)", c.Name(), r.Kind)
	case c.Want == Sound && !r.Complete:
		return fmt.Errorf("spec: %s: the search is incomplete", c.Name())
	case c.Want != Sound && (r.Errors == 0 || r.Kind != kind):
		return fmt.Errorf("spec: %s: %d errors (%s); wanted one by %s", c.Name(), r.Errors, r.Kind, kind)
	}
	return nil
}

var (
	errorsLine  = regexp.MustCompile(`errors: (\d+)`)
	statesLine  = regexp.MustCompile(`(?m)^\s*([0-9.e+]+) states, stored`)
	memoryLine  = regexp.MustCompile(`(?m)^\s*([0-9.]+)\s+total actual memory usage`)
	actualLine  = regexp.MustCompile(`(?m)^\s*([0-9.]+)\s+actual memory usage`)
	elapsedLine = regexp.MustCompile(`(?m)^pan: elapsed time ([0-9.e+-]+) seconds`)
	partial     = regexp.MustCompile(`Search not completed|search depth too small|MEMLIM|out of memory|truncated`)
	assertion   = regexp.MustCompile(`(?m)^pan:\d+: assertion violated`)
	deadlock    = regexp.MustCompile(`(?m)^pan:\d+: invalid end state`)
)

// result parses the output of a search.
func result(out []byte) (Result, error) {
	number := func(line *regexp.Regexp) float64 {
		found := line.FindSubmatch(out)
		if found == nil {
			return -1
		}
		f, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			return -1
		}
		return f
	}
	count, states := number(errorsLine), number(statesLine)
	if count < 0 || states < 0 {
		return Result{}, fmt.Errorf("%w: it printed %q", ErrRun, out)
	}
	r := Result{
		Errors:   int(count),
		Complete: !partial.Match(out),
		States:   int64(states),
		Memory:   max(number(memoryLine), number(actualLine), 0),
		Elapsed:  time.Duration(max(number(elapsedLine), 0) * float64(time.Second)),
	}
	switch {
	case assertion.Match(out):
		r.Kind = ByAssertion
	case deadlock.Match(out):
		r.Kind = ByDeadlock
	}
	return r, nil
}

// run runs a program in dir and returns its output.
func run(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.WaitDelay = time.Minute
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%w: %s took too long: %w", ErrRun, filepath.Base(name), ctx.Err())
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w: %s", ErrRun, filepath.Base(name), err, bytes.TrimSpace(out))
	}
	return out, nil
}
