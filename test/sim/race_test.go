//go:build race

package sim

// The race detector has little to find in one thread, and takes ten times as
// long.
const (
	defaultSeeds = 4
	manyRounds   = 200
	shrinkRuns   = 40
	trialEvery   = 3 // kinds of faults, of which one is tried by itself
)
