//go:build race

package zk

// raced says whether the race detector is on.
const raced = true
