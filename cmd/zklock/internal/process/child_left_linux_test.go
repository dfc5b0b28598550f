package process

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// awaitNoneLeft waits until Left reports that no process is left.
func awaitNoneLeft(t *testing.T, c *Child, meanwhile func()) {
	t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); c.Left(); <-look.C {
		if time.Now().After(end) {
			t.Fatal("processes are left")
		}
		meanwhile()
	}
}

// Commands whose first process ends after TERM, and whose other processes ignore it.
var stubborn = map[string]string{
	"in the group":       `sh -c 'trap "" TERM; echo up; exec sleep 1000' | cat`,
	"in its own group":   `timeout 1000 sh -c 'trap "" TERM; echo up; exec sleep 1000'; true`,
	"in its own session": `setsid sh -c 'trap "" TERM; echo up; exec sleep 1000'; true`,
	"a daemon":           `(setsid sh -c 'trap "" TERM; echo up; exec sleep 1000' &); sleep 1000`,
}

// endsByKill checks that KILL ends all processes, and that they write nothing more.
func endsByKill(t *testing.T, c *Child, lines *bufio.Reader, r *os.File) {
	t.Helper()
	awaitNoneLeft(t, c, c.Kill)
	if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(lines); len(rest) != 0 || err != nil {
		t.Errorf("a process is left: %q, %v", rest, err)
	}
}

// TestLeftReportsProcessesUntilTheyEnd checks processes that outlive the command, in its group and
// in others.
func TestLeftReportsProcessesUntilTheyEnd(t *testing.T) {
	for name, script := range stubborn {
		t.Run(name, func(t *testing.T) {
			c, lines, r := leave(t, script)
			c.Signal(syscall.SIGTERM)
			if got := awaitExit(t, c); got.Signal != int(syscall.SIGTERM) {
				t.Fatalf("ended by %+v, want TERM", got)
			}
			c.TerminateLeft(BootTime() + patience)
			if !c.Left() {
				t.Error("nothing is left")
			}
			endsByKill(t, c, lines, r)
		})
	}
}

// TestLeftWithoutDescriptors: a process that can open no file cannot list the processes of the
// command. They count as running, and no process of another number gets a signal.
func TestLeftWithoutDescriptors(t *testing.T) {
	for _, known := range []bool{false, true} {
		c, _, r := leave(t, stubborn["a daemon"])
		if known {
			c.Terminate(BootTime() + patience)
		} else {
			c.Signal(syscall.SIGTERM)
		}
		awaitExit(t, c)
		var before unix.Rlimit
		if err := unix.Prlimit(os.Getpid(), unix.RLIMIT_NOFILE, nil, &before); err != nil {
			t.Fatal(err)
		}
		if err := unix.Prlimit(os.Getpid(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: before.Max}, nil); err != nil {
			t.Fatal(err)
		}
		left, err := c.Left(), c.ListError()
		c.Kill()
		left = left && c.Left()
		if err := unix.Prlimit(os.Getpid(), unix.RLIMIT_NOFILE, &before, nil); err != nil {
			t.Fatal(err)
		}
		if !left || !errors.Is(err, unix.EMFILE) {
			t.Errorf("known %v: left %v, %v; want that processes may be left, because of EMFILE", known, left, err)
		}
		awaitNoneLeft(t, c, c.Kill)
		if err := c.ListError(); err != nil {
			t.Error(err)
		}
		allEnded(t, r)
	}
}

func init() {
	if os.Getenv("END_FIRST_THREAD") == "" {
		return
	}
	signal.Ignore(syscall.SIGTERM)
	go func() {
		for {
			status, err := os.ReadFile("/proc/self/stat")
			if err != nil || bytes.Contains(status, []byte(") Z ")) {
				break
			}
		}
		fmt.Println("up")
		select {}
	}()
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0) // init runs in the first thread
}

