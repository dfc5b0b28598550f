package inspect

import (
	"strings"

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
		return Truncate(pythonText(e.Data), 40)
	}
	return "session " + FormatSession(e.Session)
}

// RequesterName returns a name for the client that requested a release, as host:pid with the
// user, or "" if the request does not say. Do not trust it, because anyone can write it.
func RequesterName(r zklock.ReleaseRequest) string {
	name := r.By.String()
	if r.By.User != "" {
		name = strings.TrimSuffix(r.By.User+"@"+name, "@")
	}
	return Truncate(name, MaxOwnerName)
}

// RequestReason returns the reason of a release request, cut to a limited length.
func RequestReason(r zklock.ReleaseRequest) string { return Truncate(r.Reason, zklock.MaxReason) }

// pythonText returns the text of a Python bytes literal, and other data as it is. kazoo's
// Semaphore writes b'NAME' into the entries of its waiters, and NAME into its permits.
func pythonText(data string) string {
	if text, ok := strings.CutPrefix(data, "b'"); ok && strings.HasSuffix(text, "'") {
		return strings.TrimSuffix(text, "'")
	}
	return data
}

// Value returns the value that the client of an entry published, with escapes for
// unreadable characters. Do not trust it, because anyone can write it.
func Value(e zklock.Entry) string { return legible.Text(e.Value) }

// Truncate cuts text to at most n characters. The result does not keep text in memory.
func Truncate(text string, n int) string {
	runes := 0
	for i := range text {
		if runes == n {
			return strings.Clone(text[:i])
		}
		runes++
	}
	return text
}
