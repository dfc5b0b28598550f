package storm

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestScript: a seed stands for one script, in which every fault comes once before
// any comes twice.
func TestScript(t *testing.T) {
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

// TestScriptAgain: what did not happen comes once more, and all is written.
func TestScriptAgain(t *testing.T) {
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
