package survey

import (
	"github.com/zklock/zklock"
)

// Most bounds how much of what an entry says of its maker is shown to people in a
// line, in characters: anybody may have written a megabyte.
const Most = 64

// Who names the maker of an entry as well as can be known, in at most [Most]
// characters. What znodes say of their makers is anybody's text: it has no control
// characters, and is not to be trusted further.
func Who(e zklock.Entry) string {
	switch {
	case e.Owner.String() != "":
		return Shorten(e.Owner.String(), Most)
	case e.Data != "":
		return Shorten(e.Data, 40)
	}
	return "session " + SessionID(e.Session)
}

// Shorten cuts text to n characters.
func Shorten(text string, n int) string {
	runes := 0
	for i := range text {
		if runes == n {
			return text[:i]
		}
		runes++
	}
	return text
}
