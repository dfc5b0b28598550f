//go:build unix

package process

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// victim is a process in a group of its own.
type victim struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

// newVictim starts a victim. If env is nil, the victim has the environment of this process.
func newVictim(t *testing.T, env []string) *victim {
	t.Helper()
	v := &victim{cmd: exec.Command("sleep", "1000"), ended: make(chan struct{})}
	v.cmd.Env = env
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = v.cmd.Wait()
		close(v.ended)
	}()
	t.Cleanup(func() {
		_ = v.cmd.Process.Kill()
		<-v.ended
	})
	return v
}

func (v *victim) group() int { return v.cmd.Process.Pid }

// lives reports whether the victim has not ended yet.
func (v *victim) lives() bool {
	select {
	case <-v.ended:
		return false
	default:
		return true
	}
}

// awaitEnd waits for a channel to close.
func awaitEnd(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("%s does not end", what)
	}
}

// startForTest starts a watchdog of a victim.
func startForTest(t *testing.T, v *victim) *Watchdog {
	t.Helper()
	g, err := StartWatchdog(RunningProgram(os.Args[0]))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Bye)
	if err := g.Watch(v.group(), nil); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestWatchdogKillsWhenDue(t *testing.T) {
	v := newVictim(t, nil)
	g := startForTest(t, v)
	until := BootTime() + 200*time.Millisecond
	if err := g.Until(until); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, "the victim", v.ended)
	if now := BootTime(); now < until {
		t.Errorf("killed %v too early", until-now)
	}
	awaitEnd(t, "the watchdog", g.Died())
}

// TestWatchdogWithoutTimerKillsInTime checks that the watchdog is not late if the system has no
// timer for it. A stall of the machine can delay some of the attempts.
func TestWatchdogWithoutTimerKillsInTime(t *testing.T) {
	const most = 300 * time.Millisecond
	var late []time.Duration
	for range 8 {
		v := newVictim(t, nil)
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "WATCH_WITHOUT_TIMER=1")
		g := startPlain(t, cmd)
		until := BootTime() + most
		err := errors.Join(g.Watch(v.group(), nil), g.Until(until))
		if err == nil {
			awaitEnd(t, "the victim", v.ended)
			late = append(late, BootTime()-until)
		}
		_ = cmd.Process.Kill() // it searches until its parent ends, which is this process
		_ = cmd.Wait()
		switch last := len(late) - 1; {
		case err != nil:
			t.Fatal(err)
		case late[last] < 0:
			t.Fatalf("killed %v too early", -late[last])
		case late[last] < most:
			return
		}
	}
	t.Errorf("killed too late, in each attempt: %v", late)
}

func TestByeEndsWatchdogWithoutKill(t *testing.T) {
	v := newVictim(t, nil)
	g := startForTest(t, v)
	if err := g.Until(BootTime() + time.Hour); err != nil {
		t.Fatal(err)
	}
	g.Bye()
	awaitEnd(t, "the watchdog", g.Died())
	if !v.lives() {
		t.Error("killed after Bye")
	}
}

func TestWatchdogKillsIfWrapperEndsWithoutBye(t *testing.T) {
	v := newVictim(t, nil)
	g := startForTest(t, v)
	if err := g.Until(BootTime() + time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := g.pipe.Close(); err != nil { // as the kernel does for a killed wrapper
		t.Fatal(err)
	}
	awaitEnd(t, "the victim", v.ended)
	g.Kill() // it searches until its parent ends, which is this process
	awaitEnd(t, "the watchdog", g.Died())
}

func TestWatchdogIgnoresTerminationSignals(t *testing.T) {
	v := newVictim(t, nil)
	cmd := exec.Command(os.Args[0], WatchdogArgument)
	g := startPlain(t, cmd)
	// The watchdog ignores these signals some time after its start. If it survives them, it kills
	// the group.
	if err := g.Watch(v.group(), nil); err != nil {
		t.Fatal(err)
	}
	if !ignoring(cmd.Process.Pid) {
		t.Fatal("the watchdog does not ignore TERM")
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.pipe.Close(); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, "the victim", v.ended)
	_ = cmd.Process.Kill() // it searches until its parent ends, which is this process
	_ = cmd.Wait()
}

// TestWriteToStoppedWatchdogFailsAtOnce checks that writes to a stopped watchdog do not block, and
// fail after some messages. The wrapper can then kill it.
func TestWriteToStoppedWatchdogFailsAtOnce(t *testing.T) {
	v := newVictim(t, nil)
	g := startForTest(t, v)
	if !ignoring(g.proc.Pid) {
		t.Fatal("the watchdog does not ignore TERM")
	}
	if err := g.proc.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var err error
	n := 0
	for ; err == nil && n < 1<<20; n++ {
		err = g.Until(BootTime() + time.Hour)
	}
	if !errors.Is(err, ErrNotReading) || !errors.Is(err, syscall.EAGAIN) {
		t.Fatalf("after %d messages: %v", n, err)
	}
	if n > 1000 && runtime.GOOS == "linux" {
		t.Errorf("writes fail only after %d messages", n)
	}
	g.Kill()
	awaitEnd(t, "the watchdog", g.Died())
	if !v.lives() {
		t.Error("the command ended with its watchdog")
	}
}

func TestDiedReportsEndOfWatchdog(t *testing.T) {
	g, err := StartWatchdog(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	g.Bye()
	awaitEnd(t, "the watchdog", g.Died())
	if err := g.Watch(5, nil); err == nil {
		t.Error("Watch succeeded after the watchdog ended")
	}
}

func TestStartWatchdogFails(t *testing.T) {
	if _, err := StartWatchdog("/no/such/program"); err == nil {
		t.Error("a program that does not exist was started")
	}
}

// startPlain starts a command that is a watchdog, which the caller waits for.
func startPlain(t *testing.T, cmd *exec.Cmd) *Watchdog {
	t.Helper()
	pipe, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return &Watchdog{pipe: pipe.(*os.File)}
}
