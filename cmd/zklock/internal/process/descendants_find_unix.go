//go:build unix && !linux

package process

import "golang.org/x/sys/unix"

// eachOutside finds nothing here: these systems have no fast way to list the children of a
// process.
func eachOutside([]int, int, Process, func(Process, bool)) (bool, error) { return true, nil }

// eachHeir finds nothing here: other systems have other ways to read an environment.
func eachHeir([]string, int, Process, func(Process)) (bool, error) { return true, nil }

// olderSessions is never called here.
func olderSessions(Process) (map[int]bool, error) { return nil, nil }

// ListsProcesses is always false here.
func ListsProcesses() bool { return false }

// isHelper is never called here.
func isHelper(Process, Process) bool { return false }

// isHook is never called here.
func isHook(int) bool { return false }

// Children returns nothing here.
func Children(int) []int { return nil }

// FindProcess finds nothing here.
func FindProcess(int) (Process, bool) { return Process{}, false }

// ended is never called here.
func (p Process) ended() (bool, error) { return true, nil }

// unreaped is never called here.
func (p Process) unreaped() bool { return false }

// Replaced is always false here, because it cannot be known.
func (p Process) Replaced() bool { return false }

// Signal does nothing here.
func (p Process) Signal(unix.Signal) bool { return false }
