//go:build unix

package child

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/cmd/zklock/internal/inherit"
	"github.com/zklock/zklock/cmd/zklock/internal/kin"
)

// Child is a running command. Its methods may be called from any goroutine, but
// Terminate and Kill from one at a time.
type Child struct {
	pid     int
	adopts  bool // orphans of the command become children of this process
	stopped chan int
	exited  chan Exit
	kin     kin.Set // the command's processes outside of its group
	empty   bool    // the group has ended: its number may belong to another one
}

// Start runs cmd with this process's standard files, and with every other file
// that was open to this process when it began, as flock does. exe is this
// program, which becomes the command (see Begin) once ready, called with the
// command's process group, has returned nil. So there is no moment at which
// the command runs and its watchdog does not know.
//
// A goroutine waits for the command; it ends when the command has ended. It
// keeps its thread, since the kernel sends the parent-death signal when the
// thread that started a child ends, not when the process does.
//
// On Linux this process adopts what loses its parents below it, so that Left finds
// it. A goroutine reaps those; it ends with the command as well.
func Start(cmd Command, exe string, ready func(group int) error) (*Child, error) {
	c := &Child{adopts: adopt(), stopped: make(chan int, 16), exited: make(chan Exit, 1)}
	mine, theirs, err := gate()
	if err != nil {
		return nil, err
	}
	defer mine.Close()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		proc, err := start(cmd, exe, theirs)
		_ = unix.Close(theirs)
		if err != nil {
			started <- fmt.Errorf("%s: cannot be started: %w", cmd.Path, err)
			return
		}
		c.pid = proc.Pid
		c.kin.Command, _ = kin.Of(c.pid) // it waits at the gate
		started <- nil
		over := make(chan struct{})
		if c.adopts {
			go c.reapUntil(over)
		}
		c.wait()
		close(over)
		_ = proc.Release() // the wait above has reaped it
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	if err := ready(c.pid); err != nil {
		c.Kill()
		<-c.exited
		return nil, err
	}
	if err := open(mine); err != nil {
		<-c.exited
		return nil, explain(cmd.Path, err)
	}
	return c, nil
}

// gate makes the socket at which the new process waits. Its end goes through
// exec under its own number, beside whatever the user has handed down.
func gate() (mine *os.File, theirs int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("no socket for the command's start: %w", err)
	}
	unix.CloseOnExec(pair[0])
	return os.NewFile(uintptr(pair[0]), "gate"), pair[1], nil
}

// start makes the process. SIGTTOU, which this process may ignore to write
// from the background, would be ignored by the command as well.
func start(cmd Command, exe string, gate int) (*os.Process, error) {
	if signal.Ignored(unix.SIGTTOU) {
		signal.Reset(unix.SIGTTOU)
		defer signal.Ignore(unix.SIGTTOU)
	}
	env := cmd.Env
	if env == nil {
		env = []string{}
	}
	argv := append([]string{"zklock", Argument, strconv.Itoa(gate), cmd.Path}, cmd.Args...)
	return os.StartProcess(exe, argv, &os.ProcAttr{
		Env:   env,
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   attributes(),
	})
}

// open lets the new process become the command, and returns why it could not:
// the command's exec closes the gate, a failed one sends its number.
func open(gate *os.File) error {
	if _, err := gate.Write([]byte{'\n'}); err != nil {
		return nil // it has ended already, by a signal: its exit tells
	}
	answer, err := io.ReadAll(gate)
	if len(answer) == 0 || err != nil {
		return nil
	}
	n, err := strconv.Atoi(string(answer))
	if err != nil {
		return nil
	}
	return syscall.Errno(n)
}

