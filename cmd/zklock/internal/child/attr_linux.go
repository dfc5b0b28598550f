package child

import "syscall"

// attributes: a group of its own, and KILL when the thread that started it
// ends, which is the one defence that works without any other process.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
