package cli

import (
	"strings"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// OutputWidth returns the width of the terminal on standard output, or 80 if there is none.
func OutputWidth() int { return terminalWidth(1) }

// ErrorWidth returns the width of the terminal on standard error, or 80 if there is none.
func ErrorWidth() int { return terminalWidth(2) }

func terminalWidth(fd int) int {
	if w, _, err := term.GetSize(fd); err == nil && w > 0 {
		return w
	}
	return 80
}

// Columns returns the approximate width of text on a terminal: ideographs and most emoji
// take two columns, combining marks none. If terminals disagree, it returns the larger width.
func Columns(text string) int {
	n := 0
	for _, r := range text {
		n += columns(r)
	}
	return n
}

func columns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	kind := width.LookupRune(r).Kind()
	if kind == width.EastAsianWide || kind == width.EastAsianFullwidth || unicode.Is(unicode.Regional_Indicator, r) {
		return 2
	}
	return 1
}

// Cut returns the beginning of text that fits into width columns.
func Cut(text string, width int) string {
	n := 0
	for i, r := range text {
		if n += columns(r); n > width {
			return text[:i]
		}
	}
	return text
}

// Fit makes text exactly width columns wide. It pads a shorter text with spaces. It cuts a
// longer text and ends it with mark.
func Fit(text string, width int, mark string) string {
	if Columns(text) > width {
		text = Cut(text, max(0, width-Columns(mark))) + Cut(mark, width)
	}
	return text + strings.Repeat(" ", max(0, width-Columns(text)))
}

// UTF8 reports whether the locale variables of an environment name UTF-8.
func UTF8(getenv func(string) string) bool {
	for _, key := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if value := strings.ToLower(getenv(key)); value != "" {
			return strings.Contains(value, "utf-8") || strings.Contains(value, "utf8")
		}
	}
	return false
}
