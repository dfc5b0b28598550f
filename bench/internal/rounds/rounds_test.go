package rounds

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// busy returns the given shares of others in their order, one for each turn.
func busy(shares ...float64) func([]int) (func() (float64, error), error) {
	return func([]int) (func() (float64, error), error) {
		return func() (float64, error) {
			s := shares[0]
			shares = shares[1:]
			return s, nil
		}, nil
	}
}

func TestOneChangesOrderOfContenders(t *testing.T) {
	var order []int
	var log strings.Builder
	p := Plan{Contenders: []string{"a", "b"}, Rounds: 2, Quiet: 0.1, Log: &log, Others: busy(0, 0, 0, 0)}
	table := NewTable(p.Contenders, Row{Name: "r"})
	for round := range p.Rounds {
		err := p.One("r", round, nil, func(c int) (Sample, error) {
			order = append(order, c)
			return Sample{"r": float64(10*round + c + 1)}, nil
		}, table)
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []int{0, 1, 1, 0}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
	if v := table.Rows[0].Values; !slices.Equal(v[0], []float64{1, 11}) || !slices.Equal(v[1], []float64{2, 12}) {
		t.Errorf("values %v", v)
	}
	if table.Tally != (Tally{Rounds: 2}) {
		t.Errorf("tally %+v", table.Tally)
	}
	if !strings.Contains(log.String(), "r, round 2 of 2") {
		t.Errorf("log %q", log.String())
	}
}

func TestOneRepeatsDisturbedRounds(t *testing.T) {
	for _, c := range []struct {
		name   string
		shares []float64 // one contender, so one turn for each attempt
		value  float64   // of the kept attempt
		tally  Tally
	}{
		{"quiet at once", []float64{0.05}, 1, Tally{Rounds: 1, Worst: 0.05}},
		{"quiet later", []float64{0.5, 0.2, 0.1}, 3, Tally{Rounds: 1, Discarded: 2, Worst: 0.1}},
		{"never", []float64{0.5, 0.3, 0.4}, 2, Tally{Rounds: 1, Discarded: 2, Disturbed: 1, Worst: 0.3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Plan{Contenders: []string{"a"}, Quiet: 0.1, Retries: 2, Others: busy(c.shares...)}
			table := NewTable(p.Contenders, Row{Name: "r"})
			n := 0.0
			if err := p.One("r", 0, nil, func(int) (Sample, error) { n++; return Sample{"r": n}, nil }, table); err != nil {
				t.Fatal(err)
			}
			if v := table.Rows[0].Values[0]; !slices.Equal(v, []float64{c.value}) {
				t.Errorf("kept %v, want %v", v, c.value)
			}
			if table.Tally != c.tally {
				t.Errorf("tally %+v, want %+v", table.Tally, c.tally)
			}
		})
	}
}

func TestOneFails(t *testing.T) {
	broken := errors.New("broken")
	good := func(int) (Sample, error) { return Sample{"r": 1}, nil }
	for name, c := range map[string]struct {
		others func([]int) (func() (float64, error), error)
		trial  Trial
		want   error
	}{
		"trial":  {busy(0), func(int) (Sample, error) { return nil, broken }, broken},
		"row":    {busy(0), func(int) (Sample, error) { return Sample{"other": 1}, nil }, ErrPlan},
		"watch":  {func([]int) (func() (float64, error), error) { return nil, broken }, good, broken},
		"share":  {func([]int) (func() (float64, error), error) { return func() (float64, error) { return 0, broken }, nil }, good, broken},
		"kernel": {nil, func(int) (Sample, error) { return nil, fmt.Errorf("later: %w", broken) }, broken},
	} {
		p := Plan{Contenders: []string{"a"}, Others: c.others}
		err := p.One("r", 0, nil, c.trial, NewTable(p.Contenders, Row{Name: "r"}))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
