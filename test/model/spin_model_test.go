// These tests search the Promela models in the folder spec with spin. A model must hold in
// every reachable state. Spin must refute each variant that the model's header calls
// broken, with the kind of error in the header.
//
// If spin or a C compiler is missing, the tests are skipped. With ZKLOCK_REQUIRE_REAL=1 in
// the environment, they fail.
package model_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// ErrHeader reports that the first comment of a model is incomplete.
var ErrHeader = errors.New("spec: the model's header is incomplete")

// Want is the expected result of a check.
type Want string

// The expected results, in the words of a model's header.
const (
	Sound  Want = "sound"  // no error in all states
	Broken Want = "broken" // an error
	Reach  Want = "reach"  // a failed assertion in a state that the model must reach
)

// The kinds of error that refute a broken variant.
const (
	ByAssertion = "assertion"
	ByDeadlock  = "deadlock"
)

// A Check is one run of spin over a model.
type Check struct {
	Flag string // the macro to define; empty for the unchanged model
	Want Want
	By   string // the kind of error, if Want is Broken
	Text string // what the flag does
}

// Name returns the flag, or "sound" for the unchanged model.
func (c Check) Name() string {
	if c.Flag == "" {
		return string(Sound)
	}
	return c.Flag
}

// A Model is one Promela file.
type Model struct {
	Name   string // of the file, without its ending
	Path   string
	Title  string  // from the first line
	Checks []Check // the unchanged model, then the checks of the header
	source string
}

var (
	titleLine = regexp.MustCompile(`(?m)^ \* (\w+): (.+)\.$`)
	checkLine = regexp.MustCompile(`(?m)^ \* (sound|broken|reach) ([A-Z][A-Z_]*)(?:, (\w+))?: (.+)$`)
	condition = regexp.MustCompile(`(?m)^#\s*(?:ifdef|ifndef|if|elif)\s+(.+)$`)
	macroName = regexp.MustCompile(`[A-Z][A-Z_]+`)
	macroMade = regexp.MustCompile(`(?m)^#\s*define\s+([A-Z][A-Z_]+)`)
)

// Models returns the models in a folder, sorted by name.
func Models(dir string) ([]*Model, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.pml"))
	if err != nil {
		return nil, fmt.Errorf("spec: %w", err)
	}
	var models []*Model
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("spec: %w", err)
		}
		m, err := parse(path, string(text))
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	return models, nil
}

// parse reads a model's header.
func parse(path, source string) (*Model, error) {
	name := strings.TrimSuffix(filepath.Base(path), ".pml")
	header, _, ended := strings.Cut(source, "*/")
	if !strings.HasPrefix(header, "/*\n") || !ended {
		return nil, fmt.Errorf("%w: %s does not begin with a comment", ErrHeader, name)
	}
	title := titleLine.FindStringSubmatch(header)
	if title == nil || title[1] != name {
		return nil, fmt.Errorf("%w: the first line of %s is to be %q and what it models", ErrHeader, name, name+": ")
	}
	for _, part := range []string{"What must hold:", "bounds:", "code:"} {
		if !strings.Contains(header, "\n * "+part) {
			return nil, fmt.Errorf("%w: %s lacks %q", ErrHeader, name, part)
		}
	}
	m := &Model{Name: name, Path: path, Title: title[2], source: source, Checks: []Check{{Want: Sound}}}
	for _, line := range checkLine.FindAllStringSubmatch(header, -1) {
		c := Check{Want: Want(line[1]), Flag: line[2], By: line[3], Text: line[4]}
		if kinds := c.By == ByAssertion || c.By == ByDeadlock; kinds != (c.Want == Broken) {
			return nil, fmt.Errorf("%w: %s: by what error is %s refuted?", ErrHeader, name, c.Flag)
		}
		m.Checks = append(m.Checks, c)
	}
	return m, nil
}

// unmatched returns flags that only the header or only the model contains.
func (m *Model) unmatched() []string {
	used := map[string]bool{}
	for _, line := range condition.FindAllStringSubmatch(m.source, -1) {
		for _, name := range macroName.FindAllString(line[1], -1) {
			used[name] = true
		}
	}
	for _, line := range macroMade.FindAllStringSubmatch(m.source, -1) {
		delete(used, line[1]) // a bound with a default
	}
	var names []string
	for _, c := range m.Checks[1:] {
		if !used[c.Flag] {
			names = append(names, c.Flag)
		}
		delete(used, c.Flag)
	}
	for name := range used {
		names = append(names, name)
	}
	return names
}
