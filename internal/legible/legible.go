// Package legible shows paths that may be anybody's in errors and logs, so that
// nothing in them is obeyed by a terminal, ends a line of a log, or fills one.
package legible

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// most is how many bytes of a path are shown: more than a good lock name has.
const most = 600

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
	unreadable := func(r rune) bool { return r == utf8.RuneError || !strconv.IsPrint(r) }
	if strings.ContainsFunc(path, unreadable) {
		path = strconv.Quote(path)
	}
	return path + cut
}
