package rounds

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// A Row is one line of a comparison.
type Row struct {
	// Name is the key of the row's values in samples.
	Name string `json:"name"`
	// Unit is printed after the values.
	Unit string `json:"unit"`
	// Goal is the ratio to reach: a lower limit if More is true, otherwise an upper limit.
	// 0 means no goal.
	Goal float64 `json:"goal,omitempty"`
	// More means that a larger value is better.
	More bool `json:"more"`
	// Values are those of every round, by contender.
	Values [][]float64 `json:"values"`
	// Medians are those of the values, by contender, or 0 if there is no value.
	Medians []float64 `json:"medians"`
	// Ratios are the medians of the ratios of each round to the first contender, or 0 if a
	// contender has no value.
	Ratios []float64 `json:"ratios"`
}

// A Table is the result of a comparison.
type Table struct {
	// Contenders are the columns; ratios are relative to the first.
	Contenders []string `json:"contenders"`
	// Rows are in the order in which they were given.
	Rows []*Row `json:"rows"`
	// Notes are remarks, such as a workload that a contender does not support.
	Notes []string `json:"notes,omitempty"`
	// Tally counts the rounds that other processes disturbed.
	Tally Tally `json:"tally"`
}

// NewTable returns a table of rows without values.
func NewTable(contenders []string, rows ...Row) *Table {
	t := &Table{Contenders: contenders}
	for _, r := range rows {
		r.Values = make([][]float64, len(contenders))
		t.Rows = append(t.Rows, &r)
	}
	return t
}

// add adds the samples of one round.
func (t *Table) add(samples []Sample) error {
	for c, sample := range samples {
		for name, value := range sample {
			i := slices.IndexFunc(t.Rows, func(r *Row) bool { return r.Name == name })
			if i < 0 {
				return fmt.Errorf("%w: no row %q", ErrPlan, name)
			}
			t.Rows[i].Values[c] = append(t.Rows[i].Values[c], value)
		}
	}
	return nil
}

// Finish computes medians and ratios.
func (t *Table) Finish() {
	for _, r := range t.Rows {
		r.Medians = make([]float64, len(t.Contenders))
		r.Ratios = make([]float64, len(t.Contenders))
		for c, values := range r.Values {
			r.Medians[c] = Median(values)
			r.Ratios[c] = Median(quotients(values, r.Values[0]))
		}
	}
}

// quotients returns the ratios of each round. It omits rounds without both values.
func quotients(values, base []float64) []float64 {
	var q []float64
	for i := range min(len(values), len(base)) {
		if base[i] != 0 {
			q = append(q, values[i]/base[i])
		}
	}
	return q
}

// Median returns the middle value, the mean of the two middle values, or 0 if there are no
// values.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	mid := len(s) / 2
	if len(s)%2 == 1 {
		return s[mid]
	}
	return (s[mid-1] + s[mid]) / 2
}

// WriteText writes the table as Markdown. With two contenders, it includes the ratio and
// the goal; with more, the table would be too wide.
func (t *Table) WriteText(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	head := append([]string{"row", "unit"}, t.Contenders...)
	if t.pair() {
		head = append(head, t.Contenders[1]+"/"+t.Contenders[0], "goal")
	}
	fmt.Fprintf(tw, "| %s\t|\n|%s\n", strings.Join(head, "\t| "), strings.Repeat("---\t|", len(head)))
	for _, r := range t.Rows {
		r.write(tw, t.pair())
	}
	return tw.Flush()
}

// pair reports whether two contenders are compared.
func (t *Table) pair() bool { return len(t.Contenders) == 2 }

// write writes the line of a row.
func (r *Row) write(w io.Writer, pair bool) {
	fmt.Fprintf(w, "| %s\t| %s", r.Name, r.Unit)
	for c, m := range r.Medians {
		if len(r.Values[c]) == 0 {
			fmt.Fprint(w, "\t| -")
			continue
		}
		fmt.Fprintf(w, "\t| %s", short(m))
	}
	if !pair {
		fmt.Fprint(w, "\t|\n")
		return
	}
	if q := r.Ratios[1]; q != 0 {
		fmt.Fprintf(w, "\t| %.2f", q)
	} else {
		fmt.Fprint(w, "\t| -")
	}
	switch {
	case r.Goal == 0:
		fmt.Fprint(w, "\t|\t|\n")
	case r.More:
		fmt.Fprintf(w, "\t| >= %v\t|\n", r.Goal)
	default:
		fmt.Fprintf(w, "\t| <= %v\t|\n", r.Goal)
	}
}

// short formats three significant digits, or all digits before the decimal point.
func short(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// WriteJSON writes everything, including the values of every round.
func (t *Table) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(t)
}
