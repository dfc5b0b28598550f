//go:build !race

package queue

const randomRuns = 400
