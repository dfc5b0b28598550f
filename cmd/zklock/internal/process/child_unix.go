//go:build unix

package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Child is a running command. Its methods may be called from any goroutine, but only one
// at a time may call Terminate, TerminateLeft, Kill, and Left.
type Child struct {
	pid         int
	adopts      bool // orphans of the command become children of this process
	stopped     chan int
	exited      chan Exit
	began       chan error
	appeared    atomic.Pointer[Process] // the command, if /proc hid it before its exec
	descendants Descendants             // the command's processes outside of its group
	empty       bool                    // the group has ended, so another group may get its number
}

// StartCommand starts cmd with the standard files of this process and, like flock, with
// all files that this process inherited, except cmd.Withheld. exe is this program. It becomes
// the command (see ChildMain) after ready returned nil. ready gets the command's process group,
// so that the watchdog knows the group before the command runs. StartCommand does not wait for
// cmd.Admit, nor for the exec, which a file system can delay: see Began.
//
// A goroutine waits for the command and ends with it. It keeps its thread, because the
// kernel sends the parent-death signal when the thread that started a child ends.
//
// On Linux this process adopts orphaned descendants, so that Left finds them. A second
// goroutine reaps them, and also ends with the command.
func StartCommand(cmd Command, exe string, ready func(group int) error) (*Child, error) {
	c := &Child{adopts: adoptOrphans(), stopped: make(chan int, 16), exited: make(chan Exit, 1), began: make(chan error, 1)}
	parentEnd, childEnd, err := newGate()
	if err != nil {
		return nil, err
	}
	started, over := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		proc, err := start(cmd, exe, childEnd)
		_ = unix.Close(childEnd)
		if err != nil {
			started <- fmt.Errorf("start %s: %w", cmd.Path, err)
			return
		}
		c.pid = proc.Pid
		c.descendants.Command, _ = FindProcess(c.pid) // it waits at the gate
		started <- nil
		if c.adopts {
			go c.reapUntil(over)
		}
		c.wait()
		close(over)
		_ = proc.Release() // c.wait has reaped it
	}()
	if err := <-started; err != nil {
		_ = parentEnd.Close()
		return nil, err
	}
	if err := ready(c.pid); err != nil {
		_ = parentEnd.Close()
		c.Kill()
		<-c.exited
		return nil, err
	}
	hidden := c.descendants.Command == (Process{}) // /proc hides it while it is zklock
	go func() {                                    // ends when the process has become the command, or has ended
		defer parentEnd.Close()
		var err error
		if cmd.Admit != nil {
			err = cmd.Admit(c.pid, over)
		}
		if err != nil {
			c.began <- err // without an open gate, the process ends
			return
		}
		err = openGate(parentEnd)
		if p, ok := FindProcess(c.pid); ok && hidden && err == nil && p.Group == c.pid {
			c.appeared.Store(&p)
		}
		if err != nil {
			err = execError(cmd.Path, err)
		}
		c.began <- err
	}()
	return c, nil
}

// newGate returns the two ends of the socket at which the new process waits. The child's
// end keeps its number in exec, next to the descriptors that the user passed.
func newGate() (parentEnd *os.File, childEnd int, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, 0, fmt.Errorf("create a socket to start the command: %w", err)
	}
	unix.CloseOnExec(pair[0])
	return os.NewFile(uintptr(pair[0]), "gate"), pair[1], nil
}

// start starts the process. This process may ignore SIGTTOU, to write from the
// background; start undoes that, because the command would inherit it.
func start(cmd Command, exe string, gate int) (*os.Process, error) {
	if signal.Ignored(unix.SIGTTOU) {
		signal.Reset(unix.SIGTTOU)
		defer signal.Ignore(unix.SIGTTOU)
	}
	env := cmd.Env
	if env == nil {
		env = []string{}
	}
	files := []*os.File{os.Stdin, os.Stdout, os.Stderr}
	for _, fd := range cmd.Withheld {
		if fd >= len(files) {
			CloseOnExec(fd)
			continue
		}
		none, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, err
		}
		defer none.Close()
		files[fd] = none
	}
	argv := append([]string{"zklock", ChildArgument, strconv.Itoa(gate), cmd.Path}, cmd.Args...)
	return os.StartProcess(exe, argv, &os.ProcAttr{
		Env:   env,
		Files: files,
		Sys:   attributes(),
	})
}

