//go:build unix

package kin

import "golang.org/x/sys/unix"

// Set remembers the processes that were found, since a process whose parents have
// ended may not be found again. The zero value is empty. For one goroutine at a
// time.
type Set struct {
	Command Process          // whose descendants are looked for: nothing older is remembered
	known   map[Process]bool // whether it was asked to end
}

// Look adds the processes that can be found now: the descendants of root outside of
// the process group, and those of the processes that are known. It forgets
// processes that have ended, and those that have become helpers: between fork and exec
// a helper looks like its parent.
func (s *Set) Look(root, group int) {
	roots := []int{root}
	for p := range s.known {
		if p.Same() && !helper(p.PID) {
			roots = append(roots, p.PID)
		} else {
			delete(s.known, p)
		}
	}
	for _, p := range Outside(roots, group, s.Command) {
		if s.known == nil {
			s.known = map[Process]bool{}
		}
		if _, known := s.known[p]; !known {
			s.known[p] = false
		}
	}
}

// Len is how many are remembered.
func (s *Set) Len() int { return len(s.known) }

// Terminate asks the remembered processes to end, each once. CONT goes along: a
// stopped process could not obey.
func (s *Set) Terminate() {
	for p, asked := range s.known {
		if !asked {
			p.Signal(unix.SIGTERM)
			p.Signal(unix.SIGCONT)
			s.known[p] = true
		}
	}
}

// Kill ends the remembered processes.
func (s *Set) Kill() {
	for p := range s.known {
		p.Signal(unix.SIGKILL)
	}
}
