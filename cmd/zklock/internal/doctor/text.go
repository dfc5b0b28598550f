package doctor

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/zklock/zklock/cmd/zklock/internal/cli"
)

// narrowest is the smallest width to which text is wrapped.
const narrowest = 40

// The widths of the columns in front of the text.
const (
	levelWidth = 10
	checkWidth = 11
)

// Write writes the report as text, in lines of at most width columns. With color, it
// colors the levels.
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
		do := strings.Replace(f.Do, f.command, strings.ReplaceAll(f.command, " ", joint), 1)
		for i, line := range wrap(do, width-len(indent)-3) {
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

// sum returns the last line, which monitoring shows.
func (r Report) sum() string {
	n := map[Level]int{}
	for _, f := range r.Findings {
		n[f.Level]++
	}
	var parts []string
	for _, l := range []Level{Critical, Warning, Unknown} {
		switch {
		case n[l] == 0:
		case l == Warning:
			parts = append(parts, cli.Count(n[l], "warning"))
		default:
			parts = append(parts, fmt.Sprintf("%d %s", n[l], l))
		}
	}
	if len(parts) == 0 {
		return "nothing is wrong"
	}
	return strings.Join(parts, ", ")
}

// word returns the level in front of a finding. Bad levels are in capitals, because not
// every terminal shows colors.
func (l Level) word() string {
	switch l {
	case Warning, Critical, Unknown:
		return strings.ToUpper(string(l))
	}
	return string(l)
}

// paint colors a text by level.
func (l Level) paint(text string) string {
	code := map[Level]string{OK: "32", Note: "36", Warning: "33", Critical: "1;31", Unknown: "35"}[l]
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// words splits text at each single space. It keeps several spaces, because they are part of a
// name: without one of them, it would be the name of another lock.
func words(text string) []string {
	var words []string
	inside := false // the last part was between two spaces
	for _, part := range strings.Split(text, " ") {
		if last := len(words) - 1; last >= 0 && (inside || part == "") {
			words[last] += " " + part
		} else {
			words = append(words, part)
		}
		inside = part == ""
	}
	return words
}

// joint is in place of the spaces in a text that wrap must not break. A user may copy a line into
// a shell, and in a line of its own the name of a lock, which another user may have chosen, would
// be a command. No text of a finding has this character.
const joint = "\x00"

// wrap wraps text between words, and cuts words that are too long, except those with a joint. It
// returns at least one line.
func wrap(text string, width int) []string {
	var lines []string
	line, long := "", 0
	for _, word := range words(text) {
		for n := utf8.RuneCountInString(word); ; n = utf8.RuneCountInString(word) {
			if long > 0 && long+1+n > width {
				lines, line, long = append(lines, line), "", 0
			}
			if n <= width || strings.Contains(word, joint) {
				break
			}
			cut := 0 // the bytes of the characters that fit
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
	lines = append(lines, line)
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, joint, " ")
	}
	return lines
}
