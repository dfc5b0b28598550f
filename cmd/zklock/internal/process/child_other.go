//go:build !unix

package process

import (
	"fmt"
	"os"
	"time"
)

// Child is a running command. Its methods may be called from any goroutine.
type Child struct {
	proc   *os.Process
	exited chan Exit
	began  chan error
}

// StartCommand starts cmd with the standard files of this process. These systems have no
// process groups, so the processes that the command starts are not ended with it. A
// goroutine waits for the command and ends with it.
func StartCommand(cmd Command, _ string, ready func(group int) error) (*Child, error) {
	proc, err := os.StartProcess(cmd.Path, cmd.Args, &os.ProcAttr{
		Env:   cmd.Env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", cmd.Path, ErrNotExecutable, err)
	}
	if err := ready(proc.Pid); err != nil {
		_ = proc.Kill() // it may have run already
		return nil, err
	}
	c := &Child{proc: proc, exited: make(chan Exit, 1), began: make(chan error, 1)}
	c.began <- nil
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

// Began returns a channel that gets nil once.
func (c *Child) Began() <-chan error { return c.began }

// Group returns the process id of the command.
func (c *Child) Group() int { return c.proc.Pid }

// Exited returns a channel that gets the end of the command, once.
func (c *Child) Exited() <-chan Exit { return c.exited }

// Stopped returns nil: commands cannot be stopped here.
func (c *Child) Stopped() <-chan int { return nil }

// Signal ends the command, except for an interrupt, which the console itself sends to the
// command.
func (c *Child) Signal(sig os.Signal) {
	if sig != os.Interrupt {
		c.Kill()
	}
}

// Terminate ends the command, because these systems have no TERM.
func (c *Child) Terminate(time.Duration) { c.Kill() }

// TerminateLeft does nothing, because the command's processes cannot be found.
func (c *Child) TerminateLeft(time.Duration) {}

// Left is always false, for the same reason as TerminateLeft.
func (c *Child) Left() bool { return false }

// ListError is always nil.
func (c *Child) ListError() error { return nil }

// Kill ends the command.
func (c *Child) Kill() { _ = c.proc.Kill() } // it may have ended

// ForwardedSignals returns the signals that go to the command.
func ForwardedSignals() []os.Signal { return []os.Signal{os.Interrupt} }

// ChildMain is never called on these systems.
func ChildMain([]string) int { return 125 }
