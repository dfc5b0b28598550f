//go:build !race

package queue

const histories = 400
