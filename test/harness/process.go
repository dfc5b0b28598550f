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

// ErrExited is reported by calls that need a running child when it has ended.
var ErrExited = errors.New("harness: process has exited; look at its log")

// Process is a child that was started by [Start]. Its methods may be called
// from any goroutine.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child was reaped
	err  error         // how it ended; read only after done
}

// Start starts cmd, whose fields the caller has set, in a process group of its
// own. The child receives SIGKILL when this process dies.
func Start(cmd *exec.Cmd) (*Process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	// A grandchild that keeps the pipe open must not make Wait hang. What the child
	// has said is read in time even where the machine stands still for a while.
	if cmd.WaitDelay == 0 {
		cmd.WaitDelay = 30 * time.Second
	}
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	// The kernel sends the death signal when the *thread* that forked ends, not
	// the process. So this goroutine keeps its thread until the child was
	// reaped, which is also where it ends.
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

// Done is closed once the child has ended and was reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end of the child and returns what [exec.Cmd.Wait] said.
func (p *Process) Wait() error {
	<-p.done
	return p.err
}

// Signal sends sig to the child alone. It returns [ErrExited] after its end.
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

// Kill sends SIGKILL to the child's process group, stopped ones included, and
// waits until the child was reaped. It does nothing after its end.
func (p *Process) Kill() {
	select {
	case <-p.done:
		return
	default:
	}
	// The group's id is the child's pid. It is still the child's, because the child is
	// not reaped before done is closed. An error means that the group has ended.
	if err := syscall.Kill(-p.Pid(), syscall.SIGKILL); err != nil {
		_ = p.cmd.Process.Kill()
	}
	<-p.done
}
