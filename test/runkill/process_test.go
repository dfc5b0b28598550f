package runkill

import (
	"bufio"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/zklock/test/child"
)

func TestSignalSparesEverybody(t *testing.T) {
	for _, pid := range []int{0, 1, -1} {
		if err := signal(syscall.SIGKILL, pid); err == nil || !strings.Contains(err.Error(), "no process to signal") {
			t.Errorf("%d: %v", pid, err)
		}
	}
	if err := signal(syscall.SIGKILL, 1<<22+5); err != nil {
		t.Errorf("one that is not there: %v", err)
	}
}

func TestNewCommandKnowsNoLock(t *testing.T) {
	t.Setenv("ZKLOCK_SERVERS", "elsewhere:1")
	cmd := newCommand("true", []string{"ZKLOCK_HOME=/x"})
	if slices.ContainsFunc(cmd.Env, func(s string) bool { return strings.HasPrefix(s, "ZKLOCK_SERVERS=") }) || !slices.Contains(cmd.Env, "ZKLOCK_HOME=/x") {
		t.Errorf("its environment is %q", cmd.Env)
	}
}

func TestStopped(t *testing.T) {
	p, err := child.Start(exec.Command("sleep", "1000"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if stopped(p.Pid()) {
		t.Error("a process that sleeps counts as stopped")
	}
	if err := signal(syscall.SIGSTOP, p.Pid()); err != nil {
		t.Fatal(err)
	}
	if err := poll(t.Context(), func() bool { return stopped(p.Pid()) }); err != nil {
		t.Error(err)
	}
}

// TestWatchdogOf: the watchdog is known by how it was called, among other children.
func TestWatchdogOf(t *testing.T) {
	// sh takes an argument after the script as its own name.
	cmd := exec.Command("sh", "-c", `sleep 1000 & sh -c 'echo $$; sleep 1000; :' __watchdog & wait`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := child.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if n := watchdogOf(p.Pid()); strconv.Itoa(n) != strings.TrimSpace(line) {
		t.Errorf("%d counts as the watchdog, want %s", n, line)
	}
	if n := watchdogOf(os.Getpid()); n != 0 {
		t.Errorf("this process's watchdog is %d", n)
	}
	if n := watchdogOf(1 << 30); n != 0 {
		t.Errorf("nobody's watchdog is %d", n)
	}
}

func TestExitCodes(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -9 $$": 137, "kill -15 $$": 143} {
		w, err := startWrapper(t.TempDir()+"/w", "sh", nil, "-c", script)
		if err != nil {
			t.Fatal(err)
		}
		if got := w.exit(); got != want || w.lost() {
			t.Errorf("%s: %d, want %d; lost %v", script, got, want, w.lost())
		}
	}
	w, err := startWrapper(t.TempDir()+"/w", "sh", nil, "-c", `echo '{"outcome":"lost","exit":120}' >&3; echo said >&2; exit 120`)
	if err != nil {
		t.Fatal(err)
	}
	if !w.lost() || w.text(".err") != "said\n" {
		t.Errorf("exit %d, lost %v, said %q", w.exit(), w.lost(), w.text(".err"))
	}
	if text := (&wrapper{base: "/no/such"}).text(".err"); !strings.Contains(text, "no such file") {
		t.Errorf("a file that is not there: %q", text)
	}
}

// TestDoomed: who sleeps or is stopped is not; who was killed is, until it is gone.
func TestDoomed(t *testing.T) {
	p, err := child.Start(exec.Command("sleep", "1000"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if doomed(p.Pid()) {
		t.Error("a process that sleeps counts as killed")
	}
	if err := signal(syscall.SIGSTOP, p.Pid()); err != nil {
		t.Fatal(err)
	}
	if doomed(p.Pid()) {
		t.Error("a process that is stopped counts as killed")
	}
	fd, err := pidfd(p.Pid())
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := signal(syscall.SIGKILL, p.Pid()); err != nil {
		t.Fatal(err)
	}
	if !doomed(p.Pid()) && lives(fd) {
		t.Error("a process that was killed counts as alive")
	}
	if !doomed(1 << 30) {
		t.Error("nobody counts as alive")
	}
}
