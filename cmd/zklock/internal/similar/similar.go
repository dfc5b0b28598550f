// Package similar suggests a known word for a misspelled one.
package similar

import (
	"slices"

	"github.com/spf13/cobra"
)

// To returns the known word that is most like key by cobra's measure, or "" if
// none is: at most two letters differ, one in a short word, or key begins the word.
func To(key string, known []string) string {
	const longest, short = 64, 4
	if len(key) < 2 || len(key) > longest {
		return ""
	}
	parent := &cobra.Command{Use: "known"}
	for _, word := range known {
		parent.AddCommand(&cobra.Command{Use: word, Run: func(*cobra.Command, []string) {}})
	}
	for _, distance := range []int{1, 2} {
		parent.SuggestionsMinimumDistance = distance
		if found := parent.SuggestionsFor(key); len(found) > 0 {
			return slices.Min(found)
		}
		if len(key) < short {
			break
		}
	}
	return ""
}
