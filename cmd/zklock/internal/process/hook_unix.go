//go:build unix

package process

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// hookAttributes returns those of the process that runs a hook: a session and process
// group of its own, so that ^C does not end it.
func hookAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// hookShell returns a shell command, which runs in the process group of its parent.
func hookShell(command string) *exec.Cmd {
	sh, err := FindCommand("sh", SearchPath())
	if err != nil {
		sh = shell
	}
	return exec.Command(sh, "-c", command)
}

// killHook kills the process group of the hook, which is that of the calling process:
// while that process lives, no other group can have the number.
func killHook(*exec.Cmd) {
	if unix.Getpgrp() == os.Getpid() { // NewHook has made the group
		_ = unix.Kill(0, unix.SIGKILL) // it does not return
	}
}
