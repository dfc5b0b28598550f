//go:build unix

package process

import "golang.org/x/sys/unix"

// Descendants keeps the processes that were found, because a process may not be found
// again after its parent has ended. The zero value is empty. Only one goroutine at a time
// may use it.
type Descendants struct {
	Command Process          // the command; older processes are not its descendants
	known   map[Process]bool // whether the process got TERM
}

// Find adds the descendants of root, and of the known processes, outside of the process
// group. It removes processes that have ended, and processes that have become helpers:
// between fork and exec a helper looks like its parent. It reports whether the search was
// complete; see [Outside].
func (s *Descendants) Find(root, group int) (complete bool) {
	roots := []int{root}
	for p := range s.known {
		if p.Same() && !isHelper(p.PID) {
			roots = append(roots, p.PID)
		} else {
			delete(s.known, p)
		}
	}
	found, complete := Outside(roots, group, s.Command)
	for _, p := range found {
		if s.known == nil {
			s.known = map[Process]bool{}
		}
		if _, known := s.known[p]; !known {
			s.known[p] = false
		}
	}
	return complete
}

// Len returns the number of known processes.
func (s *Descendants) Len() int { return len(s.known) }

// Terminate sends TERM to each known process once. It adds CONT, because a stopped process
// could not handle TERM.
func (s *Descendants) Terminate() {
	for p, terminated := range s.known {
		if !terminated {
			p.Signal(unix.SIGTERM)
			p.Signal(unix.SIGCONT)
			s.known[p] = true
		}
	}
}

// Kill sends KILL to the known processes. A process can fork and exit before the signal
// reaches it, but a signal to its group also reaches its child.
func (s *Descendants) Kill() {
	for p := range s.known {
		if now, ok := FindProcess(p.PID); ok && now == p {
			s.killGroup(p)
		}
		p.Signal(unix.SIGKILL)
	}
}

// KillNow sends KILL to each descendant of root as soon as it finds it. If one that forks
// and exits again and again has ended by then, a signal to its group still reaches its
// child. Root must adopt orphans: otherwise the children of a process that it kills are
// not found any more. It returns how many have ended and were not reaped.
func (s *Descendants) KillNow(root, group int) (ended int) {
	eachOutside([]int{root}, group, s.Command, func(p Process, alive bool) {
		s.killGroup(p)
		if alive {
			p.Signal(unix.SIGKILL)
		} else {
			ended++
		}
	})
	return ended
}

// killGroup sends KILL to the group of a process that runs, or that has ended and was not
// reaped: the number is then still that of its group. A group in another session than the
// command's consists only of descendants of the command, unless a process that is older
// than the command, such as a daemon, leads the group or the session.
func (s *Descendants) killGroup(p Process) {
	if s.Command.session != 0 && p.session > 1 && p.Group > 1 && p.session != s.Command.session && !s.isOlder(p.Group) && !s.isOlder(p.session) {
		_ = unix.Kill(-p.Group, unix.SIGKILL)
	}
}

// isOlder reports whether a process with this number runs that started before the command.
func (s *Descendants) isOlder(pid int) bool {
	p, ok := FindProcess(pid)
	return ok && p.start < s.Command.start
}
