//go:build !race

package zkui_test

// manyLocks is the number of locks that the page must handle.
const manyLocks = 10_000
