//go:build unix

package process

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// stopTime limits the wait for the effect of a signal that may not arrive.
const stopTime = 200 * time.Millisecond

// contTime is how long a signal that was sent together with SIGCONT, as by the shell's kill, can
// take to arrive after it.
const contTime = 50 * time.Millisecond

// HasTerminal reports whether this process has a terminal. A command that holds a lock then needs
// a front.
func HasTerminal() bool {
	fd, err := openTerminal()
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// openTerminal opens the terminal of this process. It returns -1 and an error if there is none.
func openTerminal() (int, error) {
	return unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
}

// usesTerminal reports whether the command gets the terminal when it starts: if its input is a
// terminal, and its output is no pipe. In a pipeline, another process, such as a pager, may
// read the terminal. Then the command gets the terminal when it uses it.
func usesTerminal() bool {
	_, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	info, failed := os.Stdout.Stat()
	return err == nil && (failed != nil || info.Mode()&os.ModeNamedPipe == 0)
}

// front is the process that the shell started. It belongs to one goroutine.
type front struct {
	keeper  *os.Process
	sock    *os.File    // to the keeper
	group   int         // of the command, 0 before it runs
	ending  bool        // a signal that ends programs was forwarded
	paused  bool        // the job was stopped
	tty     int         // the terminal, -1 if there is none
	uses    bool        // the command gets the terminal while the front's job has it
	modes   *term.State // of the terminal before the command had it; may be nil
	signals chan os.Signal
}

// RunFront starts the keeper with args and returns when it has ended. This process must end in
// the same way.
func RunFront(exe string, args []string) (Exit, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return Exit{}, fmt.Errorf("create a socket for the keeper: %w", err)
	}
	unix.CloseOnExec(pair[0])
	parentEnd := os.NewFile(uintptr(pair[0]), "keeper")
	defer parentEnd.Close()
	f := &front{sock: parentEnd, signals: make(chan os.Signal, 64)}
	if f.tty, err = openTerminal(); err == nil {
		defer unix.Close(f.tty)
	}
	f.uses = usesTerminal()
	signal.Notify(f.signals, append(ForwardedSignals(), unix.SIGTSTP)...)
	ReserveThreads(frontThreads)
	// The keeper's end keeps its number in exec, next to the descriptors that the user
	// passed.
	argv := append([]string{"zklock", KeeperArgument, strconv.Itoa(pair[1])}, args...)
	f.keeper, err = os.StartProcess(exe, argv, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	_ = unix.Close(pair[1])
	if err != nil {
		return Exit{}, fmt.Errorf("start the keeper: %w", err)
	}
	return f.follow(), nil
}

// follow forwards signals until the keeper has ended, and returns how it ended.
func (f *front) follow() Exit {
	messages, ended := make(chan message), make(chan Exit, 1)
	// This goroutine ends with the socket, which the end of the keeper closes.
	go func() {
		defer close(messages)
		for lines := bufio.NewScanner(f.sock); lines.Scan(); {
			if m, ok := decode(lines.Text()); ok {
				messages <- m
			}
		}
	}()
	// This goroutine ends with the keeper.
	go func() { ended <- awaitKeeper(f.keeper) }()
	for {
		select {
		case m, ok := <-messages:
			if !ok {
				messages = nil
				continue
			}
			f.handle(m)
		case sig := <-f.signals:
			f.handleSignal(sig)
		case exit := <-ended:
			f.takeTerminal(exit)
			return exit
		}
	}
}

// awaitKeeper waits for the keeper and returns how it ended.
func awaitKeeper(p *os.Process) Exit {
	state, err := p.Wait()
	if err != nil {
		return Exit{Code: 125}
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Exit{Code: -1, Signal: int(ws.Signal())}
	}
	return Exit{Code: state.ExitCode()}
}

// EndByInterrupt ends this process by INT. The caller has handled INT before. A shell, loop, or
// script around this process ends only if it sees that INT ended this process; for an exit code,
// it continues. EndByInterrupt returns if INT was ignored when this process started.
func EndByInterrupt() {
	if signal.Ignored(unix.SIGINT) {
		return
	}
	signal.Reset(unix.SIGINT)
	_ = unix.Kill(os.Getpid(), unix.SIGINT)
	time.Sleep(stopTime) // another thread may get the signal
}

// handle handles a message of the keeper.
func (f *front) handle(m message) {
	if m.group != 0 {
		f.admit(m.group)
		return
	}
	stop := unix.Signal(m.stopped)
	usesTerminal := stop == unix.SIGTTIN || stop == unix.SIGTTOU
	foreground := f.foreground()
	if usesTerminal && (foreground == f.group || foreground == unix.Getpgrp()) {
		f.uses = true
		f.resume() // it used the terminal before it had it
		return
	}
	// A command that is told to end while its job is stopped is continued in the background,
	// and can stop again at its read of the terminal before it ends. And the message can be
	// late: the command may have been continued or have ended since. A shell that has
	// continued this job does not expect it to stop again.
	if f.ending && usesTerminal || !isStopped(f.group) {
		return
	}
	switch {
	case !usesTerminal:
		// The terminal sent ^Z only to the command's group. The front's job, which can have
		// other processes, must stop as it would without the front.
		f.pause(unix.SIGSTOP, foreground == f.group)
	case !hasShell():
		// The kernel sends HUP to a stopped job that has lost its shell. If this process
		// ignores HUP, as under nohup, so do the keeper and the command.
		sig := unix.SIGHUP
		if signal.Ignored(sig) {
			sig = unix.SIGTERM
		}
		f.forward(sig)
	case inJob(foreground):
		f.pause(unix.SIGSTOP, false) // the other command continues, with the terminal
	default:
		// The shell, or an outer zklock run, can give the terminal to this job.
		f.uses = true
		f.pause(stop, false)
	}
}

// admit gives the terminal to the command, and lets it begin. The signals that this process got
// come first: a job that continues after a stop may continue only to end, and then the keeper ends
// the process that waits to become the command.
func (f *front) admit(group int) {
	for quiet := f.quiet(); quiet != nil; {
		select {
		case sig := <-f.signals:
			f.handleSignal(sig)
			quiet = f.quiet()
		case <-quiet:
			quiet = nil
		}
	}
	f.group = group
	if f.ending {
		return
	}
	f.giveTerminal()
	_, _ = f.sock.Write([]byte{'\n'}) // the keeper may have ended
}

// quiet returns a channel that gets a value when no more signals are expected.
func (f *front) quiet() <-chan time.Time {
	if f.paused {
		return time.After(contTime)
	}
	return time.After(0)
}

// inJob reports whether the leader of a process group descends from a process of this
// process group, such as another zklock run of the same pipeline.
func inJob(leader int) bool {
	for pid := leader; pid > 1; pid = parent(pid) {
		if group, err := unix.Getpgid(pid); err == nil && group == unix.Getpgrp() {
			return true
		}
	}
	return false
}

// handleSignal handles a signal to the front.
func (f *front) handleSignal(sig os.Signal) {
	switch {
	case sig == unix.SIGCONT:
		f.resume()
	case sig == unix.SIGTSTP && f.group != 0:
		_ = unix.Kill(-f.group, unix.SIGTSTP) // when it stops, the front stops too
	case sig == unix.SIGTSTP:
		f.pause(unix.SIGSTOP, false) // the keeper keeps the position in the queue
	default:
		f.forward(sig)
	}
}

// forward sends a signal to the keeper, which may have ended.
func (f *front) forward(sig os.Signal) {
	_ = f.keeper.Signal(sig)
	switch sig {
	case unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT:
		f.ending = true
	}
}

// pause stops this process until it is continued, and with group also the rest of its
// process group. A Go program cannot restore the default effect of SIGTSTP after
// signal.Notify, so for that signal, stop is SIGSTOP, which the kernel does not ignore for
// orphaned groups. Therefore pause itself checks whether a shell can continue this process.
// If stop is SIGTTIN or SIGTTOU, it stops the group, as the terminal would.
func (f *front) pause(stop unix.Signal, group bool) {
	if group {
		// This process ignores the signal: signals can be delivered out of order, and a
		// SIGTSTP after the SIGCONT would stop the command a second time.
		signal.Ignore(unix.SIGTSTP)
		_ = unix.Kill(0, unix.SIGTSTP) // to the own group: always permitted
	}
	if hasShell() {
		f.paused = true
		target := 0
		if stop == unix.SIGSTOP || signal.Ignored(stop) {
			target, stop = unix.Getpid(), unix.SIGSTOP
		}
		_ = unix.Kill(target, stop)
		f.awaitCont()
	}
	signal.Notify(f.signals, unix.SIGTSTP)
	f.resume()
}

// awaitCont returns when the process continues. It drops queued SIGTSTPs of the stop that
// is over. A SIGSTOP takes effect some time after it was sent.
func (f *front) awaitCont() {
	deadline := time.After(stopTime)
	for {
		select {
		case <-deadline: // it also runs during the stop
			return
		case sig := <-f.signals:
			switch sig {
			case unix.SIGCONT:
				return
			case unix.SIGTSTP:
			default:
				f.forward(sig)
			}
		}
	}
}

// hasShell reports whether the process group has a shell that can continue it: an ancestor
// outside of the group but in the same session. The kernel calls other groups orphaned,
// and ignores SIGTSTP for them.
func hasShell() bool {
	session, err := unix.Getsid(0)
	if err != nil {
		return false
	}
	for pid := unix.Getppid(); pid > 1; pid = parent(pid) {
		group, err := unix.Getpgid(pid)
		if err != nil {
			return false
		}
		if group != unix.Getpgrp() {
			ancestorSession, err := unix.Getsid(pid)
			return err == nil && ancestorSession == session
		}
	}
	return false
}

// isStopped reports whether a process is stopped. Without /proc, it assumes so.
func isStopped(pid int) bool {
	state, _, err := readStat(pid)
	if err != nil {
		_, _, self := readStat(os.Getpid())
		return self != nil
	}
	return state == "T"
}

// readStat returns the state and the parent of a process, as /proc shows them.
func readStat(pid int) (state, ppid string, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", "", err
	}
	// The name in parentheses can contain any character; state and parent follow it.
	at := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[at+1:])
	if at < 0 || len(fields) < 2 {
		return "", "", fmt.Errorf("/proc/%d/stat is malformed", pid)
	}
	return string(fields[0]), string(fields[1]), nil
}

