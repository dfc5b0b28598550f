//go:build race

package zklock_test

// storms is how many random storms TestStorm lets rage. The race detector makes
// them several times slower.
const storms = 2
