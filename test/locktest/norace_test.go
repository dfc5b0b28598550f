//go:build !race

package locktest

// defaultLeakTries is the default of -leaks.
const defaultLeakTries = 10_000
