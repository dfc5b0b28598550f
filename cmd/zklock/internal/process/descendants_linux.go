package process

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

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

// errNone means that /proc shows no such process: it has ended, or it is hidden.
var errNone = errors.New("no such process")

// readProc reads a file of a process. If there is no such process, the error is errNone. Any
// other error says nothing about the process: for example, this process may open no more files.
func readProc(name string) ([]byte, error) {
	text, err := os.ReadFile(name)
	return text, procError(err)
}

// procError returns errNone for the errors of /proc that mean errNone, and other errors
// unchanged.
func procError(err error) error {
	for _, none := range []error{unix.ENOENT, unix.ESRCH, unix.EACCES, unix.EPERM} {
		if errors.Is(err, none) {
			return errNone
		}
	}
	return err
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
// exist. They may also exist if err is not nil: then /proc could not be read.
func eachOutside(roots []int, group int, since Process, visit func(p Process, alive bool)) (complete bool, err error) {
	complete = true
	queue, seen := slices.Clone(roots), map[int]bool{}
	for _, pid := range roots {
		seen[pid] = true
	}
	for i := 0; i < len(queue) && i < len(roots)+maxFound; i++ {
		children, failed := listChildren(queue[i])
		err = cmp.Or(err, failed)
		for _, child := range slices.Backward(children) {
			if seen[child] {
				continue
			}
			seen[child] = true
			p, alive, failed := statOrEnded(child)
			if failed != errNone {
				err = cmp.Or(err, failed)
			}
			complete = complete && alive
			outside := failed == nil && p.Group != group
			if outside && (p.start < since.start || alive && isHelper(p, since)) {
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
	return complete && err == nil && len(queue) <= len(roots)+maxFound, err
}

// eachHeir calls visit for each process that has all variables of env, is not in the process
// group, and is not older than the process since, as soon as it finds it. It omits zklock's own
// helpers. It does not find a process that has overwritten its environment, nor those of other
// users, who could make a read of their environment wait.
//
// It visits the newest process first: a process that forks and exits again and again is usually
// the newest one. complete is false if a process ended during the search, and may have started
// another one, or if a process has no environment, as during exec.
func eachHeir(env []string, group int, since Process, visit func(p Process)) (complete bool, err error) {
	if len(env) == 0 || !procMatches() {
		return true, nil
	}
	all, err := listAll()
	complete = true
	for _, pid := range newestFirst(all, lastNumber()) {
		if pid == os.Getpid() {
			continue
		}
		p, alive, failed := statOrEnded(pid)
		if failed == nil && (p.start < since.start || p.Group == group) {
			continue
		}
		dir := "/proc/" + strconv.Itoa(pid)
		var info unix.Stat_t
		if unix.Stat(dir, &info) == nil && int(info.Uid) != os.Geteuid() {
			continue
		}
		has, unread := readMemory(dir+"/environ", memoryWait)
		err = cmp.Or(err, unlessNone(failed), unlessNone(unread))
		complete = complete && failed == nil && alive && len(has) > 0
		if hasAll(has, env) && !isHelper(p, since) {
			visit(p)
		}
	}
	return complete && err == nil, err
}

// newestFirst sorts process numbers by the age of the processes. last is the number that the
// kernel has assigned last. It assigns them in ascending order, and after the largest one begins
// again with small ones. So a number above last is older than all others: as unsigned, its
// difference to last is larger.
func newestFirst(all []int, last int) []int {
	slices.SortFunc(all, func(a, b int) int { return cmp.Compare(uint(last-a), uint(last-b)) })
	return all
}

// lastNumber returns the number that the kernel has assigned last in this PID namespace. If it is
// unknown, lastNumber returns the largest int.
func lastNumber() int {
	load, err := os.ReadFile("/proc/loadavg")
	fields := bytes.Fields(load)
	if err != nil || len(fields) == 0 {
		return math.MaxInt
	}
	last, err := strconv.Atoi(string(fields[len(fields)-1]))
	if err != nil {
		return math.MaxInt
	}
	return last
}

// listAll returns the numbers of all processes.
func listAll() (all []int, err error) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	for _, name := range names {
		if pid, failed := strconv.Atoi(name); failed == nil {
			all = append(all, pid)
		}
	}
	return all, err
}

// olderSessions returns the sessions of the processes that started before the process since.
func olderSessions(since Process) (map[int]bool, error) {
	all, err := listAll()
	sessions := map[int]bool{}
	for _, pid := range all {
		p, alive, failed := statOrEnded(pid)
		err = cmp.Or(err, unlessNone(failed))
		if alive && p.start < since.start {
			sessions[p.session] = true
		}
	}
	return sessions, err
}

// hasAll reports whether an environment, as /proc shows it, has all of these variables. It
// allocates nothing: a hostile environment may have a million variables.
func hasAll(environ []byte, env []string) bool {
	return !slices.ContainsFunc(env, func(v string) bool {
		for has := range bytes.SplitSeq(environ, []byte{0}) {
			if string(has) == v {
				return false
			}
		}
		return true
	})
}

// isHelper reports whether a process is a watchdog of zklock, which ends by itself, a user's
// local server, which other commands also use, or the hook of the wrapper. The wrapper starts its
// hook before the command since: a newer hook belongs to another wrapper, which the command has
// started.
func isHelper(p, since Process) bool {
	args := helperArguments(procDir(p.PID))
	return begins(args, "zklock", HookArgument) && (since.start == 0 || p.start <= since.start) ||
		begins(args, WatchdogName, WatchdogArgument) || begins(args, "zklock", "serve", "--local")
}

// isHook reports whether a process runs, or waits to run, a hook of zklock.
func isHook(pid int) bool { return begins(helperArguments(procDir(pid)), "zklock", HookArgument) }

// procDir returns the directory of a process in /proc.
func procDir(pid int) string { return "/proc/" + strconv.Itoa(pid) }

// begins reports whether a command line, as /proc shows it, begins with a name and arguments.
// Other programs can have the same arguments, such as "serve --local".
func begins(line []byte, args ...string) bool {
	return bytes.HasPrefix(line, []byte(strings.Join(args, "\x00")+"\x00"))
}

// helperArguments returns the command line of a process, given by its directory in /proc, that has
// the name of a helper, and nothing for other processes. The arguments are in the memory of the
// process, and the read can block: see [readMemory]. The process then does not count as a helper.
func helperArguments(dir string) []byte {
	name, err := os.ReadFile(dir + "/comm")
	if err != nil || !isHelperName(strings.TrimSpace(string(name))) {
		return nil
	}
	line, _ := readMemory(dir+"/cmdline", argumentsWait) // of a process that has ended, it has nothing
	return line
}

// isHelperName reports whether a helper can have this name, as comm in /proc shows it: the name
// of the file that it runs, or WatchdogName.
func isHelperName(name string) bool {
	return strings.HasPrefix(name, "zkl") || name == path.Base(selfExe) || name == ownName()
}

// ownName returns the name of the processes that run the file of this program.
var ownName = sync.OnceValue(func() string {
	const longest = 15 // bytes that the kernel keeps
	exe, _ := os.Executable()
	name := path.Base(exe)
	return name[:min(len(name), longest)]
})

// memoryWait limits the wait for a part of the memory of a process. A read takes microseconds.
// argumentsWait is longer, because a helper whose arguments are not read in time gets KILL.
const (
	memoryWait    = 10 * time.Millisecond
	argumentsWait = time.Second
)

// errBlocked means that a part of the memory of a process cannot be read now.
var errBlocked = errors.New("the memory of a process cannot be read now")

// memoryReads has an element for each read of memory that has not ended. Each has a thread: see
// [ReserveThreads].
var memoryReads = make(chan struct{}, maxReads)

// blockedReads has a channel for each read that readMemory has given up, by the name of the file.
// It is closed once the read ends.
var blockedReads sync.Map

// readMemory is readProc for a file that shows the memory of a process, such as environ. The
// kernel blocks the read while a thread of the process changes its memory map. If that thread
// waits for a file system, for example in mmap of a file on a hung NFS server, the read takes as
// long. The other processes must get KILL in time, so readMemory returns errBlocked after wait,
// and from then on at once until that read ends, which ends its goroutine. It also returns
// errBlocked while maxReads other reads block.
func readMemory(name string, wait time.Duration) ([]byte, error) {
	if earlier, ok := blockedReads.Load(name); ok {
		select {
		case <-earlier.(chan struct{}):
			blockedReads.Delete(name) // the number can be that of another process by now
		default:
			return nil, errBlocked
		}
	}
	select {
	case memoryReads <- struct{}{}:
	default:
		return nil, errBlocked
	}
	var text []byte
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		text, err = readProc(name)
		<-memoryReads
	}()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-done:
		return text, err
	case <-timer.C:
		blockedReads.Store(name, done)
		return nil, errBlocked
	}
}

// Children returns the processes that any thread of pid has started and that have not been
// reaped.
func Children(pid int) []int {
	all, _ := listChildren(pid) // an error makes the list shorter
	return all
}

// listChildren returns Children, and an error if /proc could not be read.
func listChildren(pid int) (all []int, err error) {
	if !procMatches() {
		return nil, nil
	}
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	var info unix.Stat_t
	if err := procError(unix.Stat(dir, &info)); err != nil {
		return nil, unlessNone(err)
	}
	if info.Nlink == 3 { // 2 and the number of threads; to list them is slow
		return appendChildren(nil, dir+strconv.Itoa(pid))
	}
	threads, err := os.ReadDir(dir)
	err = unlessNone(procError(err))
	for _, thread := range threads {
		more, failed := appendChildren(all, dir+thread.Name())
		all, err = more, cmp.Or(err, failed)
	}
	return all, err
}

// unlessNone returns nil for errNone, and other errors unchanged.
func unlessNone(err error) error {
	if err == errNone {
		return nil
	}
	return err
}

// appendChildren appends the children of one thread, given by its directory in /proc.
func appendChildren(all []int, thread string) ([]int, error) {
	list, err := readProc(thread + "/children")
	for word := range bytes.FieldsSeq(list) {
		if n, err := strconv.Atoi(string(word)); err == nil && n > 1 {
			all = append(all, n)
		}
	}
	return all, unlessNone(err) // the thread may have ended
}

// FindProcess returns the process that has this number now. It does not find processes that
// have ended and were not reaped.
func FindProcess(pid int) (Process, bool) {
	p, alive, err := statOrEnded(pid)
	if !alive || err != nil {
		return Process{}, false
	}
	return p, true
}

// statOrEnded reads /proc/PID/stat, also of a process that has ended and was not reaped. The
// error is errNone if there is no such process.
func statOrEnded(pid int) (p Process, alive bool, err error) {
	if !procMatches() {
		return Process{}, false, errNone
	}
	text, err := readProc("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return Process{}, false, err
	}
	p, alive, ok := parseStat(pid, text)
	if !ok {
		return Process{}, false, errNone
	}
	return p, alive, nil
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

// Same reports whether the process still runs. It is false if /proc cannot be read.
func (p Process) Same() bool {
	now, ok := FindProcess(p.PID)
	return ok && now.start == p.start
}

// ended reports whether the process has ended. If /proc cannot be read, it has not, as far as
// is known, and the error says why.
func (p Process) ended() (bool, error) {
	now, alive, err := statOrEnded(p.PID)
	if err != nil && err != errNone {
		return false, err
	}
	return err != nil || !alive || now.start != p.start, nil
}

// unreaped reports whether the process still runs, or has ended and was not reaped, in the group
// and the session in which it was found.
func (p Process) unreaped() bool {
	now, _, err := statOrEnded(p.PID)
	return err == nil && now == p
}

// Replaced reports whether another process has the number now. While any process of a
// group lives, no other process gets the number of the group.
func (p Process) Replaced() bool {
	now, ok := FindProcess(p.PID)
	return ok && p.start != 0 && now.start != p.start
}

// Signal sends a signal to the process, or to its whole group if it leads the group: the
// group includes the processes that it starts meanwhile. It reports whether it has sent the
// signal to a group. Another process that has its number now does not get the signal.
func (p Process) Signal(sig unix.Signal) (group bool) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err == unix.ESRCH {
		return false // it has ended
	}
	// The descriptor always means the same process. If the number means the right process
	// after the open, so does the descriptor.
	if err == nil {
		defer func() { _ = unix.Close(fd) }()
	}
	switch {
	case !p.Same():
	case p.Group == p.PID:
		return unix.Kill(-p.PID, sig) == nil // the leader exists, so the number is still that of its group
	case err != nil:
		_ = unix.Kill(p.PID, sig) // a kernel before 5.3, or a seccomp filter
	default:
		_ = unix.PidfdSendSignal(fd, sig, nil, 0) // it may have ended
	}
	return false
}
