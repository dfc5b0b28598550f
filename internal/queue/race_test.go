//go:build race

package queue

// randomRuns is the number of random ensembles for a rule. With the race detector, they are ten
// times slower, and there is only one goroutine to check.
const randomRuns = 80
