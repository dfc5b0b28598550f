//go:build unix && !linux

package kin

import "golang.org/x/sys/unix"

// Outside finds nothing here: there is no cheap way to ask for the children of
// a process.
func Outside([]int, int, Process) []Process { return nil }

// Lists is always false here.
func Lists() bool { return false }

// helper is never asked here.
func helper(int) bool { return false }

// Children lists nobody here.
func Children(int) []int { return nil }

// Of tells nothing here.
func Of(int) (Process, bool) { return Process{}, false }

// Same is never asked here.
func (p Process) Same() bool { return false }

// Replaced cannot be known here.
func (p Process) Replaced() bool { return false }

// Signal does nothing here.
func (p Process) Signal(unix.Signal) {}
