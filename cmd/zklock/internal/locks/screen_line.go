package locks

import (
	"strings"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
	"github.com/zklock/zklock/internal/legible"
)

// A Style is a set of text attributes, combined with |. Of two colors, the terminal
// shows the one that sgr sends last.
type Style uint8

// The styles. Without color, only Bold, Dim, and Reverse have an effect.
const (
	Bold Style = 1 << iota
	Dim
	Reverse
	Red
	Yellow
	Green
	Cyan
)

// colors is the set of all colors.
const colors = Red | Yellow | Green | Cyan

// sgr returns the sequence that turns a style on, or nothing for the zero Style.
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

// Plain returns a line in one style.
func Plain(text string, style Style) Line { return Line{{text, style}} }

// render returns the line for a terminal, cut to width columns. It escapes control
// characters and all others that are invisible or change the direction of text.
func (l Line) render(width int, color bool) string {
	var b strings.Builder
	for _, p := range l {
		text := cli.Cut(legible.Text(p.Text), width)
		if text == "" {
			continue
		}
		width -= cli.Columns(text)
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
