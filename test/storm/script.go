package storm

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// Step is one fault of a script, with what was drawn for it. The numbers are
// taken modulo what there is to choose from when its time comes.
type Step struct {
	Fault string
	// Who says which worker, proxy or kind of lock it concerns, What how it is done.
	Who, What int
	// For is how long it lasts, as a part of the session timeout.
	For float64
	// Pause is the calm before it.
	Pause time.Duration
}

// Script is what happens in a run: drawn from a seed, as long as it is asked for.
type Script struct {
	rng  *rand.Rand
	deck []string // the faults that are drawn from
	left []string // of the deck that is being dealt
	told []Step   // what was drawn
}

// NewScript makes the script of these faults that a seed stands for.
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
	// Many faults are short, so that some are over before anybody has noticed.
	part := s.rng.Float64()
	step.For = 0.1 + (longest-0.1)*part*part*part
	s.left = s.left[1:]
	s.told = append(s.told, step)
	return step
}

// Again puts a fault that did not happen back into the deck, to come soon.
func (s *Script) Again(fault string) { s.left = append(s.left, fault) }

// Dealt reports whether every fault of the deck has come since it was shuffled.
func (s *Script) Dealt() bool { return len(s.left) == 0 }

// Write writes what was drawn, a step a line.
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
