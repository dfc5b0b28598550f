package screen

import (
	"strings"
	"unicode"

	"github.com/zklock/zklock/internal/legible"
)

// A Style is how text looks. Styles are added by or. The colors come last: of two
// the larger wins.
type Style uint8

// The styles. Without colors the other three remain.
const (
	Bold Style = 1 << iota
	Dim
	Reverse
	Red
	Yellow
	Green
	Cyan
)

// colors are those of the styles that are colors.
const colors = Red | Yellow | Green | Cyan

// sgr is the sequence that turns a style on, empty for none.
func (s Style) sgr() string {
	var codes []string
	for _, c := range []struct {
		style Style
		code  string
	}{{Bold, "1"}, {Dim, "2"}, {Reverse, "7"}, {Red, "31"}, {Yellow, "33"}, {Green, "32"}, {Cyan, "36"}} {
		if s&c.style != 0 {
			codes = append(codes, c.code)
		}
	}
	if codes == nil {
		return ""
	}
	return "\x1b[" + strings.Join(codes, ";") + "m"
}

// A Piece is text in one style.
type Piece struct {
	Text  string
	Style Style
}

// A Line is one row of the screen.
type Line []Piece

// Plain is a line of one style.
func Plain(text string, style Style) Line { return Line{{text, style}} }

// String is the line's text alone.
func (l Line) String() string {
	var b strings.Builder
	for _, p := range l {
		b.WriteString(p.Text)
	}
	return b.String()
}

// render is the line for a terminal, cut to width columns. Nothing in its text can
// do more than be seen: what cannot be read is escaped.
func (l Line) render(width int, color bool) string {
	var b strings.Builder
	for _, p := range l {
		text := Cut(legible.Text(p.Text), width)
		if text == "" {
			continue
		}
		width -= Columns(text)
		style := p.Style
		if !color {
			style &^= colors
		}
		if on := style.sgr(); on != "" {
			b.WriteString(on + text + "\x1b[0m")
		} else {
			b.WriteString(text)
		}
	}
	return b.String()
}

// Columns is how wide text is on a terminal, as near as can be told without asking
// it: ideographs and most emoji take two columns, marks above others none.
func Columns(text string) int {
	n := 0
	for _, r := range text {
		n += columns(r)
	}
	return n
}

func columns(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115f, // Hangul
		r >= 0x2e80 && r <= 0xa4cf && r != 0x303f, // CJK
		r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f,
		r >= 0xff00 && r <= 0xff60,
		r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1f64f, // emoji
		r >= 0x1f680 && r <= 0x1f6ff,
		r >= 0x1f900 && r <= 0x1f9ff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// Cut cuts text to at most width columns.
func Cut(text string, width int) string {
	n := 0
	for i, r := range text {
		if n += columns(r); n > width {
			return text[:i]
		}
	}
	return text
}

// Fit makes text exactly width columns wide: with blanks behind it, or cut, which
// the mark at its end tells.
func Fit(text string, width int, mark string) string {
	if Columns(text) > width {
		text = Cut(text, max(0, width-Columns(mark))) + Cut(mark, width)
	}
	return text + strings.Repeat(" ", max(0, width-Columns(text)))
}
