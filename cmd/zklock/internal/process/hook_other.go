//go:build !unix

package process

import (
	"os/exec"
	"syscall"
)

// hookAttributes returns nil: nothing is needed here.
func hookAttributes() *syscall.SysProcAttr { return nil }

// hookShell returns a command for the command interpreter.
func hookShell(command string) *exec.Cmd { return exec.Command("cmd", "/C", command) }

// killHook kills the interpreter. Processes that it started continue.
func killHook(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = cmd.Process.Kill() // it may have ended
	}
}
