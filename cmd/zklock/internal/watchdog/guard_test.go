//go:build unix

package watchdog

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/boot"
)

// patience bounds what a test waits for.
const patience = 2 * time.Minute

// TestMain lets the test's binary be the watchdog.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Argument {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

// victim is a process in a group of its own.
type victim struct {
	cmd   *exec.Cmd
	ended chan struct{}
}

func newVictim(t *testing.T) *victim {
	t.Helper()
	v := &victim{cmd: exec.Command("sleep", "1000"), ended: make(chan struct{})}
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

// await waits for a channel to close.
func await(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("%s does not end", what)
	}
}

// start starts a watchdog over a victim.
func start(t *testing.T, v *victim) *Guard {
	t.Helper()
	g, err := Start(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Bye)
	if err := g.Watch(v.group()); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestKillsAtTheMoment(t *testing.T) {
	v := newVictim(t)
	g := start(t, v)
	until := boot.Now() + 200*time.Millisecond
	if err := g.Until(until); err != nil {
		t.Fatal(err)
	}
	await(t, "the victim", v.ended)
	if now := boot.Now(); now < until {
		t.Errorf("killed %v too early", until-now)
	}
	await(t, "the watchdog", g.Died())
}

func TestALaterMomentCounts(t *testing.T) {
	v := newVictim(t)
	g := start(t, v)
	// One that is past only once the later one was told.
	if err := g.Until(boot.Now() + time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := g.Until(boot.Now() + 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	g.Bye()
	await(t, "the watchdog", g.Died())
	if !v.lives() {
		t.Error("killed in spite of the good-bye")
	}
}

func TestKillsAtTheEndWithoutGoodBye(t *testing.T) {
	v := newVictim(t)
	g := start(t, v)
	if err := g.Until(boot.Now() + time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := g.pipe.Close(); err != nil { // as the kernel does for a killed wrapper
		t.Fatal(err)
	}
	await(t, "the victim", v.ended)
	await(t, "the watchdog", g.Died())
}

func TestSurvivesWhatEndsTheWrapper(t *testing.T) {
	v := newVictim(t)
	cmd := exec.Command(os.Args[0], Argument)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g := &Guard{pipe: pipe.(*os.File)}
	// It ignores signals from some moment after its start on. That it read
	// the group and killed in the end shows that it lived through them after.
	if err := g.Watch(v.group()); err != nil {
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
	if err := pipe.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "the victim", v.ended)
	if err := cmd.Wait(); err != nil {
		t.Errorf("the watchdog ended with %v", err)
	}
}

// TestADeafWatchdogIsNoBurden: one that is stopped costs whoever writes to it no
// time, shows after some messages, and can be ended.
func TestADeafWatchdogIsNoBurden(t *testing.T) {
	v := newVictim(t)
	g := start(t, v)
	if !ignoring(g.proc.Pid) {
		t.Fatal("the watchdog does not ignore TERM")
	}
	if err := g.proc.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var err error
	n := 0
	for ; err == nil && n < 1<<20; n++ {
		err = g.Until(boot.Now() + time.Hour)
	}
	if !errors.Is(err, ErrDeaf) || !errors.Is(err, syscall.EAGAIN) {
		t.Fatalf("after %d messages: %v", n, err)
	}
	if n > 1000 && runtime.GOOS == "linux" {
		t.Errorf("it shows after %d messages", n)
	}
	g.Kill()
	await(t, "the watchdog", g.Died())
	if !v.lives() {
		t.Error("the command was ended with its watchdog")
	}
}

func TestDiedIsTold(t *testing.T) {
	g, err := Start(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	g.Bye()
	await(t, "the watchdog", g.Died())
	if err := g.Watch(5); err == nil {
		t.Error("a watchdog that is gone listens")
	}
}

func TestStartFails(t *testing.T) {
	if _, err := Start("/no/such/program"); err == nil {
		t.Error("a program that does not exist was started")
	}
}
