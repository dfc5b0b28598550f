//go:build !race

package wal_test

const raced = false
