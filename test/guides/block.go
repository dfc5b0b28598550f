// Package guides follows the guides in docs/guides as their readers would: it runs
// their commands in order, and compares what they print with what they say.
package guides

import (
	"fmt"
	"strings"
)

// block is a fenced part of a guide.
type block struct {
	line int    // of the guide, where it begins
	lang string // what it is: sh, text, go, python, sql, ...
	file string // the name that stands behind that: it is to be a file
	text string
}

// blocks returns what is fenced in a guide, in order.
func blocks(guide string) (found []block, err error) {
	var open *block
	n := 0
	for line := range strings.Lines(guide) {
		n++
		fence, info := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		switch {
		case !strings.HasPrefix(line, "```"):
			if open != nil {
				open.text += line
			}
		case open == nil:
			lang, file, _ := strings.Cut(fence, " ")
			open = &block{line: n, lang: lang, file: file}
		case info && fence == "":
			found = append(found, *open)
			open = nil
		default:
			return nil, fmt.Errorf("line %d: a block in a block", n)
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: a block that does not end", open.line)
	}
	return found, nil
}

// said is an output as guides show it: without spaces at the ends of lines and around
// numbers that stand alone, as wc has them.
func said(out string) string {
	lines := strings.Split(strings.TrimRight(out, "\n \t"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(lines, "\n")
}
