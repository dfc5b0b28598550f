package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// A hunter runs the tests of one repository.
type hunter struct {
	root string // of the repository
	bin  string // where the built tests are
	env  []string
}

// What became of a run.
type outcome string

const (
	caught  outcome = "caught"
	passed  outcome = "passed"
	missed  outcome = "missed" // the test passed although there was a bug
	late    outcome = "too late"
	other   outcome = "failed otherwise"
	skipped outcome = "skipped"
)

// A finding is the outcome of one run, with or without a bug.
type finding struct {
	trap
	outcome outcome
	after   time.Duration
	seed    string // of the history that failed, if it says so
	words   string // the line that names the broken promise
	tail    string // the end of what was printed, if it is not as it should be
}

// good reports whether the finding is as it has to be.
func (f finding) good(require bool) bool {
	switch f.outcome {
	case skipped:
		return !require
	case passed:
		return f.bug == ""
	}
	return f.outcome == caught && f.bug != ""
}

// build makes the tests of a layer, with the bugs in them.
func (h hunter) build(ctx context.Context, l layer) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-tags=planted", "-o", filepath.Join(h.bin, l.binary()), "./"+l.pkg)
	cmd.Dir = filepath.Join(h.root, l.module)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("hunt: the tests of %s can't be built: %w\n%s", l.name, err, out)
	}
	return nil
}

// buildAll makes the tests of layers, one after another: the compiler takes all
// processors by itself.
func (h hunter) buildAll(ctx context.Context, all []layer) error {
	for _, l := range all {
		if err := h.build(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

// run runs a trap's test, with its bug if it has one.
func (h hunter) run(ctx context.Context, t trap) finding {
	l, _ := layerNamed(t.layer)
	return h.judge(ctx, l, t)
}

// judge runs a test of a layer and says what became of it.
func (h hunter) judge(ctx context.Context, l layer, t trap) finding {
	ctx, cancel := context.WithTimeout(ctx, l.budget)
	defer cancel()
	args := append([]string{"-test.v", "-test.count=1", "-test.run=" + pattern(t.test)}, l.args...)
	if t.bug == "" && l.name == "simulation" {
		args = append(args, "-seeds=4") // of each kind of world
	}
	cmd := exec.CommandContext(ctx, filepath.Join(h.bin, l.binary()), args...)
	cmd.Dir = filepath.Join(h.root, l.module, l.pkg)
	cmd.Env = append(append(os.Environ(), h.env...), "ZKLOCK_PLANT="+string(t.bug))
	cmd.WaitDelay = 5 * time.Second // for what the test has started
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begun := time.Now()
	err := cmd.Run()
	f := read(t, out.String(), err)
	f.after = time.Since(begun)
	if f.outcome != caught && ctx.Err() != nil {
		f.outcome = late
	}
	return f
}

// pattern is for -test.run, of whole names at each level.
func pattern(test string) string {
	return "^(" + strings.ReplaceAll(test, "/", ")$/^(") + ")$"
}

var (
	failed  = regexp.MustCompile(`(?m)^\s*--- FAIL: Test`)
	skips   = regexp.MustCompile(`(?m)^\s*--- SKIP: Test`)
	seedOf  = regexp.MustCompile(`seed \d+`)
	panics  = regexp.MustCompile(`(?m)^(panic|fatal error): `)
	passing = regexp.MustCompile(`(?m)^--- PASS: Test`)
)

// read makes out what a test has printed. Only a test's own failure in the
// expected words counts: not a panic on the way, not a binary that does not run.
func read(t trap, out string, err error) finding {
	f := finding{trap: t, outcome: other, tail: tail(out)}
	var exit *exec.ExitError
	switch {
	case err == nil && passing.MatchString(out) && t.bug == "":
		f.outcome = passed
	case err == nil && skips.MatchString(out) && !passing.MatchString(out):
		f.outcome = skipped
	case err == nil && passing.MatchString(out):
		f.outcome = missed
	case t.bug == "" || !errors.As(err, &exit) || !failed.MatchString(out) || panics.MatchString(out):
	default:
		says := regexp.MustCompile(t.says)
		for line := range strings.Lines(out) {
			if says.MatchString(line) {
				f.outcome, f.words = caught, strings.TrimSpace(line)
				f.seed = seedOf.FindString(line)
				break
			}
		}
	}
	if f.outcome == caught || f.outcome == passed {
		f.tail = ""
	}
	return f
}

// tail is the end of a long text, from the beginning of a line on.
func tail(text string) string {
	const most = 3000
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	return text[strings.IndexByte(text, '\n')+1:]
}

// controls are one run without a bug for each layer that is used, over all tests
// that have to notice one.
func controls(all []trap) []trap {
	var list []trap
	for _, l := range layers() {
		var tests []string
		seen := map[string]bool{}
		for _, t := range all {
			if t.layer == l.name && !seen[t.test] {
				seen[t.test] = true
				tests = append(tests, t.test)
			}
		}
		for i := range tests {
			// A part of a test can't stand in an alternative: the whole test then.
			if len(tests) > 1 {
				tests[i], _, _ = strings.Cut(tests[i], "/")
			}
		}
		tests = slices.Compact(slices.Sorted(slices.Values(tests)))
		if len(tests) > 0 {
			list = append(list, trap{layer: l.name, rule: "no bug: the control", test: strings.Join(tests, "|")})
		}
	}
	return list
}

// all runs traps, some at a time, and tells of each.
// The findings are in the order of the traps.
func (h hunter) all(ctx context.Context, list []trap, atOnce int, tell func(finding)) []finding {
	found := make([]finding, len(list))
	var mu sync.Mutex // guards tell
	var wg sync.WaitGroup
	room := make(chan struct{}, max(atOnce, 1))
	for i, t := range list {
		room <- struct{}{}
		wg.Go(func() { // ends with the test, which is bounded
			defer func() { <-room }()
			f := h.run(ctx, t)
			mu.Lock()
			defer mu.Unlock()
			found[i] = f
			tell(f)
		})
	}
	wg.Wait()
	return found
}
