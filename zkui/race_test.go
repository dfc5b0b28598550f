//go:build race

package zkui_test

// manyLocks are fewer with the race detector, with which each takes ten times as long.
const manyLocks = 1_000
