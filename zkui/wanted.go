package zkui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/survey"
)

// mostWanted bounds what is looked for, in bytes: each word is looked for in all locks.
const mostWanted = 1 << 10

var tooLong = failure{"q has more than 1024 bytes"}

// says reports whether every word of what is looked for is in one of the texts, in
// letters of either case. The page's own filter is the same.
func says(wanted string, texts ...string) bool {
	all := strings.ToLower(strings.Join(texts, "\n"))
	for word := range strings.FieldsSeq(strings.ToLower(wanted)) {
		if !strings.Contains(all, word) {
			return false
		}
	}
	return true
}

// kindOf is the part of the list that has a name, and whether there is one.
func kindOf(only string) (is func(survey.Summary) bool, known bool) {
	switch only {
	case "", "all":
		return func(survey.Summary) bool { return true }, true
	case "queued":
		return func(s survey.Summary) bool { return s.Waiting > 0 }, true
	case "free":
		return func(s survey.Summary) bool { return s.Holders == 0 }, true
	case "warned":
		return func(s survey.Summary) bool { return s.Warnings > 0 }, true
	}
	return nil, false
}

// order sorts summaries; what is wrong with the wish comes back.
func order(locks []survey.Summary, by string, desc bool) (wrong string) {
	var compare func(a, b survey.Summary) int
	held := func(s survey.Summary) time.Time {
		if s.Granted.IsZero() {
			return s.Since
		}
		return s.Granted
	}
	switch by {
	case "", "path":
		compare = func(a, b survey.Summary) int { return strings.Compare(a.Path, b.Path) }
	case "held":
		compare = func(a, b survey.Summary) int { return absent(held(a), held(b)) }
	case "waiting":
		compare = func(a, b survey.Summary) int { return cmp.Compare(b.Waiting, a.Waiting) }
	case "who":
		compare = func(a, b survey.Summary) int { return unnamed(a.Who, b.Who) }
	case "next":
		compare = func(a, b survey.Summary) int { return unnamed(a.Next, b.Next) }
	case "oldest":
		compare = func(a, b survey.Summary) int { return absent(a.Oldest, b.Oldest) }
	default:
		return "sort is path, who, held, waiting, oldest or next"
	}
	slices.SortStableFunc(locks, func(a, b survey.Summary) int {
		if desc {
			return compare(b, a)
		}
		return compare(a, b)
	})
	return ""
}

// absent orders times, the earlier first and what is not known last. Browsers tell
// no less than a millisecond, and show the same order.
func absent(a, b time.Time) int {
	switch {
	case a.IsZero() == b.IsZero():
		return cmp.Compare(a.UnixMilli(), b.UnixMilli())
	case a.IsZero():
		return 1
	}
	return -1
}

// unnamed orders texts, what has none last.
func unnamed(a, b string) int {
	switch {
	case (a == "") == (b == ""):
		return strings.Compare(a, b)
	case a == "":
		return 1
	}
	return -1
}
