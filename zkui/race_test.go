//go:build race

package zkui_test

// manyLocks is smaller with the race detector, which takes ten times as long for each lock.
const manyLocks = 1_000
