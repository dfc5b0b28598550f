//go:build race

package wal_test

// raced says that the race detector runs, which makes everything some ten times
// slower and has little to find in tests of one goroutine.
const raced = true