// Begin is the new process until it is the command: args are the descriptor of
// the gate, the executable, and the command's own arguments. It returns, with
// an exit code, only if it fails.
func Begin(args []string) int {
	const failed = 125
	if len(args) < 3 {
		return failed
	}
	fd, err := strconv.Atoi(args[0])
	if err != nil || fd < 3 {
		return failed
	}
	inherit.Mark(fd)
	// The parent-death signal belongs to a thread; the one that calls exec is
	// the one that is left.
	runtime.LockOSThread()
	dieWithParent()
	gate := os.NewFile(uintptr(fd), "gate")
	if n, err := gate.Read(make([]byte, 1)); n != 1 || err != nil {
		return failed // the parent has died or thought better of it
	}
	err = syscall.Exec(args[1], args[2:], os.Environ())
	var errno syscall.Errno
	if errors.As(err, &errno) {
		_, _ = gate.WriteString(strconv.Itoa(int(errno))) // the parent may be gone
	}
	return failed
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

// reapUntil reaps orphans whenever a child of this process has ended, until over is
// closed.
func (c *Child) reapUntil(over <-chan struct{}) {
	news := make(chan os.Signal, 1)
	signal.Notify(news, unix.SIGCHLD)
	defer signal.Stop(news)
	for {
		c.reap()
		select {
		case <-news:
		case <-over:
			return
		}
	}
}

// reap takes away the orphans that have ended. It may do so with a watchdog or local
// server of this process as well: nobody asks how those ended.
func (c *Child) reap() {
	for _, pid := range kin.Children(os.Getpid()) {
		if pid != c.pid {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // most have not ended
		}
	}
}

// Group is the command's process group, which is its process id too.
func (c *Child) Group() int { return c.pid }

// Exited gives the command's end, once.
func (c *Child) Exited() <-chan Exit { return c.exited }

// Stopped gives the signal of each stop of the command, such as SIGTSTP.
func (c *Child) Stopped() <-chan int { return c.stopped }

// Signal sends to the whole process group. A group that is gone is no error. CONT
// goes along with a signal that asks to end: a stopped command could not obey.
func (c *Child) Signal(sig os.Signal) {
	s, ok := sig.(syscall.Signal)
	if !ok || c.empty {
		return
	}
	_ = unix.Kill(-c.pid, s) // ESRCH: it is gone, which is fine
	switch s {
	case unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT:
		_ = unix.Kill(-c.pid, unix.SIGCONT)
	}
}

// Terminate asks the whole group to end, and what the command has started
// outside of it.
func (c *Child) Terminate() {
	c.find() // a parent that obeys first takes the trace with it
	c.Signal(unix.SIGTERM)
	c.kin.Terminate()
}

// TerminateLeft asks the processes to end that have not been asked yet: those
// outside of the group that Terminate has not found, and lets those of the group,
// which were sent a signal before, run to obey it.
func (c *Child) TerminateLeft() {
	c.find()
	c.Signal(unix.SIGCONT)
	c.kin.Terminate()
}

// Kill ends the whole group at once, and what the command has started outside of
// it.
func (c *Child) Kill() {
	c.find()
	c.Signal(unix.SIGKILL)
	c.kin.Kill()
}

// Left reports whether any process is left of what the command was and has
// started: of its group, and on Linux of all its descendants. It is for a command
// that has ended.
func (c *Child) Left() bool {
	for reaped := 1; reaped > 0; { // a zombie would count as one of the group
		reaped, _ = unix.Wait4(-c.pid, nil, unix.WNOHANG, nil) // none is left to reap
	}
	// EPERM is a process of another user.
	c.empty = c.empty || unix.Kill(-c.pid, 0) == unix.ESRCH
	for range 2 { // a process may lose its parent, and be adopted, during a look
		if c.find(); !c.empty || c.kin.Len() > 0 {
			return true
		}
	}
	if c.adopts {
		c.reap() // what was ended outside the group leaves no zombie to the next parent
	}
	return false
}

// find looks for the command's processes outside of its group.
func (c *Child) find() {
	root := c.pid
	if c.adopts {
		root = os.Getpid()
	}
	c.kin.Look(root, c.pid)
}

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
