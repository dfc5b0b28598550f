//go:build !unix

package child

import (
	"fmt"
	"os"
)

// Child is a running command. Its methods may be called from any goroutine.
type Child struct {
	proc   *os.Process
	exited chan Exit
}

// Start runs cmd with this process's standard files. There are no process
// groups here: what the command starts itself is not ended with it. A
// goroutine waits for the command and ends with it.
func Start(cmd Command, _ string, ready func(group int) error) (*Child, error) {
	proc, err := os.StartProcess(cmd.Path, cmd.Args, &os.ProcAttr{
		Env:   cmd.Env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", cmd.Path, ErrNotExecutable, err)
	}
	if err := ready(proc.Pid); err != nil {
		_ = proc.Kill() // and what it has done until here is done
		return nil, err
	}
	c := &Child{proc: proc, exited: make(chan Exit, 1)}
	go func() {
		state, err := proc.Wait()
		if err != nil {
			c.exited <- Exit{Code: 125}
			return
		}
		c.exited <- Exit{Code: state.ExitCode()}
	}()
	return c, nil
}

// Group is the command's process id.
func (c *Child) Group() int { return c.proc.Pid }

// Exited gives the command's end, once.
func (c *Child) Exited() <-chan Exit { return c.exited }

// Stopped never gives anything.
func (c *Child) Stopped() <-chan int { return nil }

// Signal does nothing for interrupts, which the console sends to the command
// itself; anything else ends the command.
func (c *Child) Signal(sig os.Signal) {
	if sig != os.Interrupt {
		c.Kill()
	}
}

// Terminate ends the command: it cannot be asked.
func (c *Child) Terminate() { c.Kill() }

// TerminateLeft does nothing: what the command has started cannot be found.
func (c *Child) TerminateLeft() {}

// Left is always false, for the same reason.
func (c *Child) Left() bool { return false }

// Kill ends the command.
func (c *Child) Kill() { _ = c.proc.Kill() } // an ended one is fine

// Forwarded are the signals that are meant for the command.
func Forwarded() []os.Signal { return []os.Signal{os.Interrupt} }

// Begin is never started on these systems.
func Begin([]string) int { return 125 }
