//go:build !race

package zklock_test

const storms = 8
