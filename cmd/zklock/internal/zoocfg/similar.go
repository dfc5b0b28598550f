package zoocfg

import "strings"

// similar finds the key that was probably meant, "" if none is near: a third of
// the letters may be wrong and three at most, and their case does not matter.
func similar(key string, keys []string) (best string) {
	const longest = 64
	if len(key) > longest {
		return ""
	}
	nearest := min(len(key)/3, 3) + 1
	for _, known := range keys {
		d := distance(strings.ToLower(key), strings.ToLower(known))
		// Of two that are as near, the first by name: the list has no order.
		if d < nearest || d == nearest && best != "" && known < best {
			best, nearest = known, d
		}
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
