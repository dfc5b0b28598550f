package process

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// family runs a script in a process group of its own, and reads the n process ids that the script
// writes, one in each line.
func family(t *testing.T, n int, script string) (leader int, pids []int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script+"\nwait\nread x")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = in.Close()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for len(pids) < n && lines.Scan() {
		pid, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	if len(pids) != n {
		t.Fatalf("the family is %v, want %d", pids, n)
	}
	return cmd.Process.Pid, pids
}

// await waits until a condition holds.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); !is(); <-look.C {
		if time.Now().After(end) {
			t.Fatalf("it never came true that %s", what)
		}
	}
}

// settled waits until a process meets a condition.
func settled(t *testing.T, pid int, want func(Process, bool) bool) {
	t.Helper()
	await(t, "the process is as wanted", func() bool { return want(FindProcess(pid)) })
}

func leads(p Process, ok bool) bool { return ok && p.Group == p.PID }
func gone(_ Process, ok bool) bool  { return !ok }

// numbers returns the process ids of the found processes.
func numbers(found []Process) map[int]bool {
	all := map[int]bool{}
	for _, p := range found {
		all[p.PID] = true
	}
	return all
}

// outside returns the descendants that one search finds.
func outside(roots []int, group int, since Process) (found []Process) {
	eachOutside(roots, group, since, func(p Process, alive bool) {
		if alive {
			found = append(found, p)
		}
	})
	return found
}

func TestOutsideFindsProcessesOfOtherGroups(t *testing.T) {
	// One process stays in the group, one has its own session, one has its own group, and one is
	// a daemon.
	leader, pids := family(t, 4, `
		sleep 1000 & echo $!
		setsid sleep 1000 & echo $!
		timeout 1000 sleep 1000 & echo $!
		(setsid sh -c 'echo $$; exec sleep 1000' &)`)
	settled(t, pids[1], leads)
	settled(t, pids[2], leads)
	// timeout's own child is in timeout's group.
	await(t, "three are outside", func() bool { return len(outside([]int{leader}, leader, Process{})) >= 3 })
	found := numbers(outside([]int{leader}, leader, Process{}))
	if found[pids[0]] || !found[pids[1]] || !found[pids[2]] || found[pids[3]] {
		t.Errorf("of %v there were found %v; want the second and the third", pids, found)
	}
	if other := outside([]int{leader}, -1, Process{}); len(other) <= len(found) {
		t.Errorf("%d outside of no group, %d outside of the leader's", len(other), len(found))
	}
	if none := outside([]int{1 << 30}, 5, Process{}); none != nil {
		t.Errorf("nobody's descendants are %v", none)
	}
}

