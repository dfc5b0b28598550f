package rounds

import (
	"errors"
	"fmt"
	"io"

	"github.com/zklock/zklock/bench/internal/proc"
)

// Sample is what one measurement gave: values by the names of rows.
type Sample map[string]float64

// Trial measures one contender once.
type Trial func(contender int) (Sample, error)

// Plan is how a comparison is done.
type Plan struct {
	// Contenders are their names. Ratios are the second's and later ones' to
	// the first.
	Contenders []string
	// Rounds is how often each contender is measured.
	Rounds int
	// Quiet is the share of processor time, 0 to 1, that other processes may
	// have had in a round that counts.
	Quiet float64
	// Retries is how often a disturbed round is repeated. After that the least
	// disturbed attempt is taken, and counted as such.
	Retries int
	// Log gets a line for every round. Nil is silent.
	Log io.Writer
	// Others begins to watch what share of the processors goes to processes
	// other than this one and pids; what it returns tells, 0 to 1. Nil means
	// what the kernel counts.
	Others func(pids []int) (share func() (float64, error), err error)
}

// ErrPlan is wrapped by errors about a Plan or rows that make no sense.
var ErrPlan = errors.New("rounds: invalid plan")

// Tally says how undisturbed a comparison was.
type Tally struct {
	// Rounds is how many were measured and kept.
	Rounds int `json:"rounds"`
	// Discarded is how many were thrown away since others had the processors.
	Discarded int `json:"discarded"`
	// Disturbed is how many of those kept would have been, had there been
	// retries left.
	Disturbed int `json:"disturbed"`
	// Worst is the largest share of processor time that others had in a round
	// that was kept, 0 to 1.
	Worst float64 `json:"worst"`
}

// attempt is one round of all contenders.
type attempt struct {
	samples []Sample
	others  float64 // the largest share among the contenders' turns
}

// One measures every contender once, and again while others disturb. pids are
// the processes that take part. The order changes from round to round. The
// samples are added to rows.
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
		p.log("%s, round %d of %d: others had %.0f %% of the processors\n", name, round+1, p.Rounds, 100*a.others)
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

// watch is Others, or the kernel's.
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
