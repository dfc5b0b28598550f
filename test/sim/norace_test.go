//go:build !race

package sim

// How much the tests do without flags.
const (
	defaultSeeds = 30
	manyRounds   = 2500
	shrinkRuns   = 200
	trialEvery   = 1
)
