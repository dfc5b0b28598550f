package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/zklock/test/harness"
)

// newCommand returns a command without zklock's variables in its environment.
func newCommand(bin string, env []string, args ...string) *exec.Cmd {
	cmd := exec.Command(bin, args...)
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "ZKLOCK_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	cmd.Env = append(cmd.Env, env...)
	return cmd
}

// signal sends a signal to processes, or to process groups if the number is negative. It
// ignores processes that have ended.
func signal(sig syscall.Signal, pids ...int) error {
	for _, pid := range pids {
		if pid == 0 || pid == 1 || pid == -1 {
			return fmt.Errorf("command: %d is no process to signal", pid)
		}
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("command: signal %v to %d: %w", sig, pid, err)
		}
	}
	return nil
}

// watchdogOf returns the process ID of a wrapper's watchdog, or 0.
func watchdogOf(pid int) int {
	lists, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		return 0
	}
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // the thread has ended
		}
		for word := range bytes.FieldsSeq(b) {
			line, err := os.ReadFile("/proc/" + string(word) + "/cmdline")
			if err != nil || !bytes.HasSuffix(line, []byte("\x00__watchdog\x00")) {
				continue
			}
			if n, err := strconv.Atoi(string(word)); err == nil {
				return n
			}
		}
	}
	return 0
}

// pfExiting is the kernel's flag PF_EXITING: the process runs no more instructions.
const pfExiting = 4

// killPending reports whether KILL is pending for a process, or the process is exiting or has
// ended.
func killPending(pid int) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	status, err := os.ReadFile(dir + "/status")
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	for _, field := range []string{"\nSigPnd:", "\nShdPnd:"} {
		_, rest, _ := strings.Cut(string(status), field)
		line, _, _ := strings.Cut(rest, "\n")
		if mask, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64); err == nil && mask&(1<<(syscall.SIGKILL-1)) != 0 {
			return true
		}
	}
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	// The flags are the seventh field after the name, which is in parentheses.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(string(fields[6]), 10, 64)
	return err == nil && flags&pfExiting != 0
}

func TestSignalRefusesGroupsOfAll(t *testing.T) {
	for _, pid := range []int{0, 1, -1} {
		if err := signal(syscall.SIGKILL, pid); err == nil || !strings.Contains(err.Error(), "no process to signal") {
			t.Errorf("%d: %v", pid, err)
		}
	}
	if err := signal(syscall.SIGKILL, 1<<22+5); err != nil {
		t.Errorf("a process that does not exist: %v", err)
	}
}

func TestNewCommandHasNoZklockVariables(t *testing.T) {
	t.Setenv("ZKLOCK_SERVERS", "elsewhere:1")
	cmd := newCommand("true", []string{"ZKLOCK_HOME=/x"})
	if slices.ContainsFunc(cmd.Env, func(s string) bool { return strings.HasPrefix(s, "ZKLOCK_SERVERS=") }) || !slices.Contains(cmd.Env, "ZKLOCK_HOME=/x") {
		t.Errorf("its environment is %q", cmd.Env)
	}
}

func TestWatchdogIsFoundByItsArguments(t *testing.T) {
	// sh takes the argument after the script as its name.
	cmd := exec.Command("sh", "-c", `sleep 1000 & sh -c 'echo $$; sleep 1000; :' __watchdog & wait`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := harness.Start(cmd)
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
		t.Errorf("the watchdog of a process that does not exist is %d", n)
	}
}

func TestWrapperExitCode(t *testing.T) {
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

func TestKillPendingOnlyAfterKill(t *testing.T) {
	p, err := harness.Start(exec.Command("sleep", "1000"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	if killPending(p.Pid()) {
		t.Error("a process that sleeps counts as killed")
	}
	if err := signal(syscall.SIGSTOP, p.Pid()); err != nil {
		t.Fatal(err)
	}
	if killPending(p.Pid()) {
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
	if !killPending(p.Pid()) && lives(fd) {
		t.Error("a process that was killed counts as alive")
	}
	if !killPending(1 << 30) {
		t.Error("a process that does not exist counts as alive")
	}
}
