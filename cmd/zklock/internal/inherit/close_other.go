//go:build !unix

// Package inherit deals with the files that a process was started with.
package inherit

// Close has nothing to do: handles are inherited by name only.
func Close(...int) {}

// Inherited cannot be known.
func Inherited(int) bool { return true }

// Mark has nothing to do.
func Mark(int) {}