// TestOutsideSparesHelpers: a local server that the command has started also serves other commands,
// and a watchdog ends by itself. Both are recognized by their names and arguments.
func TestOutsideSparesHelpers(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"serve", WatchdogArgument} {
		if err := os.WriteFile(name, []byte("echo $$; read x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"zklock", WatchdogName} {
		if err := os.Symlink(shell, name); err != nil {
			t.Fatal(err)
		}
	}
	leader, pids := family(t, 5, `
		mkfifo never
		PATH=.:$PATH
		setsid zklock serve --local /x <never &
		setsid zkl-watchdog __watchdog <never &
		setsid zklock serve --listen :0 <never &
		setsid sh serve --local /x <never &
		setsid sh __watchdog <never &
		exec 3>never`)
	found := numbers(outside([]int{leader}, leader, Process{}))
	if len(found) != 3 {
		t.Errorf("of %v there were found %v; want the three that are no helpers", pids, found)
	}
}

// TestHelpersHaveTheirNames: the arguments of a process with another name are not read, because
// the read can block.
func TestHelpersHaveTheirNames(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("serve", []byte("echo started; read x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, helper := range map[string]bool{"zklock": true, "job": false} {
		if err := os.Symlink(shell, name); err != nil {
			t.Fatal(err)
		}
		cmd := &exec.Cmd{Path: "./" + name, Args: []string{"zklock", "serve", "--local", "/x"}}
		in, failed := cmd.StdinPipe()
		out, err := cmd.StdoutPipe()
		if err := errors.Join(failed, err, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "started\n" {
			t.Errorf("it wrote %q, %v", line, err)
		}
		if is := isHelper(Process{PID: cmd.Process.Pid}, Process{}); is != helper {
			t.Errorf("%s is a helper: %v, want %v", name, is, helper)
		}
		_ = in.Close() // which ends it
		_ = cmd.Wait()
	}
	if name, err := os.ReadFile("/proc/self/comm"); err != nil || strings.TrimSpace(string(name)) != ownName() {
		t.Errorf("this process has the name %q, %v, want %q", name, err, ownName())
	}
}

// TestBlockedReadEndsInTime: a pipe without a writer blocks a read, as the memory of a process
// that hangs does.
func TestBlockedReadEndsInTime(t *testing.T) {
	name := filepath.Join(t.TempDir(), "environ")
	if err := unix.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, wait := range []time.Duration{memoryWait, time.Hour, time.Hour} { // once is enough
		if text, err := readMemory(name, wait); err != errBlocked {
			t.Fatalf("the read returned %q, %v", text, err)
		}
	}
	w, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err == nil {
		err = errors.Join(w.Close(), os.Remove(name), os.WriteFile(name, []byte("A=1\x00"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	await(t, "a later read returns the text", func() bool {
		text, _ := readMemory(name, memoryWait)
		return string(text) == "A=1\x00"
	})
	await(t, "a read of no file finds no process", func() bool {
		_, err := readMemory(name+"-other", memoryWait)
		return err == errNone
	})
}

// TestBlockedArgumentsAreNoHelpers: the arguments of a process with the name of a helper cannot be
// read either.
func TestBlockedArgumentsAreNoHelpers(t *testing.T) {
	dir := t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(dir, "comm"), []byte("exe\n"), 0o600),
		unix.Mkfifo(filepath.Join(dir, "cmdline"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan []byte, 1)
	go func() { ended <- helperArguments(dir) }()
	await(t, "the read ends", func() bool { return len(ended) > 0 })
	if line := <-ended; len(line) > 0 {
		t.Errorf("arguments %q", line)
	}
	w, err := os.OpenFile(filepath.Join(dir, "cmdline"), os.O_WRONLY, 0) // ends the read
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the read has ended", func() bool { return len(memoryReads) == 0 })
}

// TestBlockedReadsAreFew: each read that blocks needs a thread, and a process has only so many. So
// readMemory does not begin another one while many block.
func TestBlockedReadsAreFew(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for n := range maxReads {
		name := filepath.Join(dir, strconv.Itoa(n))
		if err := unix.Mkfifo(name, 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
		if _, err := readMemory(name, memoryWait); err != errBlocked {
			t.Fatalf("read %d: %v", n, err)
		}
	}
	free := filepath.Join(dir, "free")
	if err := os.WriteFile(free, []byte("A=1\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := readMemory(free, time.Hour); err != errBlocked {
		t.Errorf("a further read returned %q, %v", text, err)
	}
	for _, name := range names {
		w, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	await(t, "a read after them returns the text", func() bool {
		text, _ := readMemory(free, memoryWait)
		return string(text) == "A=1\x00"
	})
}

// TestOutsideSparesOlderProcesses: a process that started before the command is not a descendant of
// it, and neither are the children of that process.
func TestOutsideSparesOlderProcesses(t *testing.T) {
	leader, pids := family(t, 2, `setsid sh -c 'sleep 1000 & echo $!; wait' & echo $!`)
	await(t, "two are outside", func() bool { return len(outside([]int{leader}, leader, Process{})) == 2 })
	for _, p := range outside([]int{leader, pids[0], pids[1]}, leader, Process{}) {
		if p.PID == p.Group {
			if found := outside([]int{leader}, leader, p); len(found) != 2 {
				t.Errorf("since the process itself there were found %v, want two", found)
			}
			p.start++
			if found := outside([]int{leader}, leader, p); found != nil {
				t.Errorf("of what is older there were found %v", found)
			}
		}
	}
}

// TestProcOfOtherNamespaceIsNotRead: if /proc shows the processes of another PID namespace, its
// numbers are those of other processes.
func TestProcOfOtherNamespaceIsNotRead(t *testing.T) {
	if os.Getenv("KIN_FOREIGN") != "" {
		_, self := FindProcess(os.Getpid())
		if ListsProcesses() || self || Children(os.Getpid()) != nil || outside([]int{1}, -1, Process{}) != nil {
			t.Error("the processes of another namespace are taken for those of this one")
		}
		return
	}
	if !ListsProcesses() {
		t.Error("children cannot be found here")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestProcOfOtherNamespaceIsNotRead$", "-test.count=1")
	cmd.Env = append(os.Environ(), "KIN_FOREIGN=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
	}
	var exit *exec.ExitError
	if out, err := cmd.CombinedOutput(); errors.As(err, &exit) {
		t.Errorf("%v\n%s", err, out)
	} else if err != nil {
		t.Skip("no PID namespace can be had:", err)
	}
}

// TestSignalWithoutDescriptor: a filter of system calls that does not know pidfd_open refuses it
// with EPERM. The signal must still arrive.
func TestSignalWithoutDescriptor(t *testing.T) {
	_, pids := family(t, 1, `sleep 1000 & echo $!`)
	p, ok := FindProcess(pids[0])
	refused := make(chan error)
	go func() { // ends, and with it its thread, which alone has the filter
		runtime.LockOSThread()
		program := []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the call's number
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_PIDFD_OPEN},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		}
		filter := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
		err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		if err == nil {
			err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&filter)), 0, 0)
		}
		if err == nil {
			p.Signal(unix.SIGKILL)
		}
		refused <- err
	}()
	if err := <-refused; err != nil {
		t.Skip("no filter can be had:", err)
	}
	if !ok {
		t.Fatal("there is no process")
	}
	settled(t, p.PID, gone)
}

// TestSetRemovesHelpers: between fork and exec, a helper looks like its parent. A helper that was
// found then is removed from the set after its exec.
func TestSetRemovesHelpers(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := errors.Join(os.WriteFile(WatchdogArgument, []byte("read x"), 0o600), os.Symlink(shell, WatchdogName)); err != nil {
		t.Fatal(err)
	}
	leader, _ := family(t, 1, `
		mkfifo now never
		PATH=.:$PATH
		setsid sh -c 'echo $$; read x <now; exec zkl-watchdog __watchdog <never' & exec 3>never`)
	var s Descendants
	await(t, "one is found", func() bool { s.Find(leader, leader); return s.Len() == 1 })
	if err := os.WriteFile("now", []byte("\n"), 0); err != nil {
		t.Fatal(err)
	}
	await(t, "the helper is spared", func() bool { s.Find(leader, leader); return s.Len() == 0 })
}

func TestSetRemembersOrphans(t *testing.T) {
	leader, pids := family(t, 2, `sh -c 'setsid sleep 1000 & echo $!; wait' & echo $!`)
	var orphan, parent int
	settled(t, pids[0], func(p Process, ok bool) bool { return ok })
	for _, pid := range pids { // the two lines come in any order
		if slices.Contains(Children(leader), pid) {
			parent = pid
		} else {
			orphan = pid
		}
	}
	settled(t, orphan, leads)
	var s Descendants
	s.Find(leader, leader)
	if s.Len() != 1 {
		t.Fatalf("%d found, want 1", s.Len())
	}
	if err := syscall.Kill(parent, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	settled(t, parent, gone)
	if left := outside([]int{leader}, leader, Process{}); left != nil {
		t.Fatalf("the orphan is still listed: %v", left)
	}
	s.Find(leader, leader)
	s.Kill()
	settled(t, orphan, gone)
	s.Find(leader, leader)
	if s.Len() != 0 {
		t.Errorf("%d remembered who are gone", s.Len())
	}
}

// TestKillComesBeforeTheListOfSessions: to know whether a session without a leader has older
// processes takes as long as a list of all processes. All known processes get KILL before that, and
// the groups of such sessions after it.
func TestKillComesBeforeTheListOfSessions(t *testing.T) {
	const attempts = 5 // on a busy machine, a process can end long after its KILL
	for range attempts {
		if knownEndFirst(t) {
			return
		}
	}
	t.Error("processes found only through their group ended before known ones")
}

// knownEndFirst reports whether Kill ends the known processes of several sessions without a leader
// first, and then the others of their groups.
func knownEndFirst(t *testing.T) bool {
	const sessions = 8
	self, ok := FindProcess(os.Getpid())
	if !ok {
		t.Fatal("this process is not found")
	}
	s := Descendants{Command: self}
	ends, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ends)
	others := map[int32]int{} // by descriptor
	for range sessions {
		_, pids := family(t, 3, `setsid sh -c '
			(sleep 1000 & echo $!; exec sleep 1000) & echo $!
			sleep 1000 & echo $!' &`)
		first, _ := FindProcess(pids[0])
		settled(t, first.session, gone)
		at := slices.IndexFunc(pids, func(pid int) bool { return len(Children(pid)) > 0 })
		if at < 0 {
			t.Fatalf("none of %v has a child", pids)
		}
		known := Children(pids[at])[0]
		s.Find(pids[at], 0)
		for _, pid := range pids {
			fd, err := unix.PidfdOpen(pid, 0)
			if err == unix.ENOSYS || err == unix.EPERM {
				t.Skip("SKIPPED: no descriptors of processes here: ", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(fd)
			event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
			if err := unix.EpollCtl(ends, unix.EPOLL_CTL_ADD, fd, &event); err != nil {
				t.Fatal(err)
			}
			if pid != known {
				others[int32(fd)] = pid
			}
		}
	}
	if s.Len() != sessions {
		t.Fatalf("%d processes are known, want %d", s.Len(), sessions)
	}
	s.Kill()
	for _, pid := range others {
		settled(t, pid, gone)
	}
	var events [3 * sessions]unix.EpollEvent // in the order in which the processes ended
	n, err := unix.EpollWait(ends, events[:], 0)
	if err != nil || n < len(events) {
		t.Fatalf("%d processes ended: %v", n, err)
	}
	return !slices.ContainsFunc(events[:sessions], func(e unix.EpollEvent) bool { return others[e.Fd] != 0 })
}

// TestSignalSparesProcessWithReusedPID checks that another process that now has the number of the
// found one gets no signal.
func TestSignalSparesProcessWithReusedPID(t *testing.T) {
	_, pids := family(t, 1, `sleep 1000 & echo $!`)
	p, ok := FindProcess(pids[0])
	if !ok || !p.Same() {
		t.Fatalf("%+v, %v", p, ok)
	}
	earlier := p
	earlier.start--
	if p.Replaced() || !earlier.Replaced() || (Process{PID: p.PID}).Replaced() {
		t.Error("who has a number is not told apart from who had it")
	}
	if earlier.Same() {
		t.Error("a process is the same as one that began before it")
	}
	earlier.Signal(unix.SIGKILL)
	if !p.Same() {
		t.Fatal("a signal for an earlier process reached it")
	}
	p.Signal(unix.SIGKILL)
	settled(t, p.PID, gone)
	p.Signal(unix.SIGKILL) // no process has this number
	if p.Replaced() {
		t.Error("nobody has replaced it")
	}
}

// TestSignalOfGroupLeaderReachesItsGroup checks that the group ends together with its leader.
func TestSignalOfGroupLeaderReachesItsGroup(t *testing.T) {
	leader, pids := family(t, 2, `setsid sh -c 'sleep 1000 & echo $!; wait' & echo $!`)
	for _, p := range outside([]int{leader}, leader, Process{}) {
		if p.PID == p.Group {
			p.Signal(unix.SIGKILL)
		}
	}
	settled(t, pids[0], gone)
	settled(t, pids[1], gone)
}

func TestParseStat(t *testing.T) {
	rest := " S 1 77 9" + strings.Repeat(" 0", 15) + " 4711 0"
	tests := []struct {
		text      string
		want      Process
		alive, ok bool
	}{
		{"5 (sleep)" + rest, Process{5, 77, 9, 4711}, true, true},
		{"5 (a) Z 1 (b) )" + rest, Process{5, 77, 9, 4711}, true, true},
		{"5 (sleep)" + strings.Replace(rest, "S", "Z", 1), Process{5, 77, 9, 4711}, false, true},
		{"5 (sleep) S 1 77", Process{}, false, false},
		{"5 (sleep)" + strings.Replace(rest, "77", "x", 1), Process{}, false, false},
		{"5 (sleep)" + strings.Replace(rest, "4711", "-1", 1), Process{}, false, false},
		{"5 sleep", Process{}, false, false},
		{"", Process{}, false, false},
	}
	for _, tt := range tests {
		if got, alive, ok := parseStat(5, []byte(tt.text)); got != tt.want || alive != tt.alive || ok != tt.ok {
			t.Errorf("%q: %+v, %v, %v; want %+v, %v, %v", tt.text, got, alive, ok, tt.want, tt.alive, tt.ok)
		}
	}
	self, ok := FindProcess(os.Getpid())
	if !ok || self.start == 0 || self.Group != syscall.Getpgrp() {
		t.Errorf("this process is %+v, %v", self, ok)
	}
}

// TestTerminateEndsWhenKillIsDue: if there are too many processes, the rest get KILL
// without a TERM, instead of a late KILL.
func TestTerminateEndsWhenKillIsDue(t *testing.T) {
	leader, pids := family(t, 1, `setsid sleep 1000 & echo $!`)
	settled(t, pids[0], leads)
	var s Descendants
	await(t, "the process is found", func() bool { s.Find(leader, leader); return s.Len() == 1 })
	s.Terminate(BootTime())
	for p, terminated := range s.known {
		if terminated {
			t.Errorf("%+v got TERM when KILL was due", p)
		}
	}
	s.Terminate(BootTime() + patience)
	settled(t, pids[0], gone)
}
