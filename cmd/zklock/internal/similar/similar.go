// Package similar finds what was probably meant by a word that means nothing.
package similar

import "strings"

// To finds the known word that was probably meant by key, "" if none is near: a
// third of the letters may be wrong and three at most, and their case does not
// matter. A known word of which key is a good beginning is near as well.
func To(key string, known []string) (best string) {
	const longest = 64
	if len(key) > longest {
		return ""
	}
	nearest := min(len(key)/3, 3) + 1
	for _, word := range known {
		d := distance(strings.ToLower(key), strings.ToLower(word))
		// Of two that are as near, the first by name: the list has no order.
		if d < nearest || d == nearest && best != "" && word < best {
			best, nearest = word, d
		}
	}
	if best == "" {
		best = begun(strings.ToLower(key), known)
	}
	return best
}

// begun finds the one known word that begins with key, which must be long enough
// to be no accident.
func begun(key string, known []string) (best string) {
	const enough = 3
	for _, word := range known {
		if len(key) < enough || !strings.HasPrefix(strings.ToLower(word), key) {
			continue
		}
		if best != "" {
			return "" // of two nobody knows which
		}
		best = word
	}
	return best
}

// distance is the number of letters to put in, take out, change or swap with
// the next, to make b of a (the restricted distance of Damerau and Levenshtein).
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
