package inspect

import (
	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/legible"
)

// MaxOwnerName is the maximum length, in characters, of a text from an entry that is shown
// in one line. Anyone can write a megabyte into an entry.
const MaxOwnerName = 64

// OwnerName returns a name for the owner of an entry, with at most [MaxOwnerName]
// characters: the owner's host and process, or the entry's data, or the session. The name
// has no control characters. Do not trust it, because anyone can write it.
func OwnerName(e zklock.Entry) string {
	switch {
	case e.Owner.String() != "":
		return Truncate(e.Owner.String(), MaxOwnerName)
	case e.Data != "":
		return Truncate(e.Data, 40)
	}
	return "session " + FormatSession(e.Session)
}

// Value returns the value that the client of an entry published, with escapes for
// unreadable characters. Do not trust it, because anyone can write it.
func Value(e zklock.Entry) string { return legible.Text(e.Value) }

// Truncate cuts text to at most n characters.
func Truncate(text string, n int) string {
	runes := 0
	for i := range text {
		if runes == n {
			return text[:i]
		}
		runes++
	}
	return text
}