// openGate lets the new process become the command, and returns why it could not. A
// successful exec closes the gate; after a failed one the process sends the error number.
func openGate(gate *os.File) error {
	if _, err := gate.Write([]byte{'\n'}); err != nil {
		return nil // a signal has ended it: Exited reports that
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

// ChildMain runs in the new process until that becomes the command. args are the
// descriptor of the gate, the executable, and the arguments of the command. It returns an
// exit code only if it fails.
func ChildMain(args []string) int {
	const failed = 125
	if len(args) < 3 {
		return failed
	}
	fd, err := strconv.Atoi(args[0])
	if err != nil || fd < 3 {
		return failed
	}
	CloseOnExec(fd)
	// The parent-death signal belongs to a thread. Only the thread that calls exec
	// survives it.
	runtime.LockOSThread()
	dieWithParent()
	gate := os.NewFile(uintptr(fd), "gate")
	if n, err := gate.Read(make([]byte, 1)); n != 1 || err != nil {
		return failed // the parent has died, or ready failed
	}
	err = syscall.Exec(args[1], args[2:], os.Environ())
	if errors.Is(err, unix.ENOEXEC) && isText(args[1]) { // as execvp does
		err = syscall.Exec(shell, append([]string{shell, args[1]}, args[3:]...), os.Environ())
	}
	var errno syscall.Errno
	if errors.As(err, &errno) {
		_, _ = gate.WriteString(strconv.Itoa(int(errno))) // the parent may be gone
	}
	return failed
}

// shell runs hooks, and scripts that do not name an interpreter.
const shell = "/bin/sh"

// isText reports whether a file begins like a script, without a NUL. Otherwise it is a program
// for another system, and the shell would print many errors.
func isText(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	first := make([]byte, 128)
	n, err := f.Read(first)
	return (err == nil || err == io.EOF) && !bytes.Contains(first[:n], []byte{0})
}

// execError returns the error for a failed exec in the terms of FindCommand. Only exec
// detects a missing interpreter or a foreign format.
func execError(path string, err error) error {
	switch {
	case errors.Is(err, unix.ENOENT):
		return fmt.Errorf("%s: %w, or the interpreter in its first line is missing", path, ErrNotFound)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.ENOEXEC), errors.Is(err, unix.EISDIR):
		return fmt.Errorf("%s: %w: %w", path, ErrNotExecutable, err)
	}
	return fmt.Errorf("start %s: %w", path, err)
}

// wait waits for the end of the command and reports its stops.
func (c *Child) wait() {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(c.pid, &status, unix.WUNTRACED, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			// The parent of this process made it ignore SIGCHLD: the exit code is lost.
			c.exited <- Exit{Code: 125}
			return
		case status.Stopped():
			select {
			case c.stopped <- int(status.StopSignal()):
			default: // no goroutine reads the stops
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

// reapUntil reaps orphans each time a child of this process ends, until over is closed.
func (c *Child) reapUntil(over <-chan struct{}) {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	defer signal.Stop(ended)
	for {
		c.reap()
		select {
		case <-ended:
		case <-over:
			return
		}
	}
}

// reap reaps the orphans that have ended. It can also reap a watchdog or local server that
// this process started, because their exit codes are not used.
func (c *Child) reap() {
	for _, pid := range Children(os.Getpid()) {
		if pid != c.pid {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil) // fails if it still runs
		}
	}
}

// Began returns a channel that gets, once, nil after the exec of the command, or why it failed, or
// the error of Command.Admit. Exited follows. If a signal ends the process during its exec, the
// channel gets nil.
func (c *Child) Began() <-chan error { return c.began }

// Group returns the process group of the command, which is also its process id.
func (c *Child) Group() int { return c.pid }

// Exited returns a channel that gets the end of the command, once.
func (c *Child) Exited() <-chan Exit { return c.exited }

// Stopped returns a channel that gets the signal of each stop of the command, such as SIGTSTP.
func (c *Child) Stopped() <-chan int { return c.stopped }

// Signal sends a signal to the whole process group, if it still exists, and on Linux to a
// command that has moved to another group. It adds CONT to a signal that ends programs,
// because a stopped command could not handle it.
func (c *Child) Signal(sig os.Signal) {
	s, ok := sig.(syscall.Signal)
	if !ok || c.empty {
		return
	}
	c.send(s)
	switch s {
	case unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT:
		c.send(unix.SIGCONT)
	}
}

// send is Signal without the CONT.
func (c *Child) send(sig unix.Signal) {
	_ = unix.Kill(-c.pid, sig) // ESRCH: the group has ended
	if now, ok := FindProcess(c.pid); ok && now.Group != c.pid && now.start == c.command().start {
		now.Signal(sig) // it does not lead the group that it is in
	}
}

// Terminate sends TERM to the whole group, and until a time on the boot clock also to the
// processes that the command has started outside of it.
func (c *Child) Terminate(until time.Duration) {
	c.find() // first, because a process cannot be found after its parent has ended
	c.Signal(unix.SIGTERM)
	c.descendants.Terminate(until)
}

// TerminateLeft sends TERM to the processes outside of the group that have not got it, until
// a time on the boot clock. The processes of the group got a signal before; TerminateLeft
// sends them CONT, so that they can handle it.
func (c *Child) TerminateLeft(until time.Duration) {
	c.find()
	c.Signal(unix.SIGCONT)
	c.descendants.Terminate(until)
}

// Kill sends KILL to the whole group, and to the processes that the command has started
// outside of it. It searches for them first: what it kills leaves its children to this
// process while the search reads them.
func (c *Child) Kill() {
	c.find()
	c.Signal(unix.SIGKILL)
	c.descendants.Kill()
}

// maxSearches limits how many incomplete searches Left makes. It is more than enough to
// find a process that forks and exits again and again. A zombie that a debugger keeps makes
// every search incomplete.
const maxSearches = 64

// Left reports whether any process of the command's group, or on Linux any descendant of
// the command, still runs, or may run because the processes cannot be listed. Call it after
// the command has ended.
func (c *Child) Left() bool {
	for reaped := 1; reaped > 0; { // otherwise a zombie would count as a process of the group
		reaped, _ = unix.Wait4(-c.pid, nil, unix.WNOHANG, nil) // fails if no child is left
	}
	// EPERM means a process of another user.
	c.empty = c.empty || unix.Kill(-c.pid, 0) == unix.ESRCH
	// A thread of this process that ends passes its children to another thread, so one
	// complete search is not enough.
	for complete, all := 0, 0; complete < 2 && all < maxSearches; all++ {
		if c.adopts {
			c.reap() // a zombie makes a search incomplete
		}
		if c.find() {
			complete++
		}
		if !c.empty || c.descendants.Len() > 0 || c.descendants.failed != nil {
			return true
		}
	}
	return false
}

// ListError returns why the last call of Left could not list the processes, or nil if it
// could. Left was then true.
func (c *Child) ListError() error { return c.descendants.failed }

// find updates the list of the command's processes outside of its group. It reports
// whether the search was complete. If /proc hides the command, find finds none: it could not
// distinguish them from older processes.
func (c *Child) find() (complete bool) {
	if c.command() == (Process{}) {
		return true
	}
	root := c.pid
	if c.adopts {
		root = os.Getpid()
	}
	return c.descendants.Find(root, c.pid)
}

// command returns the process of the command, or the zero value while /proc hides it.
func (c *Child) command() Process {
	if p := c.appeared.Load(); p != nil {
		c.descendants.Command = *p
	}
	return c.descendants.Command
}

// ForwardedSignals returns the signals that go to the command. If INT or HUP is ignored at the
// start, it stays ignored, as nohup and background jobs of scripts need. Before main runs, the Go
// runtime installs handlers for all other signals, including QUIT and TERM. So zklock cannot
// know whether they were ignored, and the command gets them.
func ForwardedSignals() []os.Signal {
	var signals []os.Signal
	for _, s := range []syscall.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGALRM, unix.SIGCONT} {
		if !signal.Ignored(s) {
			signals = append(signals, s)
		}
	}
	return signals
}
