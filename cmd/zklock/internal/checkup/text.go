package checkup

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// narrowest is the width below which text is not broken further.
const narrowest = 40

// label is how wide the columns before the text are.
const (
	levelWidth = 10
	checkWidth = 11
)

// Write writes the report for people, in lines of at most width columns. With color
// the levels stand out; they are words all the same.
func (r Report) Write(out io.Writer, width int, color bool) error {
	width = max(width, narrowest)
	var text bytes.Buffer
	for _, f := range r.Findings {
		level := fmt.Sprintf("%-*s", levelWidth, f.Level.word())
		if color {
			level = f.Level.paint(level)
		}
		indent := strings.Repeat(" ", levelWidth+checkWidth)
		lines := wrap(f.What, width-len(indent))
		fmt.Fprintf(&text, "%s%-*s%s\n", level, checkWidth, f.Check, lines[0])
		for _, line := range lines[1:] {
			fmt.Fprintf(&text, "%s%s\n", indent, line)
		}
		if f.Do == "" {
			continue
		}
		for i, line := range wrap(f.Do, width-len(indent)-3) {
			arrow := "-> "
			if i > 0 {
				arrow = "   "
			}
			fmt.Fprintf(&text, "%s%s%s\n", indent, arrow, line)
		}
	}
	fmt.Fprintln(&text, r.sum())
	_, err := out.Write(text.Bytes())
	return err
}

// sum is the last line: what monitoring shows.
func (r Report) sum() string {
	n := map[Level]int{}
	for _, f := range r.Findings {
		n[f.Level]++
	}
	var parts []string
	for _, l := range []Level{Critical, Warning, Unknown} {
		if n[l] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n[l], l))
		}
	}
	if len(parts) == 0 {
		return "nothing is wrong"
	}
	return strings.Join(parts, ", ")
}

// word is the level as it stands before a finding: what is bad is in capitals, for
// those who see no colors.
func (l Level) word() string {
	switch l {
	case Warning, Critical, Unknown:
		return strings.ToUpper(string(l))
	}
	return string(l)
}

// paint colors a text as its level is.
func (l Level) paint(text string) string {
	code := map[Level]string{OK: "32", Note: "36", Warning: "33", Critical: "1;31", Unknown: "35"}[l]
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// wrap breaks text between its words; a word that is too long by itself is cut into
// pieces. There is at least one line.
func wrap(text string, width int) []string {
	var lines []string
	line, long := "", 0
	for _, word := range strings.Fields(text) {
		for n := utf8.RuneCountInString(word); ; n = utf8.RuneCountInString(word) {
			if long > 0 && long+1+n > width {
				lines, line, long = append(lines, line), "", 0
			}
			if n <= width {
				break
			}
			cut := 0 // the bytes of so many characters as there is room for
			for range width {
				_, size := utf8.DecodeRuneInString(word[cut:])
				cut += size
			}
			lines, word = append(lines, word[:cut]), word[cut:]
		}
		if long > 0 {
			line, long = line+" ", long+1
		}
		line += word
		long += utf8.RuneCountInString(word)
	}
	return append(lines, line)
}
