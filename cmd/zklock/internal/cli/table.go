package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"
)

// Table is a table that can get more lines after each Flush. A column grows and never
// shrinks. If the terminal is too narrow, the table cuts the columns that may be cut. The
// zero value is a table of unlimited width.
type Table struct {
	Widths  []int
	pending [][]string
	room    int    // width of the terminal, 0 for no limit
	soft    []int  // columns that may be cut
	mark    string // ends a cell that was cut
}

// NewTable returns a table for standard output. The columns in soft may be cut.
func NewTable(soft ...int) Table {
	c := Table{soft: soft, mark: "~"}
	if term.IsTerminal(1) {
		c.room = OutputWidth()
	}
	if UTF8(os.Getenv) {
		c.mark = "…"
	}
	return c
}

// narrow is the minimum width of a column that is cut.
const narrow = 8

// Add adds a line.
func (c *Table) Add(line []string) {
	cells := make([]string, len(line))
	for i, text := range line {
		if i == len(c.Widths) {
			c.Widths = append(c.Widths, 0)
		}
		cells[i] = OneCell(text)
		c.Widths[i] = max(c.Widths[i], Columns(cells[i]))
	}
	c.pending = append(c.pending, cells)
}

// gap is the space between columns.
const gap = "  "

// OneCell returns text without the space between columns, so that it looks like one cell.
func OneCell(text string) string { return strings.ReplaceAll(text, gap, ` \x20`) }

// fit returns the widths of the columns.
func (c *Table) fit() []int {
	widths := slices.Clone(c.Widths)
	total := func() int {
		n := len(gap) * (len(widths) - 1)
		for _, w := range widths {
			n += w
		}
		return n
	}
	for c.room > 0 && total() > c.room {
		widest := -1
		for _, i := range c.soft {
			if i < len(widths) && widths[i] > narrow && (widest < 0 || widths[i] > widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest] -= min(total()-c.room, max(1, (widths[widest]-narrow)/2))
	}
	return widths
}

// Flush writes the lines that were added since the last Flush.
func (c *Table) Flush(out io.Writer) error {
	widths := c.fit()
	for _, line := range c.pending {
		var text strings.Builder
		for i, cell := range line {
			if slices.Contains(c.soft, i) && Columns(cell) > widths[i] {
				cell = Fit(cell, widths[i], c.mark)
			}
			text.WriteString(cell)
			if i < len(line)-1 {
				text.WriteString(strings.Repeat(" ", max(0, widths[i]-Columns(cell))) + gap)
			}
		}
		if _, err := fmt.Fprintln(out, strings.TrimRight(text.String(), " ")); err != nil {
			return err
		}
	}
	c.pending = nil
	return nil
}
