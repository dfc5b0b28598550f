package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes gives the command its own process group, and KILL when the thread that
// started it ends. The latter is the only protection that needs no other process.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// adoptOrphans makes the kernel give orphaned descendants, such as daemons, to this
// process, so that it can find them. It reports whether the kernel does so. If this
// process cannot list its children, it could not reap them either, and leaves them to the
// system.
func adoptOrphans() bool {
	return ListsProcesses() && unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == nil
}

// dieWithParent sets the parent-death signal for the calling thread. If the parent has
// died before, the gate shows it.
func dieWithParent() {
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) // never fails for a valid signal
}
