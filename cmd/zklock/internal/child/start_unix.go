//go:build unix

package child

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Child is a running command. Its methods may be called from any goroutine.
type Child struct {
	pid     int
	stopped chan int
	exited  chan Exit
}

// Start runs cmd with this process's standard files, and with every other file
// that was open to this process when it began, as flock does.
//
// A goroutine waits for the command; it ends when the command has ended. It
// keeps its thread, since the kernel sends the parent-death signal when the
// thread that started a child ends, not when the process does.
func Start(cmd Command) (*Child, error) {
	c := &Child{stopped: make(chan int, 16), exited: make(chan Exit, 1)}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		proc, err := start(cmd)
		if err != nil {
			started <- err
			return
		}
		c.pid = proc.Pid
		started <- nil
		c.wait()
		_ = proc.Release() // the wait above has reaped it
	}()
	if err := <-started; err != nil {
		return nil, explain(cmd.Path, err)
	}
	return c, nil
}

// start makes the process. SIGTTOU, which this process may ignore to write
// from the background, would be ignored by the command as well.
func start(cmd Command) (*os.Process, error) {
	if signal.Ignored(unix.SIGTTOU) {
		signal.Reset(unix.SIGTTOU)
		defer signal.Ignore(unix.SIGTTOU)
	}
	env := cmd.Env
	if env == nil {
		env = []string{}
	}
	return os.StartProcess(cmd.Path, cmd.Args, &os.ProcAttr{
		Env:   env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   attributes(),
	})
}

// explain gives a failed exec the same meaning as Find gives a bad file. Only
// exec knows of a missing interpreter or a foreign format.
func explain(path string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%s: %w, or the interpreter in its first line is missing", path, ErrNotFound)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOEXEC), errors.Is(err, unix.EISDIR):
		return fmt.Errorf("%s: %w: %w", path, ErrNotExecutable, err)
	}
	return fmt.Errorf("%s: cannot be started: %w", path, err)
}

// wait follows the command to its end.
func (c *Child) wait() {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(c.pid, &status, unix.WUNTRACED, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			// Somebody ignores SIGCHLD for us: the end is known, its code isn't.
			c.exited <- Exit{Code: 125}
			return
		case status.Stopped():
			select {
			case c.stopped <- int(status.StopSignal()):
			default: // nobody follows the stops
			}
		case status.Signaled():
			c.exited <- Exit{Code: -1, Signal: int(status.Signal())}
			return
		default:
			c.exited <- Exit{Code: status.ExitStatus()}
			return
		}
	}
}

// Group is the command's process group, which is its process id too.
func (c *Child) Group() int { return c.pid }

// Exited gives the command's end, once.
func (c *Child) Exited() <-chan Exit { return c.exited }

// Stopped gives the signal of each stop of the command, such as SIGTSTP.
func (c *Child) Stopped() <-chan int { return c.stopped }

// Signal sends to the whole process group. A group that is gone is no error.
func (c *Child) Signal(sig os.Signal) {
	if s, ok := sig.(syscall.Signal); ok {
		_ = unix.Kill(-c.pid, s) // ESRCH: it is gone, which is fine
	}
}

// Terminate asks the whole group to end. CONT goes along: a stopped command
// could not obey.
func (c *Child) Terminate() {
	c.Signal(unix.SIGTERM)
	c.Signal(unix.SIGCONT)
}

// Kill ends the whole group at once.
func (c *Child) Kill() { c.Signal(unix.SIGKILL) }

// Forwarded are the signals that are meant for the command. One that is
// ignored at the start stays so: that is what nohup and background jobs of
// scripts want.
func Forwarded() []os.Signal {
	var signals []os.Signal
	for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGALRM, unix.SIGCONT} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signals
}
