//go:build race

package wal_test

// raced reports whether the race detector is enabled. It makes everything about ten
// times slower, and finds little in tests with one goroutine.
const raced = true
