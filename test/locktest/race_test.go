//go:build race

package locktest

// defaultLeakTries is the default of -leaks. The race detector makes each acquire several
// times slower.
const defaultLeakTries = 2500
