package bench

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// barDecade is the number of characters of a bar for a factor of ten.
const barDecade = 6

// WriteTable writes the rows as a table for a terminal, with a bar for the sessions that a
// release wakes. The bar is logarithmic: one character for 1, and six more for every factor
// of ten. Notes and errors follow below.
func WriteTable(w io.Writer, rows []Row) error {
	cells := [][]string{{"WAITERS", "RECIPE", "WOKEN", "REQUESTS", "BYTES", "MEDIAN", "SLOWEST", "WOKEN BY ARRIVAL", ""}}
	for i := range rows {
		if i > 0 && rows[i].Waiters != rows[i-1].Waiters {
			cells = append(cells, nil)
		}
		cells = append(cells, tableRow(&rows[i]))
	}
	var b strings.Builder
	b.WriteString("What one release costs, in the mean, and how long it takes to the next grant:\n\n")
	align(&b, cells, 1, len(cells[0])-1)
	writeRemarks(&b, rows)
	_, err := io.WriteString(w, b.String())
	return err
}

// tableRow returns the cells of one row, with dashes if nothing was counted.
func tableRow(r *Row) []string {
	cells := []string{fmt.Sprint(r.Waiters), r.Recipe.Name}
	if r.Releases == 0 {
		return append(cells, "-", "-", "-", "-", "-", "-", "")
	}
	per := r.PerRelease()
	return append(cells, number(per.Woken), number(per.Requests), volume(per.Bytes),
		span(r.Median()), span(r.Slowest()), number(r.PerArrival().Woken), bar(per.Woken))
}

// bar draws a number on a logarithmic scale, in ASCII. For 0, it is empty.
func bar(v float64) string {
	if v <= 0 {
		return ""
	}
	return strings.Repeat("#", max(1, 1+int(math.Round(barDecade*math.Log10(v)))))
}

// align writes cells in columns, aligned to the right except for the columns in left. A nil
// line is empty.
func align(b *strings.Builder, cells [][]string, left ...int) {
	width := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, cell := range line {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	flush := make(map[int]bool)
	for _, i := range left {
		flush[i] = true
	}
	for _, line := range cells {
		var out strings.Builder
		for i, cell := range line {
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if flush[i] {
				out.WriteString(cell + pad + "  ")
			} else {
				out.WriteString(pad + cell + "  ")
			}
		}
		b.WriteString(strings.TrimRight(out.String(), " ") + "\n")
	}
}

// writeRemarks writes a description of each recipe, and the remarks.
func writeRemarks(b *strings.Builder, rows []Row) {
	b.WriteString("\n")
	told := make(map[string]bool)
	var recipes [][]string
	for _, r := range rows {
		if !told[r.Recipe.Name] {
			told[r.Recipe.Name] = true
			recipes = append(recipes, []string{r.Recipe.Name, r.Recipe.About})
		}
	}
	if len(recipes) > 0 {
		align(b, recipes, 0, 1)
	}
	for _, remark := range remarks(rows) {
		fmt.Fprintln(b, remark)
	}
}

// remarks returns the notes and errors of the rows. Recipes that have the same remark with
// the same number of waiters share a line.
func remarks(rows []Row) (lines []string) {
	type key struct {
		waiters int
		text    string
	}
	var order []key
	recipes := make(map[key][]string)
	for _, r := range rows {
		texts := []string{r.Note}
		if r.Err != nil {
			texts = append(texts, "failed: "+r.Err.Error())
		}
		for _, text := range texts {
			k := key{r.Waiters, text}
			if text == "" {
				continue
			}
			if recipes[k] == nil {
				order = append(order, k)
			}
			recipes[k] = append(recipes[k], r.Recipe.Name)
		}
	}
	for _, k := range order {
		lines = append(lines, fmt.Sprintf("%d waiters, %s: %s", k.waiters, strings.Join(recipes[k], ", "), k.text))
	}
	return lines
}
