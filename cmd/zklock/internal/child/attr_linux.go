package child

import (
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/cmd/zklock/internal/kin"
)

// attributes: a group of its own, and KILL when the thread that started it
// ends, which is the one defence that works without any other process.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adopt makes this process the one that the kernel gives orphans to: a descendant
// whose parents have ended, as a daemon's have, becomes its child, and is still to
// be found. It reports whether that is so. What cannot be found could not be reaped
// either, and is left to the system.
func adopt() bool {
	return kin.Lists() && unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil
}

// dieWithParent sets the same for the calling thread. A parent that is dead
// already shows at the gate.
func dieWithParent() {
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) // never fails for a valid signal
}