// TestLeftSeesProcessWithoutFirstThread: a process whose first thread has ended looks like a
// zombie, but its other threads still run.
func TestLeftSeesProcessWithoutFirstThread(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, lines, r := leave(t, `(END_FIRST_THREAD=1 setsid "$EXE" &); exec sleep 1000`, "EXE="+exe)
	c.Terminate(BootTime() + patience)
	awaitExit(t, c)
	if !c.Left() {
		t.Error("nothing is left")
	}
	endsByKill(t, c, lines, r)
}

// TestTerminateLeftReachesStopped checks that stopped processes get the signal, once: those of the
// group the one that ended the command, and others TERM.
func TestTerminateLeftReachesStopped(t *testing.T) {
	const obey = `trap "echo ending; exit" TERM; echo $$ >$DIR/new; mv $DIR/new $DIR/pid; kill -STOP $$; while :; do sleep 0.01; done`
	const up = `; until grep -q "^State:.T" /proc/$(cat $DIR/pid)/status; do sleep 0.01; done 2>/dev/null; echo up; exec sleep 1000`
	for name, script := range map[string]string{
		"in the group":       `sh -c '` + obey + `' &`,
		"in its own session": `setsid sh -c '` + obey + `' &`,
		"a daemon":           `(setsid sh -c '` + obey + `' &)`,
	} {
		t.Run(name, func(t *testing.T) {
			c, lines, _ := leave(t, script+"\ntrue"+up, "DIR="+t.TempDir())
			c.Signal(syscall.SIGTERM)
			awaitExit(t, c)
			c.TerminateLeft(BootTime() + patience)
			awaitNoneLeft(t, c, func() { c.TerminateLeft(BootTime() + patience) })
			if rest, err := io.ReadAll(lines); string(rest) != "ending\n" || err != nil {
				t.Errorf("the processes said %q, %v, want that one was told to end", rest, err)
			}
		})
	}
}

// TestHookOfInnerWrapperIsLeft: a wrapper that the command has started was killed, and its hook
// runs. The hook gets no TERM, and ends with KILL. The hook of this wrapper is spared.
func TestHookOfInnerWrapperIsLeft(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink(os.Args[0], filepath.Join(dir, "zklock")); err != nil {
		t.Fatal(err)
	}
	own := filepath.Join(dir, "own")
	hook, err := NewHook(os.Args[0], `echo ran >"$OUT"`, []string{"PATH=" + os.Getenv("PATH"), "OUT=" + own}, HookTime)
	if err != nil {
		t.Fatal(err)
	}
	// The sleep makes the inner hook newer than the command for the kernel.
	c, lines, r := leave(t, `PATH=$DIR:$PATH
		sleep 0.05
		echo lost | setsid zklock __hook 5m 'trap "echo TERM" TERM; echo up; while :; do sleep 0.01; echo >>$DIR/rounds; done' &
		exec sleep 1000`, "DIR="+dir)
	c.Terminate(BootTime() + patience)
	awaitExit(t, c)
	c.TerminateLeft(BootTime() + patience)
	rounds := func() int64 {
		info, err := os.Stat(filepath.Join(dir, "rounds"))
		if err != nil {
			return 0
		}
		return info.Size()
	}
	before := rounds()
	await(t, "the inner hook continues", func() bool { return rounds() >= before+2 }) // its trap would have run
	if !c.Left() {
		t.Error("the inner hook does not count")
	}
	endsByKill(t, c, lines, r)
	if err := hook.Start("lost"); err != nil {
		t.Errorf("the hook of this wrapper: %v", err)
	}
	hook.Close()
	if got := waitForFile(t, own); got != "ran\n" {
		t.Errorf("the hook of this wrapper wrote %q", got)
	}
}

// awaitTick returns when a process that starts is newer than those before it: the kernel
// counts starts in ticks of 10 ms.
func awaitTick(t *testing.T) {
	t.Helper()
	end := BootTime() + 50*time.Millisecond
	await(t, "the kernel's clock has ticked", func() bool { return BootTime() >= end })
}