// parent returns the parent of a process, 0 if it is unknown.
func parent(pid int) int {
	_, text, err := readStat(pid)
	if err != nil {
		return 0
	}
	ppid, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return ppid
}

// giveTerminal gives the terminal to the command, if the front's group has it.
func (f *front) giveTerminal() {
	if !f.uses || f.foreground() != unix.Getpgrp() {
		return
	}
	if f.modes == nil {
		f.modes, _ = term.GetState(f.tty) // nil if it fails
	}
	f.setForeground(f.group)
}

// resume continues the command, with the terminal.
func (f *front) resume() {
	if f.group == 0 {
		return
	}
	f.giveTerminal()
	_ = unix.Kill(-f.group, unix.SIGCONT) // the group may have ended
}

// minKilled is the least exit code that can mean that zklock or a signal ended the command.
const minKilled = 120

// takeTerminal takes the terminal back from the command. Like a shell, it restores the modes
// of the terminal if the command was ended: a command that gets KILL cannot restore them.
//
// If the command had the terminal, ^C signaled only the command's group. If the command ended by
// INT, so that the keeper did too, takeTerminal sends it to the rest of the front's job, such as the
// script or make that started zklock, as the terminal would have done. It does not if the front
// forwarded a signal: then another process chose whom to signal. An exit code of 130 does not count:
// a program can have another reason for it, such as a shell whose last command was interrupted.
func (f *front) takeTerminal(exit Exit) {
	if f.group == 0 || f.foreground() != f.group {
		return
	}
	f.setForeground(unix.Getpgrp())
	if exit.Status() >= minKilled && f.modes != nil {
		_ = term.Restore(f.tty, f.modes) // the terminal may be gone
	}
	if !f.ending && exit.Signal == int(unix.SIGINT) {
		_ = unix.Kill(0, unix.SIGINT) // this process catches it
	}
}

// foreground returns the foreground process group of the terminal, 0 if there is none.
func (f *front) foreground() int {
	group, err := unix.IoctlGetInt(f.tty, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// setForeground gives the terminal to a process group. It ignores SIGTTOU, which would
// stop a process that does so from the background.
func (f *front) setForeground(group int) {
	signal.Ignore(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(f.tty, unix.TIOCSPGRP, group) // the group or terminal may be gone
	signal.Reset(unix.SIGTTOU)
}
