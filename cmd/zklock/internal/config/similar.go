package config

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// DidYouMean returns the suffix of an error about an unknown word: the most similar known
// word, or "" if none is similar.
func DidYouMean(word string, known []string) string {
	if similar := Similar(word, known); similar != "" {
		return "; did you mean " + similar + "?"
	}
	return ""
}

// Similar returns the known word that is most similar to key, or "" if none is. Like in
// cobra, at most two letters differ, or one in a short word, or key is a prefix of the
// word.
func Similar(key string, known []string) string {
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
			// Of the words with the prefix key, the shortest is most similar.
			rest := func(word string) int {
				if strings.HasPrefix(word, key) {
					return len(word)
				}
				return longest + 1
			}
			return slices.MinFunc(found, func(a, b string) int {
				return cmp.Or(cmp.Compare(rest(a), rest(b)), cmp.Compare(a, b))
			})
		}
		if len(key) < short {
			break
		}
	}
	return ""
}
