//go:build race

package sim

// In one thread, the race detector finds little and takes ten times as long.
const (
	defaultSeeds = 4
	manyRounds   = 200
	shrinkRuns   = 80
	trialEvery   = 3 // TestEachFaultHasItsEffect injects every third kind
)
