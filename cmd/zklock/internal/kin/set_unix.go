//go:build unix

package kin

import "golang.org/x/sys/unix"

// Set remembers who was found, since whoever has lost its parent to a signal
// cannot be found again. The zero value is empty. For one goroutine at a time.
type Set struct {
	known map[Process]bool
}

// Look adds who is to be found now: the command's descendants outside of its
// group, and theirs. Who has ended is forgotten.
func (s *Set) Look(leader int) {
	roots := []Process{{PID: leader}}
	for p := range s.known {
		if p.Same() {
			roots = append(roots, p)
		} else {
			delete(s.known, p)
		}
	}
	for _, root := range roots {
		for _, p := range Outside(root.PID, leader) {
			if s.known == nil {
				s.known = map[Process]bool{}
			}
			s.known[p] = true
		}
	}
}

// Len is how many are remembered.
func (s *Set) Len() int { return len(s.known) }

// Signal sends to all that are remembered.
func (s *Set) Signal(sig unix.Signal) {
	for p := range s.known {
		p.Signal(sig)
	}
}
