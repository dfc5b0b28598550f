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

// Row is one line of a comparison.
type Row struct {
	// Name is the key under which samples have their value.
	Name string `json:"name"`
	// Unit stands behind the values.
	Unit string `json:"unit"`
	// Goal is the ratio to reach: at least it where More is true, else at most.
	// 0 means that there is none.
	Goal float64 `json:"goal,omitempty"`
	// More says that a larger value is better.
	More bool `json:"more"`
	// Values are those of every round, by contender.
	Values [][]float64 `json:"values"`
	// Medians are theirs, by contender, 0 where there is no value.
	Medians []float64 `json:"medians"`
	// Ratios are the medians of the ratios of each round, to the first
	// contender; 0 for a row that a contender has no value in.
	Ratios []float64 `json:"ratios"`
}

// Table is the result of a comparison.
type Table struct {
	// Contenders are the columns; ratios are to the first.
	Contenders []string `json:"contenders"`
	// Rows are in the order in which they were given.
	Rows []*Row `json:"rows"`
	// Notes say what a reader should know, such as what a contender could not do.
	Notes []string `json:"notes,omitempty"`
	// Tally says how quiet the machine was.
	Tally Tally `json:"tally"`
}

// NewTable makes a table of rows without values.
func NewTable(contenders []string, rows ...Row) *Table {
	t := &Table{Contenders: contenders}
	for _, r := range rows {
		r.Values = make([][]float64, len(contenders))
		t.Rows = append(t.Rows, &r)
	}
	return t
}

// add takes in one round.
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

// quotients are the ratios of each round. Rounds without both are none.
func quotients(values, base []float64) []float64 {
	var q []float64
	for i := range min(len(values), len(base)) {
		if base[i] != 0 {
			q = append(q, values[i]/base[i])
		}
	}
	return q
}

// Median is the middle value, the mean of the two middle ones, or 0 of none.
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

// WriteText writes the table as Markdown, which is readable as it is. Of two
// contenders it has the ratio, and the goal; of more it would be too wide.
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

// pair reports whether two are compared.
func (t *Table) pair() bool { return len(t.Contenders) == 2 }

// write writes a row's line.
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

// short prints three significant digits, or all before the point.
func short(v float64) string {
	switch {
	case v >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// WriteJSON writes everything, every round's values included.
func (t *Table) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(t)
}
