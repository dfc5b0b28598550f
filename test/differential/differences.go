package differential

import (
	"slices"
	"strings"
)

// Difference is something that the embedded server does otherwise than ZooKeeper,
// on purpose. The package documentation of internal/tree lists the same.
type Difference struct {
	Name   string
	Reason string
	// Excuses reports whether a step's two accounts, Java's first, differ by this
	// and by nothing else. Nil for what scripts never do, as Java would not
	// survive it or differs in what a script can't see; Test names what shows it.
	Excuses func(st Step, java, ours []string) bool
}

// Differences lists all that may differ.
func Differences() []Difference {
	return []Difference{
		{
			Name:   "wrong password",
			Reason: "a stranger who knows a session's id could keep its client off for ever",
			Excuses: func(st Step, java, ours []string) bool {
				// Java has closed the rightful client's connection; here it
				// answers a ping until its owner takes the session up again.
				if st.Kind != KindWrong {
					return false
				}
				return slices.Equal(without(java, "closed"), without(without(ours, "xid -2 "), "former connection closed"))
			},
		},
	}
}

// without drops the first line of a step's account that begins with a text.
func without(lines []string, text string) []string {
	i := slices.IndexFunc(lines, func(l string) bool {
		_, l, _ = strings.Cut(l, ": ")
		return strings.HasPrefix(l, text)
	})
	if i < 0 {
		return lines
	}
	return slices.Delete(slices.Clone(lines), i, i+1)
}

// excuse names the deliberate difference that explains a step's two accounts, ""
// if none does.
func excuse(st Step, lines [2][]string) string {
	for _, d := range Differences() {
		if d.Excuses != nil && d.Excuses(st, lines[0], lines[1]) {
			return d.Name
		}
	}
	return ""
}
