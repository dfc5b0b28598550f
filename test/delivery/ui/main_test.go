package ui

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/zklock/zklock/test/harness"
)

// isolated is set in the environment of a process with its own network namespace.
const isolated = "ZKLOCK_TEST_ISOLATED_NETWORK"

// TestMain runs the tests in a new network namespace if the user is root. Chromium aborts all
// loads (ERR_NETWORK_CHANGED) if the machine's interfaces change, and tests of other packages
// add and remove interfaces.
func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(isolated) != "" {
		if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "set up the loopback interface: %v: %s\n", err, out)
			os.Exit(1)
		}
		os.Exit(harness.Main(m))
	}
	if _, err := exec.LookPath("ip"); os.Getuid() != 0 || err != nil {
		os.Exit(harness.Main(m))
	}
	os.Exit(isolate())
}

// isolate runs this program again in a new network namespace, if the system permits one, and
// returns its exit code.
func isolate() int {
	runtime.LockOSThread() // Pdeathsig is sent when the thread that started the child ends
	child := func(flags uintptr) *exec.Cmd {
		cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
		cmd.Env = append(os.Environ(), isolated+"=1")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL}
		return cmd
	}
	err := child(syscall.CLONE_NEWNET).Run()
	if errors.Is(err, syscall.EPERM) {
		err = child(0).Run()
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	}
	fmt.Fprintln(os.Stderr, err)
	return 1
}