// TestEarlierChildrenGetNoSignal: a script that starts a process and then becomes the wrapper, by
// exec, has a child that is not the command's. The child gets no signal, and the wrapper does not
// wait for it.
func TestEarlierChildrenGetNoSignal(t *testing.T) {
	earlier := exec.Command("sleep", "1000")
	earlier.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := earlier.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = earlier.Process.Kill(); _ = earlier.Wait() })
	awaitTick(t)
	for _, tt := range []struct {
		script string
		hidden bool // by /proc
	}{
		{`(setsid sleep 1000 &); echo up; exec sleep 1000`, false},
		{`echo up; exec sleep 1000`, true},
	} {
		c, _, _ := leave(t, tt.script)
		if tt.hidden {
			c.descendants = Descendants{}
		}
		c.Terminate(BootTime() + patience)
		awaitExit(t, c)
		c.TerminateLeft(BootTime() + patience)
		awaitNoneLeft(t, c, c.Kill)
		if p, ok := FindProcess(earlier.Process.Pid); !ok || p.Group != p.PID {
			t.Errorf("%s, hidden %v: the earlier child is %+v, %v, want that it runs", tt.script, tt.hidden, p, ok)
		}
	}
}

// TestGroupOfEarlierProcessIsSpared: a process that is older than the command starts an
// orphan, which this process adopts. KILL ends the orphan, but not its group, also if the process
// that led the group has ended.
func TestGroupOfEarlierProcessIsSpared(t *testing.T) {
	const orphan = `read x; (sleep 1000 & echo $!); read x; echo alive`
	for name, script := range map[string]string{
		"it leads the group":                orphan,
		"the leader of the group has ended": `exec 3<&0; { ` + orphan + `; } <&3 & exit 0`,
	} {
		t.Run(name, func(t *testing.T) { spareGroupOfEarlier(t, script) })
	}
}

// spareGroupOfEarlier is TestGroupOfEarlierProcessIsSpared for one script of the earlier process.
func spareGroupOfEarlier(t *testing.T, script string) {
	adoptOrphans() // before the leader ends
	earlier := exec.Command("sh", "-c", script)
	earlier.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := earlier.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := earlier.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := earlier.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = syscall.Kill(-earlier.Process.Pid, syscall.SIGKILL); _ = earlier.Wait() })
	if strings.HasSuffix(script, "exit 0") {
		settled(t, earlier.Process.Pid, gone)
	}
	awaitTick(t)
	c, _, _ := leave(t, `echo up; exec sleep 1000`)
	lines := bufio.NewReader(out)
	ask := func() string {
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("the earlier process has ended: %v", err)
		}
		return strings.TrimSpace(line)
	}
	orphan, err := strconv.Atoi(ask())
	if err != nil {
		t.Fatal(err)
	}
	await(t, "this process has adopted the orphan", func() bool { return slices.Contains(Children(os.Getpid()), orphan) })
	c.Kill()
	awaitExit(t, c)
	awaitNoneLeft(t, c, c.Kill)
	settled(t, orphan, gone)
	if line := ask(); line != "alive" {
		t.Errorf("the earlier process said %q", line)
	}
}

// TestAdoptedOrphansAreReaped checks that orphans that this process adopts do not stay zombies
// while the command runs.
func TestAdoptedOrphansAreReaped(t *testing.T) {
	c, _, _ := leave(t, `for i in 1 2 3; do (true &); (setsid true &); done; echo up; exec sleep 1000`)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(patience); ; <-look.C {
		children := Children(os.Getpid())
		if slices.Equal(children, []int{c.Group()}) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the children of this process are %v, want %d alone", children, c.Group())
		}
	}
	c.Kill()
	awaitExit(t, c)
	if c.Left() {
		t.Error("something is left")
	}
}

