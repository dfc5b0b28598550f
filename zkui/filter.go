package zkui

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// maxQuery limits the length of a query, in bytes, because each word is searched in all
// locks.
const maxQuery = 1 << 10

var queryTooLong = errorResponse{"q has more than 1024 bytes"}

// matches reports whether every word of the query is in one of the texts, ignoring case.
// The page's own filter does the same.
func matches(wanted string, texts ...string) bool {
	all := strings.ToLower(strings.Join(texts, "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(wanted)) {
		if !strings.Contains(all, word) {
			return false
		}
	}
	return true
}

// filterOf returns the filter with this name, and whether it exists.
func filterOf(only string) (is func(summary) bool, known bool) {
	switch only {
	case "", "all":
		return func(summary) bool { return true }, true
	case "queued":
		return func(s summary) bool { return s.Waiting > 0 }, true
	case "free":
		return func(s summary) bool { return s.Holders == 0 }, true
	case "warned":
		return func(s summary) bool { return len(s.Troubles) > 0 }, true
	}
	return nil, false
}

// sortLocks sorts summaries. It returns an error text if there is no such order.
func sortLocks(locks []summary, by string, desc bool) (wrong string) {
	var compare func(a, b summary) int
	held := func(s summary) time.Time {
		if s.Granted.IsZero() {
			return s.Since
		}
		return s.Granted
	}
	switch by {
	case "", "trouble":
		compare = func(a, b summary) int { return cmp.Compare(rankOf(a.Troubles), rankOf(b.Troubles)) }
	case "path":
		compare = func(a, b summary) int { return strings.Compare(a.Path, b.Path) }
	case "held":
		compare = func(a, b summary) int { return compareTimes(held(a), held(b)) }
	case "waiting":
		compare = func(a, b summary) int { return cmp.Compare(b.Waiting, a.Waiting) }
	case "who":
		compare = func(a, b summary) int { return compareTexts(a.OwnerName, b.OwnerName) }
	case "next":
		compare = func(a, b summary) int { return compareTexts(a.Next, b.Next) }
	case "oldest":
		compare = func(a, b summary) int { return compareTimes(a.Oldest, b.Oldest) }
	default:
		return "sort must be trouble, path, who, held, waiting, oldest, or next"
	}
	slices.SortStableFunc(locks, func(a, b summary) int {
		if desc {
			return compare(b, a)
		}
		return compare(a, b)
	})
	return ""
}

// compareTimes orders times, unknown ones last. It compares milliseconds, as browsers do,
// so that the page shows the same order.
func compareTimes(a, b time.Time) int {
	switch {
	case a.IsZero() == b.IsZero():
		return cmp.Compare(a.UnixMilli(), b.UnixMilli())
	case a.IsZero():
		return 1
	}
	return -1
}

// compareTexts orders texts, empty ones last.
func compareTexts(a, b string) int {
	switch {
	case (a == "") == (b == ""):
		return strings.Compare(a, b)
	case a == "":
		return 1
	}
	return -1
}
