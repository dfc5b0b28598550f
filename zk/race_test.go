//go:build race

package zk

// raceEnabled reports whether the race detector is enabled.
const raceEnabled = true
