package process

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

// maxFound limits how many processes one search visits, in addition to the roots.
const maxFound = 4096

// procMatches reports whether /proc shows the process ids of this PID namespace. If the
// namespace has no /proc of its own, /proc shows those of another namespace, where other
// processes have the same numbers.
var procMatches = sync.OnceValue(func() bool {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		// NSpid has one number per namespace, from that of /proc to that of the process.
		if ids, found := strings.CutPrefix(line, "NSpid:"); found {
			return strings.TrimSpace(ids) == strconv.Itoa(os.Getpid())
		}
	}
	self, err := os.Readlink("/proc/self") // a kernel without namespaces
	return err == nil && self == strconv.Itoa(os.Getpid())
})

// ListsProcesses reports whether the children of a process can be found here.
func ListsProcesses() bool {
	_, err := os.Stat("/proc/thread-self/children")
	return err == nil && procMatches()
}

// eachOutside calls visit for each descendant of the roots that is not in the process group,
// as soon as it finds it, and for those that have ended and were not reaped. It finds none if
// the kernel lists no children. It omits zklock's own helpers, and processes that started
// before the process since: a script that became the wrapper by exec may have started them,
// so they are not descendants of the command.
//
// It reads the children of each process instead of all of /proc, which would take too long
// on a large machine shortly before a deadline. It visits the last child of a process first:
// a process that forks and exits again and again is the last one.
//
// A process that ends during the search leaves its children to another one, whose children
// were read before. complete is false if that can have happened: then more processes may
// exist.
func eachOutside(roots []int, group int, since Process, visit func(p Process, alive bool)) (complete bool) {
	complete = true
	queue, seen := slices.Clone(roots), map[int]bool{}
	for _, pid := range roots {
		seen[pid] = true
	}
	for i := 0; i < len(queue) && i < len(roots)+maxFound; i++ {
		for _, child := range slices.Backward(Children(queue[i])) {
			if seen[child] {
				continue
			}
			seen[child] = true
			p, alive, ok := statOrEnded(child)
			complete = complete && alive
			outside := ok && p.Group != group
			if outside && (p.start < since.start || alive && isHelper(child)) {
				continue
			}
			if outside {
				visit(p, alive)
			}
			if alive { // otherwise it has no children
				queue = append(queue, child)
			}
		}
	}
	return complete && len(queue) <= len(roots)+maxFound
}

// isHelper reports whether a process is a watchdog or hook of zklock, which ends by
// itself, or a user's local server, which other commands also use.
func isHelper(pid int) bool {
	line, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	if err != nil {
		return false
	}
	args := bytes.SplitN(line, []byte{0}, 4)
	return len(args) > 1 && (string(args[1]) == WatchdogArgument || string(args[1]) == HookArgument) ||
		len(args) > 2 && string(args[1]) == "serve" && string(args[2]) == "--local"
}

// Children returns the processes that any thread of pid has started and that have not been
// reaped.
func Children(pid int) []int {
	if !procMatches() {
		return nil
	}
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	var info unix.Stat_t
	if err := unix.Stat(dir, &info); err != nil {
		return nil
	}
	if info.Nlink == 3 { // 2 and the number of threads; to list them is slow
		return appendChildren(nil, dir+strconv.Itoa(pid))
	}
	threads, err := filepath.Glob(dir + "*")
	if err != nil {
		return nil
	}
	var all []int
	for _, thread := range threads {
		all = appendChildren(all, thread)
	}
	return all
}

// appendChildren appends the children of one thread, given by its directory in /proc.
func appendChildren(all []int, thread string) []int {
	list, err := os.ReadFile(thread + "/children")
	if err != nil {
		return all // the thread has ended
	}
	for word := range bytes.FieldsSeq(list) {
		if n, err := strconv.Atoi(string(word)); err == nil && n > 1 {
			all = append(all, n)
		}
	}
	return all
}

// FindProcess returns the process that has this number now.
func FindProcess(pid int) (Process, bool) { return stat(pid) }

// stat reads /proc/PID/stat. It does not find processes that have ended and were not reaped.
func stat(pid int) (Process, bool) {
	p, alive, _ := statOrEnded(pid)
	if !alive {
		return Process{}, false
	}
	return p, true
}

// statOrEnded is stat that also finds processes that have ended and were not reaped.
func statOrEnded(pid int) (p Process, alive, ok bool) {
	if !procMatches() {
		return Process{}, false, false
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, false, false
	}
	return parseStat(pid, text)
}

// Indexes of the fields in /proc/PID/stat, counted from the field after the name.
const (
	fieldState   = 0
	fieldGroup   = 2
	fieldSession = 3
	fieldThreads = 17
	fieldStart   = 19
)

// parseStat parses the text of /proc/PID/stat. The name in parentheses can itself contain
// spaces and parentheses. alive is false if the process has ended and was not reaped.
func parseStat(pid int, text []byte) (p Process, alive, ok bool) {
	end := bytes.LastIndexByte(text, ')')
	if end < 0 {
		return Process{}, false, false
	}
	fields := bytes.Fields(text[end+1:])
	if len(fields) <= fieldStart || fields[fieldState][0] == 'X' {
		return Process{}, false, false
	}
	// The state is that of the first thread. If that thread has ended and others run, the
	// state is Z too.
	alive = fields[fieldState][0] != 'Z' || len(fields[fieldThreads]) > 1 || fields[fieldThreads][0] > '1'
	group, err := strconv.Atoi(string(fields[fieldGroup]))
	if err != nil {
		return Process{}, false, false
	}
	session, err := strconv.Atoi(string(fields[fieldSession]))
	if err != nil {
		return Process{}, false, false
	}
	start, err := strconv.ParseUint(string(fields[fieldStart]), 10, 64)
	if err != nil {
		return Process{}, false, false
	}
	return Process{PID: pid, Group: group, session: session, start: start}, alive, true
}

// Same reports whether the process still runs.
func (p Process) Same() bool {
	now, ok := stat(p.PID)
	return ok && now.start == p.start
}

// Replaced reports whether another process has the number now. While any process of a
// group lives, no other process gets the number of the group.
func (p Process) Replaced() bool {
	now, ok := stat(p.PID)
	return ok && p.start != 0 && now.start != p.start
}

// Signal sends a signal to the process, or to its whole group if it leads the group: the
// group includes the processes that it starts meanwhile. Another process that has its
// number now does not get the signal.
func (p Process) Signal(sig unix.Signal) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err == unix.ESRCH {
		return // it has ended
	}
	// The descriptor always means the same process. If the number means the right process
	// after the open, so does the descriptor.
	if err == nil {
		defer func() { _ = unix.Close(fd) }()
	}
	if !p.Same() {
		return
	}
	if p.Group == p.PID {
		_ = unix.Kill(-p.PID, sig) // the leader exists, so the number is still that of its group
		return
	}
	if err != nil {
		_ = unix.Kill(p.PID, sig) // a kernel before 5.3, or a seccomp filter
		return
	}
	_ = unix.PidfdSendSignal(fd, sig, nil, 0) // it may have ended
}
