package faults

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// Step is one fault of a script with its random numbers. The injector takes them modulo the
// number of choices.
type Step struct {
	Fault string
	// Target selects the worker, relay, or kind of lock. Detail selects everything else.
	Target, Detail int
	// Length is how long the fault lasts, in session timeouts.
	Length float64
	// Pause is the pause before the fault.
	Pause time.Duration
}

// Script draws the faults of a run from a seed.
type Script struct {
	rng   *rand.Rand
	deck  []string // all faults
	left  []string // the rest of the shuffled deck
	drawn []Step   // the steps drawn so far
}

// NewScript returns the script of a seed.
func NewScript(seed uint64, faults []string) *Script {
	return &Script{rng: rand.New(rand.NewPCG(seed, 1)), deck: slices.Clone(faults)}
}

// longest is the longest fault, in session timeouts.
const longest = 1.5

// Next draws a step. Every fault of the deck is drawn once before any is drawn again.
func (s *Script) Next() Step {
	if len(s.left) == 0 {
		s.left = slices.Clone(s.deck)
		s.rng.Shuffle(len(s.left), func(i, j int) { s.left[i], s.left[j] = s.left[j], s.left[i] })
	}
	step := Step{
		Fault: s.left[0], Target: s.rng.IntN(1 << 20), Detail: s.rng.IntN(1 << 20),
		Pause: time.Duration(s.rng.Int64N(int64(150 * time.Millisecond))),
	}
	// Many faults are short, so that some end before any client notices them.
	part := s.rng.Float64()
	step.Length = 0.1 + (longest-0.1)*part*part*part
	s.left = s.left[1:]
	s.drawn = append(s.drawn, step)
	return step
}

// Repeat puts a fault that did not happen back into the deck.
func (s *Script) Repeat(fault string) { s.left = append(s.left, fault) }

// Dealt reports whether every fault of the shuffled deck was drawn.
func (s *Script) Dealt() bool { return len(s.left) == 0 }

// Write writes the steps drawn so far, one on each line.
func (s *Script) Write(path string) error {
	var text []byte
	for _, step := range s.drawn {
		line, err := json.Marshal(step)
		if err != nil {
			return err
		}
		text = fmt.Appendf(text, "%s\n", line)
	}
	return os.WriteFile(path, text, 0o600)
}

// TestScriptDealsEachFaultOnce checks that a seed determines the script, and that every fault
// is drawn once before any is drawn twice.
func TestScriptDealsEachFaultOnce(t *testing.T) {
	faults := []string{"a", "b", "c", "d", "e"}
	draw := func(seed uint64) []Step {
		s := NewScript(seed, faults)
		var steps []Step
		for range 4 * len(faults) {
			steps = append(steps, s.Next())
		}
		if !s.Dealt() {
			t.Error("faults are left after four decks")
		}
		return steps
	}
	first := draw(7)
	if !slices.Equal(first, draw(7)) {
		t.Error("one seed gives two scripts")
	}
	if slices.Equal(first, draw(8)) {
		t.Error("two seeds give one script")
	}
	for deck := range slices.Chunk(first, len(faults)) {
		var names []string
		for _, s := range deck {
			names = append(names, s.Fault)
			if s.Length < 0.1 || s.Length > longest || s.Pause < 0 {
				t.Errorf("%+v", s)
			}
		}
		if slices.Sort(names); !slices.Equal(names, faults) {
			t.Errorf("a deck of %q", names)
		}
	}
}

// TestScriptRepeatsFaultThatDidNotHappen checks that Next draws such a fault once more, and
// that Write writes all steps.
func TestScriptRepeatsFaultThatDidNotHappen(t *testing.T) {
	s := NewScript(1, []string{"a"})
	s.Next()
	s.Repeat("a")
	if s.Dealt() {
		t.Error("nothing is left")
	}
	if step := s.Next(); step.Fault != "a" || !s.Dealt() {
		t.Errorf("%+v", step)
	}
	path := filepath.Join(t.TempDir(), "script")
	if err := s.Write(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || bytes.Count(text, []byte("\n")) != 2 || !bytes.Contains(text, []byte(`"Fault":"a"`)) {
		t.Errorf("%s, %v", text, err)
	}
}
