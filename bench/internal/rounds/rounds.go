package rounds

import (
	"errors"
	"fmt"
	"io"

	"github.com/zklock/zklock/bench/internal/proc"
)

// A Sample is the result of one measurement: values by the names of rows.
type Sample map[string]float64

// A Trial measures one contender once.
type Trial func(contender int) (Sample, error)

// A Plan describes a comparison.
type Plan struct {
	// Contenders are their names. The ratios are relative to the first one.
	Contenders []string
	// Rounds is the number of measurements of each contender.
	Rounds int
	// Quiet is the largest share of processor time, 0 to 1, that other processes may use in
	// a valid round.
	Quiet float64
	// Retries limits the repetitions of a disturbed round. Then the least disturbed attempt
	// counts, and the tally counts it as disturbed.
	Retries int
	// Log receives a line for every round, unless it is nil.
	Log io.Writer
	// Others starts to measure the share of the processors that processes other than this
	// one and pids use. The function that it returns returns the share, 0 to 1. Nil means
	// the kernel's counters.
	Others func(pids []int) (share func() (float64, error), err error)
}

// ErrPlan is wrapped by errors about an invalid Plan or invalid rows.
var ErrPlan = errors.New("rounds: invalid plan")

// A Tally counts the rounds that other processes disturbed.
type Tally struct {
	// Rounds is the number of kept rounds.
	Rounds int `json:"rounds"`
	// Discarded is the number of discarded rounds.
	Discarded int `json:"discarded"`
	// Disturbed is the number of disturbed rounds that were kept after the last retry.
	Disturbed int `json:"disturbed"`
	// Worst is the largest share of processor time that other processes used in a kept
	// round, 0 to 1.
	Worst float64 `json:"worst"`
}

// attempt is one round of all contenders.
type attempt struct {
	samples []Sample
	others  float64 // the largest share during a contender's turn
}

// One measures every contender once, and again if other processes disturb the round. pids
// are the measured processes. The order changes from round to round. One adds the samples
// to rows.
func (p *Plan) One(name string, round int, pids []int, trial Trial, rows *Table) error {
	var best attempt
	for try := 0; ; try++ {
		a, err := p.attempt(round+try, pids, trial)
		if err != nil {
			return fmt.Errorf("%s, round %d: %w", name, round+1, err)
		}
		if try == 0 || a.others < best.others {
			best = a
		}
		p.log("%s, round %d of %d: other processes used %.0f %% of the processors\n", name, round+1, p.Rounds, 100*a.others)
		if best.others <= p.Quiet || try == p.Retries {
			break
		}
		rows.Tally.Discarded++
	}
	rows.Tally.Rounds++
	rows.Tally.Worst = max(rows.Tally.Worst, best.others)
	if best.others > p.Quiet {
		rows.Tally.Disturbed++
	}
	return rows.add(best.samples)
}

// attempt measures every contender once.
func (p *Plan) attempt(turn int, pids []int, trial Trial) (attempt, error) {
	a := attempt{samples: make([]Sample, len(p.Contenders))}
	for i := range p.Contenders {
		c := (i + turn) % len(p.Contenders)
		others, err := p.watch(pids)
		if err != nil {
			return a, err
		}
		if a.samples[c], err = trial(c); err != nil {
			return a, fmt.Errorf("%s: %w", p.Contenders[c], err)
		}
		share, err := others()
		if err != nil {
			return a, err
		}
		a.others = max(a.others, share)
	}
	return a, nil
}

// watch calls Others, or reads the kernel's counters.
func (p *Plan) watch(pids []int) (func() (float64, error), error) {
	if p.Others != nil {
		return p.Others(pids)
	}
	o, err := proc.Watch(pids...)
	if err != nil {
		return nil, err
	}
	return o.Share, nil
}

func (p *Plan) log(format string, args ...any) {
	if p.Log != nil {
		fmt.Fprintf(p.Log, format, args...)
	}
}