// forking starts a process in its own session that forks and exits, as its child does, so
// that each process lives for less than a millisecond. The number limits how often.
func forking(times string) string {
	return `setsid sh -c 'trap "" TERM; fork() { n=$((n+1)); [ $n -lt ` + times + ` ] || exit 0; (fork) & exit 0; }; n=0; fork' & echo up; exec sleep 1000`
}

// TestLeftSeesForkingProcesses: a process that ends during the search and leaves a child counts as
// running.
func TestLeftSeesForkingProcesses(t *testing.T) {
	c, _, r := leave(t, forking("2000"))
	c.Signal(syscall.SIGTERM)
	awaitExit(t, c)
	for end := time.Now().Add(patience); c.Left(); {
		if time.Now().After(end) {
			t.Fatal("processes are left")
		}
	}
	allEnded(t, r)
}

// TestKillEndsForkingProcesses: KILL reaches processes that fork and exit at once.
func TestKillEndsForkingProcesses(t *testing.T) {
	c, _, r := leave(t, forking("100000"))
	c.Signal(syscall.SIGTERM)
	awaitExit(t, c)
	awaitNoneLeft(t, c, c.Kill)
	allEnded(t, r)
}

// allEnded fails unless no process has the other end of a pipe.
func allEnded(t *testing.T, r *os.File) {
	t.Helper()
	conn, err := r.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	n, failed := 0, error(nil)
	err = conn.Read(func(fd uintptr) bool {
		n, failed = unix.Read(int(fd), make([]byte, 1))
		return true
	})
	if n != 0 || failed != nil || err != nil {
		t.Errorf("a process is left: read %d, %v, %v", n, failed, err)
	}
}

// TestSignalReachesCommandThatLeftItsGroup: a command can move to any group of its session.
// It gets the signals that are forwarded to it; the other processes of that group do not.
func TestSignalReachesCommandThatLeftItsGroup(t *testing.T) {
	other := exec.Command("sleep", "1000")
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- other.Wait() }()
	t.Cleanup(func() { _ = other.Process.Kill() })
	t.Setenv("JOIN_GROUP", strconv.Itoa(other.Process.Pid))
	c, err := StartCommand(Command{Path: os.Args[0], Args: []string{"join"}, Env: os.Environ()}, os.Args[0],
		func(int) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	settled(t, c.Group(), func(p Process, ok bool) bool { return ok && p.Group == other.Process.Pid })
	c.Signal(syscall.SIGTERM)
	if got := awaitExit(t, c); got.Signal != int(syscall.SIGTERM) {
		t.Errorf("the command ended with %+v, want signal TERM", got)
	}
	select {
	case err := <-ended:
		t.Errorf("another process of the group ended: %v", err)
	default:
	}
}

// TestTerminateSendsOneTERM: many programs exit faster, and less cleanly, on a second TERM.
func TestTerminateSendsOneTERM(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "1000")
	other.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	awaitTick(t)
	for name, tt := range map[string]struct {
		script string
		count  int
	}{
		"members of another group":          {`setsid sh -c 'for i in 1 2 3 4 5 6 7 8; do COUNT_TERM=1 "$EXE" & done; wait'; true`, 8},
		"a command that has left its group": {`COUNT_TERM=1 JOIN_GROUP=$OTHER exec "$EXE"`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			c, lines, _ := leave(t, tt.script, "EXE="+exe, "OTHER="+strconv.Itoa(other.Process.Pid))
			read := func(want string, n int) {
				for range n {
					if line, err := lines.ReadString('\n'); line != want+"\n" {
						t.Fatalf("a process said %q, %v, want %s", line, err, want)
					}
				}
			}
			read("up", tt.count-1)
			c.Terminate(BootTime() + patience)
			read("TERM", tt.count)
			c.Kill()
			awaitExit(t, c)
			awaitNoneLeft(t, c, c.Kill)
			if rest, err := io.ReadAll(lines); len(rest) > 0 || err != nil {
				t.Errorf("the processes said %q, %v, after each got TERM", rest, err)
			}
		})
	}
}
