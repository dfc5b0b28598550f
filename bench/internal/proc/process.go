package proc

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// waitDelay is how long the output of an ended process may stay open.
const waitDelay = 2 * time.Second

// A Process is a child process. It gets SIGKILL when this program dies, so that no server
// remains. It is safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process is reaped
	err  error         // of cmd.Wait; read only after done
}

// Start starts cmd and appends its output to the file log.
func Start(cmd *exec.Cmd, log string) (*Process, error) {
	out, err := os.OpenFile(log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("proc: log of %s: %w", cmd.Path, err)
	}
	defer out.Close() // the child has its own descriptor
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = waitDelay
	p := &Process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error, 1)
	// The kernel sends the death signal when the thread that forked ends, so this goroutine
	// keeps its thread. It ends when the child is reaped.
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("proc: start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err waits for the end of the process, and returns the error of cmd.Wait.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Kill kills the process and its group, and waits until the process has ended.
func (p *Process) Kill() {
	select {
	case <-p.done:
		return
	default:
	}
	// The process is not reaped before done is closed, so its id has not been reused. An
	// error means that the group has ended already.
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	<-p.done
}
