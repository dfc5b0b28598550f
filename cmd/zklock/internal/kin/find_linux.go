package kin

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// maxFound bounds how many processes are looked at besides those that are known.
const maxFound = 4096

// own reports whether /proc shows the process ids that system calls take here. In a
// PID namespace in which nobody has mounted a /proc it shows those of another
// namespace, where other processes have the same numbers.
var own = sync.OnceValue(func() bool {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		// One number for each namespace, from that of /proc to that of the process.
		if ids, found := strings.CutPrefix(line, "NSpid:"); found {
			return strings.TrimSpace(ids) == strconv.Itoa(os.Getpid())
		}
	}
	self, err := os.Readlink("/proc/self") // a kernel without namespaces
	return err == nil && self == strconv.Itoa(os.Getpid())
})

// Lists reports whether the children of a process can be found here.
func Lists() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil && own()
}

// Outside returns those descendants of the roots that are not in the process group
// group, as far as can be seen: none, where the kernel lists no children. It leaves
// out zklock's own helpers, and what started before the process since: what a script
// started before it became the wrapper, by exec, is no descendant of the command.
//
// It reads the children of each process in turn, and not the whole of /proc: it
// is called when time is short, and on a large machine all would take too long.
func Outside(roots []int, group int, since Process) []Process {
	var found []Process
	queue, seen := slices.Clone(roots), map[int]bool{}
	for _, pid := range roots {
		seen[pid] = true
	}
	for i := 0; i < len(queue) && i < len(roots)+maxFound; i++ {
		for _, child := range Children(queue[i]) {
			if seen[child] {
				continue
			}
			seen[child] = true
			p, ok := stat(child)
			outside := ok && p.Group != group
			if outside && (p.start < since.start || helper(child)) {
				continue
			}
			queue = append(queue, child)
			if outside {
				found = append(found, p)
			}
		}
	}
	return found
}

// helper reports whether a process is a watchdog of zklock, which ends by itself, or
// a user's local server, which other commands use as well.
func helper(pid int) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return false
	}
	args := bytes.SplitN(line, []byte{0}, 4)
	return len(args) > 1 && string(args[1]) == WatchdogArgument ||
		len(args) > 2 && string(args[1]) == "serve" && string(args[2]) == "--local"
}

// Children lists the processes that any thread of pid has started and that have
// not been waited for.
func Children(pid int) []int {
	if !own() {
		return nil
	}
	var all []int
	files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		return nil
	}
	for _, file := range files {
		list, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for word := range bytes.FieldsSeq(list) {
			if n, err := strconv.Atoi(string(word)); err == nil && n > 1 {
				all = append(all, n)
			}
		}
	}
	return all
}

// Of returns the process that has a number now.
func Of(pid int) (Process, bool) { return stat(pid) }

// stat reads what the kernel tells of a process. A zombie is none.
func stat(pid int) (Process, bool) {
	if !own() {
		return Process{}, false
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, false
	}
	return parse(pid, text)
}

// Where proc(5) has the fields, counted from the one after the name.
const (
	fieldState = 0
	fieldGroup = 2
	fieldStart = 19
)

// parse reads the text of /proc/PID/stat. The name in parentheses may itself
// have blanks and parentheses in it.
func parse(pid int, text []byte) (Process, bool) {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return Process{}, false
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) <= fieldStart || fields[fieldState][0] == 'Z' || fields[fieldState][0] == 'X' {
		return Process{}, false
	}
	group, err := strconv.Atoi(string(fields[fieldGroup]))
	if err != nil {
		return Process{}, false
	}
	start, err := strconv.ParseUint(string(fields[fieldStart]), 10, 64)
	if err != nil {
		return Process{}, false
	}
	return Process{PID: pid, Group: group, start: start}, true
}

// Same reports whether the process still is the one that was found.
func (p Process) Same() bool {
	now, ok := stat(p.PID)
	return ok && now.start == p.start
}

// Replaced reports whether another process has the number by now. While any
// process of a group lives, nobody gets the group's number.
func (p Process) Replaced() bool {
	now, ok := stat(p.PID)
	return ok && p.start != 0 && now.start != p.start
}

// Signal sends to the process, and to all of its group if it made that group
// itself: what it starts while it is being ended is in there. A process that is
// gone gets nothing, nor does another that has its number by now.
func (p Process) Signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err == unix.ESRCH {
		return // it is gone
	}
	// The descriptor is one process's for good: if it is the right one after it was
	// opened, the signal goes to the right one.
	if err == nil {
		defer func() { _ = unix.Close(fd) }()
	}
	if !p.Same() {
		return
	}
	if p.Group == p.PID {
		_ = unix.Kill(-p.PID, sig) // the process is there, so its number is the group's
		return
	}
	if err != nil {
		_ = unix.Kill(p.PID, sig) // a kernel before 5.3, or a filter that refuses the call
		return
	}
	_ = unix.PidfdSendSignal(fd, sig, nil, 0) // gone meanwhile
}
