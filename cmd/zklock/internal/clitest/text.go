package clitest

import "math/rand/v2"

// Text joins up to 19 of the pieces at random.
func Text(r *rand.Rand, pieces ...string) string {
	text := ""
	for range r.IntN(20) {
		text += pieces[r.IntN(len(pieces))]
	}
	return text
}
