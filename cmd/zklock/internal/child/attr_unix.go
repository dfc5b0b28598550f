//go:build unix && !linux

package child

import "syscall"

// attributes: a group of its own. There is no parent-death signal here; the
// watchdog does its work.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// dieWithParent does nothing here.
func dieWithParent() {}
