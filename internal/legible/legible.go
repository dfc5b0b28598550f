// Package legible shows texts that may be anybody's, as paths and what entries say of
// their owners, so that nothing in them is obeyed by a terminal, ends a line of a log,
// turns around or hides what stands beside it, or fills a screen.
package legible

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// most is how many bytes of a path are shown: more than a good lock name has.
const most = 600

// Rune reports whether a character is seen where it stands, and does nothing else:
// control characters, those that set the direction of text, joiners, byte order marks,
// fillers and all spaces but the common one are not.
func Rune(r rune) bool {
	return r != utf8.RuneError && strconv.IsPrint(r) &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// unreadable is the other way round.
func unreadable(r rune) bool { return !Rune(r) }

// Path returns the path as it is if all of it can be read, and else as a Go string
// literal. A long one is cut, which three dots tell.
func Path(path string) string {
	cut := ""
	if len(path) > most {
		end := most
		for end > most-utf8.UTFMax && !utf8.RuneStart(path[end]) {
			end-- // not within a rune
		}
		path, cut = path[:end], "..."
	}
	return Name(path) + cut
}

// Name is Path without a bound.
func Name(path string) string {
	if strings.ContainsFunc(path, unreadable) {
		return `"` + escape(path, `"`) + `"`
	}
	return path
}

// Word is Path for a command that a reader may copy into a shell: a path with a character
// that may mean something there is in single quotes.
func Word(path string) string {
	shown := Path(path)
	if shown != "" && !strings.ContainsFunc(shown, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._/@%+=-", r))
	}) {
		return shown
	}
	return "'" + strings.ReplaceAll(shown, "'", `'\''`) + "'"
}

// Text returns the text with an escape, as in a Go string literal, in the place of each
// character that cannot be read. What can be read stays as it is, so that a backslash
// may be the text's own.
func Text(text string) string {
	if strings.ContainsFunc(text, unreadable) {
		return escape(text, "")
	}
	return text
}

// escape writes what cannot be read as Go does. With a quote it writes that and
// backslashes so as well.
func escape(text, quote string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case quote != "" && (text[:1] == quote || r == '\\'):
			b.WriteString(`\` + text[:1])
		case Rune(r):
			b.WriteString(text[:size])
		case strconv.IsPrint(r) && size > 1:
			// Seen by Go's rules, and by nobody's eyes.
			word := strconv.QuoteRuneToASCII(r)
			b.WriteString(word[1 : len(word)-1])
		default:
			word := strconv.Quote(text[:size])
			b.WriteString(word[1 : len(word)-1])
		}
		text = text[size:]
	}
	return b.String()
}
