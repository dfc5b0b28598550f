package runkill

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// newCommand is a command with the environment of a shell that knows nothing of
// zklock.
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

// signal sends to processes, or with negative numbers to groups. One that is gone
// is no error.
func signal(sig syscall.Signal, pids ...int) error {
	for _, pid := range pids {
		if pid == 0 || pid == 1 || pid == -1 {
			return fmt.Errorf("runkill: %d is no process to signal", pid)
		}
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("runkill: signal %v to %d: %w", sig, pid, err)
		}
	}
	return nil
}

// watchdogOf is the process id of a wrapper's watchdog, 0 if it has none now.
func watchdogOf(pid int) int {
	lists, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		return 0
	}
	for _, list := range lists {
		b, err := os.ReadFile(list)
		if err != nil {
			continue // a thread that has ended
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

// stopped reports whether each of these processes is stopped with all threads.
func stopped(pids ...int) bool {
	for _, pid := range pids {
		files, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/stat")
		if err != nil {
			return false
		}
		for _, file := range files {
			stat, err := os.ReadFile(file)
			if err != nil {
				continue // a thread, or all of it, has ended
			}
			// The state stands behind the name, which is in parentheses.
			if end := bytes.LastIndexByte(stat, ')'); end >= 0 && !bytes.HasPrefix(stat[end:], []byte(") T")) {
				return false
			}
		}
	}
	return true
}

// pfExiting is the kernel's flag of a process that is past its last instruction.
const pfExiting = 4

// doomed reports whether a process that has not ended has got its KILL: whether
// that is pending, or the process is on its way out.
func doomed(pid int) bool {
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

// binaries are the command and its members, built once for all tests.
type binaries struct {
	once sync.Once
	dir  string
	err  error
}

// programs are those of this process.
var programs binaries

// get returns their directory.
func (b *binaries) get() (string, error) {
	b.once.Do(func() {
		if b.dir, b.err = os.MkdirTemp("", "zkrun"); b.err == nil {
			b.err = build(b.dir)
		}
	})
	return b.dir, b.err
}

// remove removes them, if they were built.
func (b *binaries) remove() {
	b.once.Do(func() {}) // orders the read below after get's write
	if b.dir != "" {
		_ = os.RemoveAll(b.dir) // it is in the system's temporary directory anyway
	}
}

// build compiles the command and the members into a directory.
func build(dir string) error {
	for _, pkg := range []string{"github.com/zklock/zklock/cmd/zklock", "github.com/zklock/zklock/test/runkill/member"} {
		out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), pkg).CombinedOutput()
		if err != nil {
			return fmt.Errorf("runkill: go build %s: %w\n%s", pkg, err, out)
		}
	}
	return nil
}
