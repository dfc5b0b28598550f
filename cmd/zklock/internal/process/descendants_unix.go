//go:build unix

package process

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Descendants keeps the processes that were found, because a process may not be found
// again after its parent has ended. The zero value is empty. Only one goroutine at a time
// may use it.
type Descendants struct {
	Command Process          // the command; older processes are not its descendants
	known   map[Process]bool // whether the process got TERM
	failed  error            // why the last search could not list the processes; nil if it could
	older   map[int]bool     // the sessions of older processes; nil before killDelayed needs them
}

// Find adds the descendants of root, and of the known processes, outside of the process
// group. It removes processes that have ended, and processes that have become helpers:
// between fork and exec a helper looks like its parent. It reports whether the search was
// complete; see [eachOutside].
func (s *Descendants) Find(root, group int) (complete bool) {
	s.forget()
	roots := []int{root}
	for p := range s.known {
		roots = append(roots, p.PID)
	}
	complete, err := eachOutside(roots, group, s.Command, func(p Process, alive bool) {
		if !alive {
			return
		}
		if s.known == nil {
			s.known = map[Process]bool{}
		}
		if _, known := s.known[p]; !known {
			s.known[p] = false
		}
	})
	s.failed = cmp.Or(s.failed, err)
	return complete
}

// forget begins a search: it removes processes that have ended and processes that have
// become helpers.
func (s *Descendants) forget() {
	s.failed = nil
	for p := range s.known {
		ended, err := p.ended()
		s.failed = cmp.Or(s.failed, err)
		if ended || isHelper(p, s.Command) {
			delete(s.known, p)
		}
	}
}

// Len returns the number of known processes.
func (s *Descendants) Len() int { return len(s.known) }

// Terminate sends TERM to each known process once, except to the command, which the caller
// signals, and to the hook of an inner wrapper, which runs because a lock is about to be lost and
// has until KILL. It adds CONT, because a stopped process could not handle TERM. It ends at the
// time until on the boot clock, when KILL is due: a later call continues.
func (s *Descendants) Terminate(until time.Duration) {
	groups := map[int]bool{} // those that got TERM through their leaders, which come first
	for _, leaders := range []bool{true, false} {
		for p, terminated := range s.known {
			if BootTime() >= until {
				return
			}
			if terminated || leaders != (p.Group == p.PID) {
				continue
			}
			s.known[p] = true
			if p.PID == s.Command.PID && p.start == s.Command.start || isHook(p.Group) {
				continue
			}
			if now, ok := FindProcess(p.PID); ok && groups[now.Group] {
				continue
			}
			groups[p.PID] = p.Signal(unix.SIGTERM)
			p.Signal(unix.SIGCONT)
		}
	}
}

// Kill sends KILL to the known processes. A process can fork and exit before the signal
// reaches it, but a signal to its group also reaches its child. Call it again while any run: it
// can miss such a child of a session without a leader the first time.
func (s *Descendants) Kill() {
	groups := groupKiller{of: s}
	s.killKnown(&groups)
	groups.killDelayed()
}

// killKnown is Kill without the groups that it delays.
func (s *Descendants) killKnown(groups *groupKiller) {
	for p := range s.known {
		if now, ok := FindProcess(p.PID); ok && now == p {
			groups.kill(p)
		}
		p.Signal(unix.SIGKILL)
	}
}

// KillNow sends KILL to the known processes, and to each other descendant of root as soon
// as it finds it. If a process that forks and exits again and again has ended by then, a
// signal to its group still reaches its child. Root must adopt orphans: otherwise the
// children of a process that it kills are not found any more. It returns how many run, and
// how many have ended and were not reaped.
func (s *Descendants) KillNow(root, group int) (running, ended int, complete bool) {
	s.forget()
	groups := groupKiller{of: s}
	s.killKnown(&groups)
	complete, err := eachOutside([]int{root}, group, s.Command, func(p Process, alive bool) {
		groups.kill(p)
		if alive {
			p.Signal(unix.SIGKILL)
			running++
		} else {
			ended++
		}
	})
	groups.killDelayed()
	s.failed = cmp.Or(s.failed, err)
	return max(running, s.Len()), ended, complete
}

// KillHeirs sends KILL to each process outside of the process group that has the variables env
// of the command, as soon as it finds it. These are descendants of the command that cannot be
// found through their parents, because both these and the process that adopted orphans have
// ended. It returns how many run.
func (s *Descendants) KillHeirs(env []string, group int) (running int, complete bool) {
	groups := groupKiller{of: s}
	complete, err := eachHeir(env, group, s.Command, func(p Process) {
		if p.session != s.Command.session && isHook(p.session) {
			return // it belongs to a hook
		}
		groups.kill(p)
		p.Signal(unix.SIGKILL)
		running++
	})
	groups.killDelayed()
	s.failed = cmp.Or(s.failed, err)
	return running, complete
}

// groupKiller sends KILL to the groups of processes that one search found, to each group
// once: the kernel lets no member of a group start another one after that.
type groupKiller struct {
	of      *Descendants
	done    map[int]bool      // the groups that were examined
	delayed map[int][]Process // by group, those of sessions that need the list of all processes
}

// kill sends KILL to the group of a process that runs, or that has ended and was not
// reaped: the number is then still that of its group. A group in another session than the
// command's consists only of descendants of the command, unless a process that is older
// than the command, such as a daemon, is in the session. The command's session is 0 if its
// leader is outside this PID namespace, as in a container: a process whose session is not 0
// is then in another one.
//
// The leader is the oldest process of a session. If it has ended, the list of all processes is
// needed, which can take longer than the time until the deadline. The caller sends KILL to all
// processes that it found before it calls killDelayed.
func (k *groupKiller) kill(p Process) {
	command := k.of.Command
	if command.PID == 0 || p.session <= 1 || p.Group <= 1 || p.session == command.session ||
		k.done[p.Group] {
		return
	}
	if k.done == nil {
		k.done, k.delayed = map[int]bool{}, map[int][]Process{}
	}
	older, known := false, false
	if len(k.delayed[p.Group]) == 0 {
		older, known = k.of.hasOlder(p.session)
	}
	if !known {
		k.delayed[p.Group] = append(k.delayed[p.Group], p)
		return
	}
	k.done[p.Group] = true
	if !older {
		_ = unix.Kill(-p.Group, unix.SIGKILL)
	}
}

// killDelayed sends KILL to the groups that kill delayed, unless all processes of them that kill
// examined were reaped: then another group may have the number.
func (k *groupKiller) killDelayed() {
	if len(k.delayed) == 0 {
		return
	}
	older, err := olderSessions(k.of.Command)
	if err != nil {
		k.of.failed = cmp.Or(k.of.failed, err)
		return
	}
	k.of.older = older
	for group, members := range k.delayed {
		if slices.ContainsFunc(members, Process.unreaped) && !older[members[0].session] {
			_ = unix.Kill(-group, unix.SIGKILL)
		}
	}
}

// hasOlder reports whether a session has a process that is older than the command, if that is
// known. The leader is the oldest process of a session. If it has ended, killDelayed finds out.
// Its list stays valid: no process enters an existing session.
func (s *Descendants) hasOlder(session int) (older, known bool) {
	if leader, ok := FindProcess(session); ok {
		return leader.start < s.Command.start, true
	}
	return s.older[session], s.older != nil
}
