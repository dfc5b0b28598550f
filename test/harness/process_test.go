package harness

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// helperEnv makes the test binary start a child, print its pid, and wait.
const helperEnv = "ZKLOCK_CHILD_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) == "" {
		os.Exit(Main(m))
	}
	p, err := Start(exec.Command("sleep", "300"))
	if err != nil {
		os.Exit(3)
	}
	_, _ = os.Stdout.WriteString(strconv.Itoa(p.Pid()) + "\n")
	_ = p.Wait()
}

func TestWaitReportsExitStatus(t *testing.T) {
	p, err := Start(exec.Command("sh", "-c", "exit 7"))
	if err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := p.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 7 {
		t.Errorf("Wait = %v, want exit status 7", err)
	}
	if err := p.Signal(syscall.SIGCONT); !errors.Is(err, ErrExited) {
		t.Errorf("Signal after the end = %v, want ErrExited", err)
	}
	p.Kill() // must return at once
}

func TestStartOfMissingProgramFails(t *testing.T) {
	if _, err := Start(exec.Command("/nonexistent/program")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Start = %v, want os.ErrNotExist", err)
	}
}

func TestKillEndsStoppedChildAndItsGroup(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 300 & echo $!; wait")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	grandchild := readPid(t, bufio.NewReader(out))
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	waitGone(t, grandchild)
}

// TestChildEndsWithItsParent kills a parent by SIGKILL, so the parent runs no cleanup.
func TestChildEndsWithItsParent(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), helperEnv+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	parent, err := Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	pid := readPid(t, bufio.NewReader(out))
	// Kill would also signal the child, which is in the group.
	if err := parent.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitGone(t, pid)
}

func readPid(t *testing.T, r *bufio.Reader) int {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// waitGone waits until the process has ended. A zombie has ended: it waits for the machine's
// init process.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-tick.C {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return
		}
	}
	t.Errorf("process %d still runs", pid)
}
