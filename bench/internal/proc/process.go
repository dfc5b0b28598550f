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

// Process is a child. It gets SIGKILL when this program dies, so that no server
// is left over. Its methods may be called from any goroutine.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it was reaped
	err  error         // how it ended; read after done only
}

// Start starts cmd, with its output appended to the file log.
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
	// The death signal comes when the thread that forked ends, so this goroutine
	// keeps its thread. It ends when the child was reaped.
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

// PID is the process's id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Err says how the process ended. Call it after Done.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// Kill ends the process and its group by SIGKILL and waits until it is gone.
func (p *Process) Kill() {
	select {
	case <-p.done:
		return
	default:
	}
	// Nobody has reaped it before done is closed: the id is still its own. An
	// error means that the group has ended by itself.
	_ = syscall.Kill(-p.PID(), syscall.SIGKILL)
	<-p.done
}
