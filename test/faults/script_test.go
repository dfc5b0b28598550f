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

// Step is one fault of a script, with the numbers that were drawn for it. They are
// taken modulo the number of choices when the fault comes.
type Step struct {
	Fault string
	// Who selects the worker, relay, or kind of lock, and What selects the details.
	Who, What int
	// For is how long it lasts, in session timeouts.
	For float64
	// Pause is the pause before it.
	Pause time.Duration
}

// Script draws the faults of a run from a seed.
type Script struct {
	rng  *rand.Rand
	deck []string // the faults that are drawn from
	left []string // of the deck that is being dealt
	told []Step   // those drawn so far
}

// NewScript returns the script of a seed.
func NewScript(seed uint64, faults []string) *Script {
	return &Script{rng: rand.New(rand.NewPCG(seed, 1)), deck: slices.Clone(faults)}
}

// longest is the longest that a fault lasts, in session timeouts.
const longest = 1.5

// Next draws a step. Every fault of the deck comes once before any comes again.
func (s *Script) Next() Step {
	if len(s.left) == 0 {
		s.left = slices.Clone(s.deck)
		s.rng.Shuffle(len(s.left), func(i, j int) { s.left[i], s.left[j] = s.left[j], s.left[i] })
	}
	step := Step{
		Fault: s.left[0], Who: s.rng.IntN(1 << 20), What: s.rng.IntN(1 << 20),
		Pause: time.Duration(s.rng.Int64N(int64(150 * time.Millisecond))),
	}
	// Many faults are short, so that some end before any client notices them.
	part := s.rng.Float64()
	step.For = 0.1 + (longest-0.1)*part*part*part
	s.left = s.left[1:]
	s.told = append(s.told, step)
	return step
}

// Again puts a fault that did not happen back into the deck.
func (s *Script) Again(fault string) { s.left = append(s.left, fault) }

// Dealt reports whether every fault of the deck has come since it was shuffled.
func (s *Script) Dealt() bool { return len(s.left) == 0 }

// Write writes the steps drawn so far, one on each line.
func (s *Script) Write(path string) error {
	var text []byte
	for _, step := range s.told {
		line, err := json.Marshal(step)
		if err != nil {
			return err
		}
		text = fmt.Appendf(text, "%s\n", line)
	}
	return os.WriteFile(path, text, 0o600)
}

// TestScriptDealsEachFaultOnce checks that a seed stands for one script, and that every
// fault comes once before any comes twice.
func TestScriptDealsEachFaultOnce(t *testing.T) {
	faults := []string{"a", "b", "c", "d", "e"}
	draw := func(seed uint64) []Step {
		s := NewScript(seed, faults)
		var steps []Step
		for range 4 * len(faults) {
			steps = append(steps, s.Next())
		}
		if !s.Dealt() {
			t.Error("four decks, and something is left")
		}
		return steps
	}
	first := draw(7)
	if !slices.Equal(first, draw(7)) {
		t.Error("a seed stands for two scripts")
	}
	if slices.Equal(first, draw(8)) {
		t.Error("two seeds stand for one script")
	}
	for deck := range slices.Chunk(first, len(faults)) {
		var names []string
		for _, s := range deck {
			names = append(names, s.Fault)
			if s.For < 0.1 || s.For > longest || s.Pause < 0 {
				t.Errorf("%+v", s)
			}
		}
		if slices.Sort(names); !slices.Equal(names, faults) {
			t.Errorf("a deck of %q", names)
		}
	}
}

// TestScriptRepeatsFaultThatDidNotHappen checks that such a fault comes once more, and
// that all steps are written.
func TestScriptRepeatsFaultThatDidNotHappen(t *testing.T) {
	s := NewScript(1, []string{"a"})
	s.Next()
	s.Again("a")
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
