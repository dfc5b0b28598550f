// Package legible escapes texts from any client, such as paths and the data of entries, for
// display. The result contains no control sequence for a terminal, is one line of a log, and
// neither reverses, hides, nor covers other text.
package legible

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// most is the maximum number of bytes of a path that Path shows.
const most = 600

// maxMarks is the maximum number of combining marks on a character. No script needs more. A stack
// of marks covers other lines of the screen.
const maxMarks = 4

// blank has the characters that look like a space, although Unicode classifies them as symbols,
// letters, or marks.
var blank = &unicode.RangeTable{
	R16: []unicode.Range16{{Lo: 0x2800, Hi: 0x2800, Stride: 1}},
	R32: []unicode.Range32{
		{Lo: 0x13441, Hi: 0x13442, Stride: 1}, {Lo: 0x16fe4, Hi: 0x16fe4, Stride: 1}, {Lo: 0x1d159, Hi: 0x1d159, Stride: 1},
	},
}

// Rune reports whether a character is visible and has no other effect. It returns false for control
// characters, characters that set the direction of text, joiners, byte order marks, fillers, blank
// symbols, and all spaces except U+0020. It returns true for a combining mark, which is visible on
// another character.
func Rune(r rune) bool {
	return r != utf8.RuneError && strconv.IsPrint(r) &&
		!unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, blank)
}

// scanner reads the characters of a text in order.
type scanner struct {
	base  bool // a character for the next mark precedes it
	marks int  // in a row
}

// seen reports whether the next character is readable. A combining mark is not if no character or
// too many marks precede it: it would change text before the line or above it.
func (s *scanner) seen(r rune) bool {
	seen := Rune(r)
	if !unicode.Is(unicode.M, r) {
		s.base, s.marks = seen && r != ' ', 0
		return seen
	}
	s.base = s.base && seen
	s.marks++
	return s.base && s.marks <= maxMarks
}

// unreadable reports whether the text has a character that is not readable.
func unreadable(text string) bool {
	var s scanner
	return strings.ContainsFunc(text, func(r rune) bool { return !s.seen(r) })
}

// Path returns the path unchanged if it is readable, and otherwise as a Go string literal. It cuts
// a long path and appends three dots.
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

// Name is Path without a limit of the length.
func Name(path string) string {
	if unreadable(path) {
		return `"` + escape(path, `"`) + `"`
	}
	return path
}

// shellEscape moves quotes and backslashes out of single quotes. In single quotes, fish reads
// a backslash before a quote as an escape, and other shells do not.
var shellEscape = strings.NewReplacer(`'`, `'\''`, `\`, `'\\'`)

// Word returns a path for a command that a user may copy into a shell. If the path has a
// character that could mean something to bash, dash, fish, or zsh, it is in single quotes. On
// Windows, a backslash and a colon need no quotes, because most paths there have them. Word
// returns NAME for a path that Path would not show as it is: the command would be about another
// path.
func Word(path string) string {
	if Path(path) != path {
		return "NAME"
	}
	harmless := "._/@+-"
	if os.PathSeparator == '\\' {
		harmless += `\:`
	}
	if path != "" && !strings.ContainsFunc(path, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(harmless, r))
	}) {
		return path
	}
	return "'" + shellEscape.Replace(path) + "'"
}

// Text returns the text with an escape, as in a Go string literal, for each character that is not
// readable. It keeps readable characters, so a backslash in the result may be one of the text.
func Text(text string) string {
	if unreadable(text) {
		return escape(text, "")
	}
	return text
}

// escape escapes each character that is not readable as Go does. If quote is not empty, it also
// escapes quotes and backslashes.
func escape(text, quote string) string {
	var b strings.Builder
	var s scanner
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		seen := s.seen(r)
		switch {
		case quote != "" && (text[:1] == quote || r == '\\'):
			b.WriteString(`\` + text[:1])
		case seen:
			b.WriteString(text[:size])
		case strconv.IsPrint(r) && size > 1:
			// Go prints it unescaped, although it is invisible.
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

// JSON returns JSON with an equivalent escape for each character in a string that is not readable.
func JSON(text []byte) []byte {
	return escapeStrings(text, func(b []byte, r rune) []byte {
		if first, second := utf16.EncodeRune(r); first != utf8.RuneError {
			return fmt.Appendf(b, `\u%04x\u%04x`, first, second)
		}
		return fmt.Appendf(b, `\u%04x`, r)
	})
}

// YAML is JSON for YAML. A string that it changes must be in double quotes.
func YAML(text []byte) []byte {
	return escapeStrings(text, func(b []byte, r rune) []byte {
		if r > 0xffff {
			return fmt.Appendf(b, `\U%08x`, r)
		}
		return fmt.Appendf(b, `\u%04x`, r)
	})
}

// escapeStrings calls escape for each character that is not readable. ASCII control characters
// other than DEL are part of the format.
func escapeStrings(text []byte, escape func([]byte, rune) []byte) []byte {
	var b []byte
	var s scanner
	done := 0 // bytes of text that are in b
	for i := 0; i < len(text); {
		if c := text[i]; c < 0x7f {
			s.base, s.marks = c > ' ' && c != '"', 0 // a string may begin after a quote
			i++
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if !s.seen(r) {
			b = escape(append(b, text[done:i]...), r)
			done = i + size
		}
		i += size
	}
	if done == 0 {
		return text
	}
	return append(b, text[done:]...)
}
