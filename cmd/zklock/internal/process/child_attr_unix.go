//go:build unix && !linux

package process

import "syscall"

// attributes gives the command its own process group. These systems have no parent-death
// signal; the watchdog replaces it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// adoptOrphans does nothing here: orphans go to the first process of the system.
func adoptOrphans() bool { return false }

// dieWithParent does nothing here.
func dieWithParent() {}
