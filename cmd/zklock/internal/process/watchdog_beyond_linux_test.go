package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// startGroup starts a script in a process group of its own, and returns after the script has
// written n lines "up". The file ends when the last of its processes has ended.
func startGroup(t *testing.T, env []string, n int, script string, args ...string) (*exec.Cmd, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	cmd := exec.Command("sh", append([]string{"-c", script}, args...)...)
	cmd.Env = env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	lines := make([]byte, n*len("up\n"))
	if _, err := io.ReadFull(r, lines); err != nil || string(lines) != strings.Repeat("up\n", n) {
		t.Fatalf("the command said %q, %v", lines, err)
	}
	return cmd, r
}

// TestKillsBeyondTheGroup checks that the watchdog kills the processes that the command
// started outside its group, also if the command died before the watchdog looked.
func TestKillsBeyondTheGroup(t *testing.T) {
	for _, name := range []string{"at the moment", "at the end"} {
		cmd, r := startGroup(t, nil, 2, "setsid sh -c 'echo up; sleep 1000' & setsid sh -c 'echo up; sleep 1000'; true")
		g, err := StartWatchdog(os.Args[0])
		if err != nil {
			t.Fatal(err)
		}
		told := errors.Join(g.Watch(cmd.Process.Pid, nil), g.Until(BootTime()+time.Hour))
		switch name {
		case "at the moment":
			told = errors.Join(told, g.Until(BootTime()+50*time.Millisecond))
		case "at the end":
			// The command dies before the end of the pipe, as by its parent-death signal.
			empty(t, g)
			told = errors.Join(told, cmd.Process.Kill(), g.pipe.Close())
		}
		if told != nil {
			t.Fatal(told)
		}
		_ = cmd.Wait()
		if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if n, err := r.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("%s: a process is left: read %d, %v", name, n, err)
		}
		if name == "at the end" {
			g.Kill() // it searches until its parent ends, which is this process
		}
		awaitEnd(t, "the watchdog", g.Died())
		g.Bye()
	}
}

// TestKillsForkingProcessesOfAStoppedWrapper checks that the watchdog kills processes that
// fork and exit again and again if the wrapper, which adopts them, does not reap them.
func TestKillsForkingProcessesOfAStoppedWrapper(t *testing.T) {
	if !adoptOrphans() {
		t.Skip("this process cannot adopt orphans")
	}
	t.Cleanup(func() {
		for _, pid := range Children(os.Getpid()) {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // fails if it still runs
		}
	})
	// The script uses exec, because a shell limits the depth of recursion.
	script := filepath.Join(t.TempDir(), "fork")
	if err := os.WriteFile(script, []byte(`[ $1 -lt 100000 ] && sh "$0" $(($1+1)) & exit 0`), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, r := startGroup(t, nil, 1, `(setsid sh -c 'echo up; exec sleep 1000' &); setsid sh "$0" 0 & exec sleep 1000`, script)
	g, err := StartWatchdog(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	told := errors.Join(g.Watch(cmd.Process.Pid, nil), g.Until(BootTime()+time.Hour))
	await(t, "many have ended", func() bool { return len(Children(os.Getpid())) > 1000 })
	if told = errors.Join(told, g.Until(BootTime())); told != nil {
		t.Fatal(told)
	}
	awaitEnd(t, "the watchdog", g.Died())
	_ = cmd.Wait()
	allEnded(t, r)
	g.Bye()
}

// TestKillsForkingProcessesOfADeadWrapper checks that the watchdog kills processes that fork and
// exit again and again, each in a session of its own, after the wrapper has died: nothing that
// it knows adopts them. The same applies to an orphan that nothing found before. It kills no
// process of another command.
func TestKillsForkingProcessesOfADeadWrapper(t *testing.T) {
	if !ListsProcesses() {
		t.Skip("/proc does not show this PID namespace")
	}
	script := filepath.Join(t.TempDir(), "fork")
	if err := os.WriteFile(script, []byte(`[ $1 -lt 1000000 ] && setsid sh "$0" $(($1+1)) & exit 0`), 0o600); err != nil {
		t.Fatal(err)
	}
	start := func(token string) (*exec.Cmd, *os.File) {
		return startGroup(t, append(os.Environ(), EnvSession+"=0x5", EnvToken+"="+token), 1,
			`(setsid sh -c 'echo up; exec sleep 1000' &); setsid sh "$0" 0 & exec sleep 1000`, script)
	}
	first, ends := start("77")
	other, _ := start("777")
	before, _ := FindProcess(other.Process.Pid)
	end := func(cmd *exec.Cmd, token string) {
		w, c := victims{}, watchdogCore{group: cmd.Process.Pid, env: []string{EnvSession + "=0x5", EnvToken + "=" + token}}
		c.until = 5
		w.update(&c)
		w.kill(&c)
		_ = cmd.Wait()
	}
	end(first, "77")
	if err := ends.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if n, err := ends.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("a process is left: read %d, %v", n, err)
	}
	if !before.Same() {
		t.Error("the other command was killed")
	}
	end(other, "777")
}

// TestKillsHeirsOfADyingWrapper checks that the watchdog searches until the wrapper has ended. When
// a process dies, the kernel closes its files before its children get another parent. So the
// watchdog can find the pipe closed while the wrapper is still its parent.
func TestKillsHeirsOfADyingWrapper(t *testing.T) {
	if !ListsProcesses() {
		t.Skip("/proc does not show this PID namespace")
	}
	leader := newVictim(t, nil)
	token := strconv.Itoa(leader.group())
	heir := newVictim(t, append(os.Environ(), EnvToken+"="+token))
	wrapper := exec.Command(os.Args[0])
	wrapper.Env = append(os.Environ(), "WRAP_GROUP="+token)
	wrapper.Stdout = os.Stderr
	stdin, err := wrapper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := wrapper.Start(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, "the leader", leader.ended)
	if err := errors.Join(stdin.Close(), wrapper.Wait()); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, "the heir", heir.ended)
}

