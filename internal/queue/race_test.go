//go:build race

package queue

// histories is how many random ensembles a rule is held against. The race
// detector makes them some ten times slower and has one goroutine to look at.
const histories = 80
