package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/zklock/zklock/cmd/zklock/internal/screen"
)

// lining is a table of which more lines may come later: a column grows and never
// shrinks. On a terminal that is too narrow for it the columns move together, and then
// those that may be cut are. Its zero value is a table that is never cut.
type lining struct {
	widths  []int
	pending [][]string
	room    int    // columns there are; 0 for any number
	soft    []int  // which columns may be cut
	mark    string // that something was cut
}

// newLining is a table for standard output, of which these columns may be cut.
func newLining(soft ...int) lining {
	c := lining{soft: soft, mark: "~"}
	if term.IsTerminal(1) {
		c.room = columns()
	}
	if screen.UTF8(os.Getenv) {
		c.mark = "…"
	}
	return c
}

// narrow is how far a column may be cut.
const narrow = 8

// add takes a line.
func (c *lining) add(line []string) {
	cells := make([]string, len(line))
	for i, text := range line {
		if i == len(c.widths) {
			c.widths = append(c.widths, 0)
		}
		cells[i] = oneCell(text)
		c.widths[i] = max(c.widths[i], screen.Columns(cells[i]))
	}
	c.pending = append(c.pending, cells)
}

// oneCell is a text in which no gap between columns is seen: two spaces are one.
func oneCell(text string) string { return strings.ReplaceAll(text, "  ", ` \x20`) }

// fit returns how wide the columns and the gaps between them are to be.
func (c *lining) fit() (widths []int, gap int) {
	widths, gap = slices.Clone(c.widths), 2
	total := func() int {
		n := gap * (len(widths) - 1)
		for _, w := range widths {
			n += w
		}
		return n
	}
	if c.room > 0 && total() > c.room {
		gap = 1
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
	return widths, gap
}

// flush writes the lines that were added since.
func (c *lining) flush(out io.Writer) error {
	widths, gap := c.fit()
	for _, line := range c.pending {
		var text strings.Builder
		for i, cell := range line {
			if slices.Contains(c.soft, i) && screen.Columns(cell) > widths[i] {
				cell = screen.Fit(cell, widths[i], c.mark)
			}
			text.WriteString(cell)
			if i < len(line)-1 {
				text.WriteString(strings.Repeat(" ", max(0, widths[i]-screen.Columns(cell))+gap))
			}
		}
		if _, err := fmt.Fprintln(out, strings.TrimRight(text.String(), " ")); err != nil {
			return err
		}
	}
	c.pending = nil
	return nil
}