// TestKillsForFirstProcessOfNamespace checks that the watchdog kills the processes of a stopped
// wrapper also if the wrapper is process 1 of a PID namespace, as in a container that runs only zklock.
func TestKillsForFirstProcessOfNamespace(t *testing.T) {
	inNamespace(t, "TestKillsForkingProcessesOfAStoppedWrapper")
}

// TestVisitsNewestHeirFirst checks that the search begins with the newest process, also if the
// kernel has begun again with small numbers. Otherwise a process that forks and exits again and
// again would have ended when the search gets to it.
func TestVisitsNewestHeirFirst(t *testing.T) {
	const last = "/proc/sys/kernel/ns_last_pid"
	if _, err := os.Stat(last); err != nil {
		t.Skip("this kernel does not let a test choose process numbers: ", err)
	}
	if os.Getpid() != 1 {
		inNamespace(t, "TestVisitsNewestHeirFirst")
		return
	}
	env := []string{EnvSession + "=0x5", EnvToken + "=78"}
	var started []int
	for _, number := range []string{"20000", "20100", "1000", "1100"} {
		if err := os.WriteFile(last, []byte(number), 0); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sleep", "1000")
		cmd.Env = append(os.Environ(), env...)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		started = append(started, cmd.Process.Pid)
		await(t, "the process has an environment", func() bool {
			environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid))
			return err == nil && len(environ) > 0
		})
	}
	var visited []int
	if _, err := eachHeir(env, os.Getpid(), Process{}, func(p Process) { visited = append(visited, p.PID) }); err != nil {
		t.Fatal(err)
	}
	if slices.Reverse(started); !slices.Equal(visited, started) {
		t.Errorf("visited %v, want the newest first: %v", visited, started)
	}
}

// inNamespace runs a test in process 1 of a PID namespace that has its own /proc.
func inNamespace(t *testing.T, test string) {
	t.Helper()
	cmd := exec.Command("sh", "-c", `mount --make-rprivate / && mount -t proc proc /proc || exit 77
		exec "$0" -test.run="^$1\$" -test.count=1`, os.Args[0], test)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() == 77) {
		t.Skipf("no PID namespace with its own /proc can be had: %v\n%s", err, out)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// empty waits until the watchdog has handled all messages: the pipe is empty, and then one of its
// threads waits in poll.
func empty(t *testing.T, g *Watchdog) {
	t.Helper()
	conn, err := g.pipe.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the pipe is read", func() bool {
		unread := -1
		if err := conn.Control(func(fd uintptr) { unread, _ = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil {
			t.Fatal(err)
		}
		return unread == 0
	})
	poll := fmt.Sprintf("%d ", unix.SYS_PPOLL) // which unix.Poll calls
	await(t, "the watchdog polls", func() bool {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", g.proc.Pid))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.HasPrefix(string(text), poll)
		})
	})
}

// TestWatchdogHasItsOwnName: a signal to all processes with the wrapper's name, as by pkill, does
// not end the watchdog.
func TestWatchdogHasItsOwnName(t *testing.T) {
	g := startForTest(t, newVictim(t, nil))
	comm := fmt.Sprintf("/proc/%d/comm", g.proc.Pid)
	// It has the name from its start.
	self, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	if name, err := os.ReadFile(comm); err != nil || string(name) == string(self) {
		t.Errorf("the new watchdog is called %q, %v, as the program", name, err)
	}
	empty(t, g)
	name, err := os.ReadFile(comm)
	if err != nil || strings.TrimSpace(string(name)) != WatchdogName || len(WatchdogName) > 15 {
		t.Errorf("the watchdog is called %q, %v, want %s", name, err, WatchdogName)
	}
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", g.proc.Pid))
	if err != nil || strings.Contains(string(line), "zklock") {
		t.Errorf("the watchdog's command line is %q, %v: it names the program", line, err)
	}
}

// TestRunningProgramUnderEmulator: under an emulator, /proc shows the file of the emulator instead
// of the file of this program.
func TestRunningProgramUnderEmulator(t *testing.T) {
	if got := RunningProgram("/bin/sh"); got != "/bin/sh" {
		t.Errorf("%s starts this program's helpers, want /bin/sh", got)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, exe := range []string{exe, "/no/such/program"} { // not replaced, and removed
		if got := RunningProgram(exe); got == exe {
			t.Errorf("%s starts this program's helpers, want the program that runs", got)
		}
	}
}

// TestWatchdogSparesProcessWithReusedPID: when the kill is due, the command has ended, and another
// process has its number, as if the wrapper was stopped between the end of the command and Bye.
func TestWatchdogSparesProcessWithReusedPID(t *testing.T) {
	first, second := newVictim(t, nil), newVictim(t, nil)
	var w victims
	w.update(&watchdogCore{group: first.group(), until: 5})
	w.leader.PID = second.group() // as if the second had the number of the first
	if !w.leader.Replaced() {
		// Both started within one tick of the kernel, so they cannot be distinguished.
		w.leader, _ = FindProcess(os.Getppid())
		w.leader.PID = second.group()
	}
	w.kill(&watchdogCore{group: second.group()})
	w = victims{}
	w.update(&watchdogCore{group: first.group(), until: 5})
	w.kill(&watchdogCore{group: first.group()})
	awaitEnd(t, "the first", first.ended)
	if !second.lives() {
		t.Error("the second was killed in the place of the first")
	}
}
