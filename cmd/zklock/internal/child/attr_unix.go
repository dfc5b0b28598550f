//go:build unix && !linux

package child

import "syscall"

// attributes: a group of its own. There is no parent-death signal here; the
// watchdog does its work.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// adopt does nothing here: orphans go to the system's first process.
func adopt() bool { return false }

// dieWithParent does nothing here.
func dieWithParent() {}
