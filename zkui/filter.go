package zkui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/inspect"
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
func filterOf(only string) (is func(inspect.Summary) bool, known bool) {
	switch only {
	case "", "all":
		return func(inspect.Summary) bool { return true }, true
	case "queued":
		return func(s inspect.Summary) bool { return s.Waiting > 0 }, true
	case "free":
		return func(s inspect.Summary) bool { return s.Holders == 0 }, true
	case "warned":
		return func(s inspect.Summary) bool { return s.Warnings > 0 }, true
	}
	return nil, false
}

// sortLocks sorts summaries. It returns an error text if there is no such order.
func sortLocks(locks []inspect.Summary, by string, desc bool) (wrong string) {
	var compare func(a, b inspect.Summary) int
	held := func(s inspect.Summary) time.Time {
		if s.Granted.IsZero() {
			return s.Since
		}
		return s.Granted
	}
	switch by {
	case "", "path":
		compare = func(a, b inspect.Summary) int { return strings.Compare(a.Path, b.Path) }
	case "held":
		compare = func(a, b inspect.Summary) int { return compareTimes(held(a), held(b)) }
	case "waiting":
		compare = func(a, b inspect.Summary) int { return cmp.Compare(b.Waiting, a.Waiting) }
	case "who":
		compare = func(a, b inspect.Summary) int { return compareTexts(a.OwnerName, b.OwnerName) }
	case "next":
		compare = func(a, b inspect.Summary) int { return compareTexts(a.Next, b.Next) }
	case "oldest":
		compare = func(a, b inspect.Summary) int { return compareTimes(a.Oldest, b.Oldest) }
	default:
		return "sort must be path, who, held, waiting, oldest, or next"
	}
	slices.SortStableFunc(locks, func(a, b inspect.Summary) int {
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
