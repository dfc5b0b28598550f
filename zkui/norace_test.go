//go:build !race

package zkui_test

// manyLocks are as many as the page must stay usable with.
const manyLocks = 10_000
