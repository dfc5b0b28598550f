package lockload

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/zklock/zklock/bench/internal/rounds"
)

// A goal is a ratio of two cells of the table.
type goal struct {
	row, ours string
	// others are the columns to compare with, of which the best counts, and row2 is the
	// row; an empty row2 means the same row.
	row2   string
	others []string
	ratio  float64
	less   bool // the ratio must be at most that
}

// The names of columns.
const (
	oursJava     = "zklock"
	oursEmbedded = "zklock, embedded"
	oursEnsemble = "zklock, ensemble"
	goEnsemble   = "go-zookeeper, ensemble"
)

// goals returns the ratios that zklock should reach. Limits that are not a ratio of two
// cells are in the table itself.
func (o *Options) goals() []goal {
	late := func(row string) string { return (&job{name: row}).late() }
	drain := fmt.Sprintf("%d drain", o.Many)
	held := fmt.Sprintf("%d held", o.Locks)
	return []goal{
		{row: "free", ours: oursJava, others: []string{"Curator", "go-zookeeper"}, ratio: 1.35},
		{row: "free", ours: oursJava, others: []string{floor}, ratio: 0.93},
		{row: "free, not awaited", ours: oursJava, row2: "free", others: []string{"Curator", "go-zookeeper"}, ratio: 2},
		{row: "64 locks, 1 session", ours: oursJava, others: []string{"Curator"}, ratio: 4.5},
		{row: "64 locks, 1 session", ours: oursJava, others: []string{"go-zookeeper"}, ratio: 3},
		{row: "64 locks, 1 session", ours: oursEnsemble, others: []string{goEnsemble}, ratio: 3.5},
		{row: "64 locks, 1 session", ours: oursJava, others: []string{floor}, ratio: 0.9},
		{row: "64 locks, 64 sessions", ours: oursJava, others: []string{floor}, ratio: 0.9},
		{row: "64 locks, 64 sessions", ours: oursJava, others: []string{"go-zookeeper"}, ratio: 1.3},
		{row: "64 locks, 64 sessions", ours: oursJava, others: []string{"Curator"}, ratio: 2},
		{row: "10 wait, 10 sessions", ours: oursJava, others: []string{"go-zookeeper"}, ratio: 1.5},
		{row: "10 wait, 10 sessions", ours: oursJava, others: []string{"Curator"}, ratio: 1.9},
		{row: "100 wait, 100 sessions", ours: oursJava, others: []string{"go-zookeeper"}, ratio: 1.6},
		{row: "100 wait, 100 sessions", ours: oursJava, others: []string{"Curator"}, ratio: 2},
		{row: "10 wait, 10 sessions", ours: oursJava, others: []string{floor}, ratio: 0.9},
		{row: "100 wait, 100 sessions", ours: oursJava, others: []string{floor}, ratio: 0.9},
		{row: late("10 wait, 10 sessions"), ours: oursJava, others: []string{"go-zookeeper"}, ratio: 0.65, less: true},
		{row: late("100 wait, 100 sessions"), ours: oursJava, others: []string{"go-zookeeper"}, ratio: 0.65, less: true},
		{row: late("10 wait, 10 sessions"), ours: oursEnsemble, others: []string{goEnsemble}, ratio: 0.8, less: true},
		{row: "10 wait, 1 session", ours: oursJava, others: []string{"Curator"}, ratio: 7},
		{row: "100 wait, 1 session", ours: oursJava, others: []string{"Curator"}, ratio: 9},
		{row: "100 wait, 1 session, local", ours: oursJava, row2: "100 wait, 1 session", others: []string{"Curator"}, ratio: 50},
		{row: drain, ours: oursJava, others: []string{"go-zookeeper"}, ratio: 1.9},
		{row: "readers and writers", ours: oursJava, others: []string{"Curator"}, ratio: 3.5},
		{row: "64 locks, 1 session", ours: oursEmbedded, others: []string{oursJava}, ratio: 2},
		{row: "free", ours: oursEmbedded, others: []string{oursJava}, ratio: 1},
		{row: "free", ours: oursEmbedded, others: []string{"redsync"}, ratio: 1},
		{row: "free", ours: oursJava, others: []string{"etcd"}, ratio: 1.5},
		{row: "100 wait, 100 sessions", ours: oursJava, others: []string{"etcd"}, ratio: 3},
		{row: held, ours: oursJava, row2: "100 held", others: []string{oursJava}, ratio: 0.8},
	}
}

// column returns the index of a contender, or -1.
func column(t *rounds.Table, name string) int { return slices.Index(t.Contenders, name) }

// row returns a row, or nil.
func row(t *rounds.Table, name string) *rounds.Row {
	i := slices.IndexFunc(t.Rows, func(r *rounds.Row) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return t.Rows[i]
}

// reached returns the median of the ratios of all rounds, relative to the best of the
// others. It returns false if one side was not measured.
func (g *goal) reached(t *rounds.Table) (ratio float64, against string, ok bool) {
	row2 := g.row2
	if row2 == "" {
		row2 = g.row
	}
	a, b, c := row(t, g.row), row(t, row2), column(t, g.ours)
	if a == nil || b == nil || c < 0 {
		return 0, "", false
	}
	for _, name := range g.others {
		other := column(t, name)
		if other < 0 {
			continue
		}
		var ratios []float64
		for i := range min(len(a.Values[c]), len(b.Values[other])) {
			ratios = append(ratios, a.Values[c][i]/b.Values[other][i])
		}
		if len(ratios) == 0 {
			continue
		}
		// The best of the others is the one with the worst ratio for zklock.
		if r := rounds.Median(ratios); !ok || (r < ratio) != g.less {
			ratio, against, ok = r, name, true
		}
	}
	return ratio, against, ok
}

// WriteGoals writes each goal and its measured ratio as Markdown.
func WriteGoals(w io.Writer, o Options, t *rounds.Table) error {
	tw := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprint(tw, "| row\t| of\t| to\t| ratio\t| goal\t|\n|---\t|---\t|---\t|---\t|---\t|\n")
	for _, g := range o.goals() {
		r, against, ok := g.reached(t)
		if !ok {
			continue
		}
		sign := ">="
		if g.less {
			sign = "<="
		}
		if g.row2 != "" {
			against += ", " + g.row2
		}
		fmt.Fprintf(tw, "| %s\t| %s\t| %s\t| %.2f\t| %s %v\t|\n", g.row, g.ours, against, r, sign, g.ratio)
	}
	return tw.Flush()
}
