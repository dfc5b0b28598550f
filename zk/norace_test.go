//go:build !race

package zk

// raced reports whether the race detector is enabled.
const raced = false
