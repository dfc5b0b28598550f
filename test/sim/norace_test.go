//go:build !race

package sim

// How much the tests do by themselves: histories, and rounds of claims of several
// locks.
const (
	defaultSeeds = 30
	manyRounds   = 2500
	shrinkRuns   = 200
	trialEvery   = 1
)
