package lockload

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/zklock/zklock/bench/internal/rounds"
)

// The chart's dimensions in pixels.
const (
	chartWidth = 900
	labelWidth = 190
	barHeight  = 16
	rowGap     = 30
	margin     = 16
)

// palette has colors that differ in print and for most color-blind readers. zklock has the
// first.
var palette = [...]string{"#0b6e4f", "#6baed6", "#fd8d3c", "#969696", "#9e9ac8", "#41ab5d", "#c7e9c0", "#bdbdbd", "#e377c2", "#bcbd22"}

// WriteChart draws the throughput rows as SVG. The bars of a row are in proportion to its
// largest value.
func WriteChart(w io.Writer, t *rounds.Table) error {
	var b strings.Builder
	y := margin
	for _, r := range t.Rows {
		if r.Unit == "cycles/s" {
			y = chartRow(&b, t, r, y)
		}
	}
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" font-family="sans-serif" font-size="12">
<rect width="%[1]d" height="%[2]d" fill="#fff"/>
%[3]s</svg>
`, chartWidth, y, b.String())
	return err
}

// chartRow draws a row at y and returns the y of the next row.
func chartRow(b *strings.Builder, t *rounds.Table, r *rounds.Row, y int) int {
	largest := 0.0
	for _, m := range r.Medians {
		largest = max(largest, m)
	}
	if largest == 0 {
		return y
	}
	fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s, cycles a second</text>\n", margin, y+12, escape(r.Name))
	y += 20
	for c, m := range r.Medians {
		if len(r.Values[c]) == 0 {
			continue
		}
		width := m / largest * (chartWidth - labelWidth - 100)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", labelWidth-8, y+12, escape(t.Contenders[c]))
		fmt.Fprintf(b, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>\n",
			labelWidth, y, width, barHeight-3, palette[c%len(palette)])
		fmt.Fprintf(b, "<text x=\"%.1f\" y=\"%d\" fill=\"#444\">%.0f</text>\n", labelWidth+width+6, y+12, m)
		y += barHeight
	}
	return y + rowGap
}

// escape escapes a text for XML.
func escape(s string) string {
	var b strings.Builder
	// A strings.Builder returns no errors.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}
