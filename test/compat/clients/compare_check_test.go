package clients

import (
	"slices"
	"strings"
	"testing"
)

func TestDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		ours, theirs string
		want         []string // ours and theirs of each difference, by "|"
	}{
		"none":            {"a b c", "a b c", nil},
		"one line":        {"a x c", "a b c", []string{"x|b"}},
		"a line too many": {"a b x c", "a b c", []string{"x|"}},
		"a line missing":  {"a c", "a b c", []string{"|b"}},
		"the end missing": {"a", "a b c", []string{"|b c"}},
		"two":             {"x b c y", "a b c d", []string{"x|a", "y|d"}},
		"all":             {"x y", "a b", []string{"x y|a b"}},
		"nothing at all":  {"", "a", []string{"|a"}},
	} {
		t.Run(name, func(t *testing.T) {
			found := differences(strings.Fields(c.ours), strings.Fields(c.theirs))
			var got []string
			for _, text := range found {
				_, text, _ = strings.Cut(text, "\nours:\n")
				ours, theirs, _ := strings.Cut(text, "\nZooKeeper's:\n")
				got = append(got, strings.Join(strings.Fields(ours), " ")+"|"+strings.Join(strings.Fields(theirs), " "))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestDifferencesStopAtTen(t *testing.T) {
	var ours, theirs []string
	for range 40 {
		ours, theirs = append(ours, "same", "x"), append(theirs, "same", "y")
	}
	if n := len(differences(ours, theirs)); n != 10 {
		t.Errorf("%d differences, want 10", n)
	}
}

func TestSortedList(t *testing.T) {
	for text, want := range map[string]string{"[]": "[]", "[b, a]": "[a, b]", "[a]": "[a]"} {
		if got := sortedList(text); got != want {
			t.Errorf("sortedList(%q) = %q, want %q", text, got, want)
		}
	}
}
