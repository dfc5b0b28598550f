package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// ErrExited reports that a child has ended.
var ErrExited = errors.New("harness: process has exited; look at its log")

// Process is a child that [Start] started. Any goroutine may call its methods.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child is reaped
	err  error         // of cmd.Wait; read only after done
}

// Start starts cmd in a new process group. The child receives SIGKILL when this process ends.
func Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	// A grandchild that keeps the pipe open must not block Wait forever.
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = 30 * time.Second
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	// The kernel sends the signal when the thread that forked ends, not the process. So this
	// goroutine keeps its thread until the child is reaped, and then ends.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- fmt.Errorf("harness: start %s: %w", cmd.Path, err)
			return
		}
		started <- nil
		p.err = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// Pid returns the process id of the child.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the child is reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the child and returns the error of [exec.Cmd.Wait].
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Signal sends sig only to the child. It returns [ErrExited] if the child has ended.
func (p *Process) Signal(sig os.Signal) error {
	select {
	case <-p.done:
		return ErrExited
	default:
	}
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("harness: send %v to pid %d: %w", sig, p.Pid(), err)
	}
	return nil
}

// Kill sends SIGKILL to the child's process group, and waits until the child is reaped. If the
// child has ended, Kill does nothing.
func (p *Process) Kill() {
	select {
	case <-p.done:
		return
	default:
	}
	// The pid is still that of the child and its group, because done is open. An error means
	// that the group has ended.
	if err := syscall.Kill(-p.Pid(), syscall.SIGKILL); err != nil {
		_ = p.cmd.Process.Kill()
	}
	<-p.done
}
