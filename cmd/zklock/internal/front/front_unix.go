//go:build unix

package front

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

	"github.com/zklock/zklock/cmd/zklock/internal/child"
)

// stopTime bounds the wait for the end of a stop that is not told of.
const stopTime = 200 * time.Millisecond

// Wanted reports whether this process has a terminal and so needs a front.
func Wanted() bool {
	fd, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	_ = unix.Close(fd)
	return true
}

// front is the process that the shell sees. All of it belongs to one goroutine.
type front struct {
	keeper   *os.Process
	sock     *os.File // to the keeper
	group    int      // the command's, 0 before it runs
	terminal bool     // standard input is one
	signals  chan os.Signal
}

// Run starts the keeper with args and stands for it until it ends. It returns
// the exit code for this process.
func Run(exe string, args []string) (int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return 0, fmt.Errorf("no socket for the keeper: %w", err)
	}
	unix.CloseOnExec(pair[0])
	mine := os.NewFile(uintptr(pair[0]), "keeper")
	defer mine.Close()
	f := &front{sock: mine, signals: make(chan os.Signal, 64)}
	_, err = unix.IoctlGetInt(0, unix.TIOCGPGRP)
	f.terminal = err == nil
	signal.Notify(f.signals, append(child.Forwarded(), unix.SIGTSTP)...)
	// The other end passes through exec under its own number, beside whatever
	// the user has handed down.
	argv := append([]string{"zklock", Argument, strconv.Itoa(pair[1])}, args...)
	f.keeper, err = os.StartProcess(exe, argv, &os.ProcAttr{
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	_ = unix.Close(pair[1])
	if err != nil {
		return 0, fmt.Errorf("the keeper cannot be started: %w", err)
	}
	return f.follow(), nil
}

// follow passes signals on until the keeper has ended.
func (f *front) follow() int {
	messages, ended := make(chan message), make(chan int, 1)
	// Ends at the socket's end, which the keeper's end brings about.
	go func() {
		defer close(messages)
		for lines := bufio.NewScanner(f.sock); lines.Scan(); {
			if m, ok := decode(lines.Text()); ok {
				messages <- m
			}
		}
	}()
	// Ends with the keeper.
	go func() { ended <- await(f.keeper) }()
	for {
		select {
		case m, ok := <-messages:
			if !ok {
				messages = nil
				continue
			}
			f.told(m)
		case sig := <-f.signals:
			f.signalled(sig)
		case code := <-ended:
			f.take()
			return code
		}
	}
}

// await returns the keeper's exit code as a shell would show it.
func await(p *os.Process) int {
	state, err := p.Wait()
	if err != nil {
		return 125
	}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return state.ExitCode()
}

// told takes a message of the keeper.
func (f *front) told(m message) {
	if m.group != 0 {
		f.group = m.group
		f.give()
		_, _ = f.sock.Write([]byte{'\n'}) // the keeper may be gone
		return
	}
	stop := unix.Signal(m.stopped)
	if (stop == unix.SIGTTIN || stop == unix.SIGTTOU) && f.foreground() == f.group {
		f.resume() // it asked for the terminal before it had it
		return
	}
	// The terminal sent its ^Z to the command's group alone; our own job, of
	// which we may be a part only, is to stop as it would have without us.
	f.pause(f.foreground() == f.group)
}

// signalled handles a signal that was sent to the front.
func (f *front) signalled(sig os.Signal) {
	switch {
	case sig == unix.SIGCONT:
		f.resume()
	case sig == unix.SIGTSTP && f.group != 0:
		_ = unix.Kill(-f.group, unix.SIGTSTP) // its stop will stop us
	case sig == unix.SIGTSTP:
		f.pause(false) // the keeper keeps our place in line
	default:
		_ = f.keeper.Signal(sig) // one that is gone shows by its end
	}
}

// pause stops this process, and the rest of its group if asked to, until it is
// continued. Go cannot give SIGTSTP its default effect back once it was
// notified of it, so we stop ourselves by the signal that nothing can catch;
// and so we must know by ourselves whether anybody would continue us.
func (f *front) pause(group bool) {
	if group {
		// Not to ourselves: signals are told out of order, and one that came
		// after the SIGCONT would stop the command a second time.
		signal.Ignore(unix.SIGTSTP)
		_ = unix.Kill(0, unix.SIGTSTP) // to our own group: always permitted
	}
	if controlled() {
		_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
		f.awaitCont()
	}
	signal.Notify(f.signals, unix.SIGTSTP)
	f.resume()
}

// awaitCont returns when the process goes on, and drops what was queued of the
// stop that is over. A stop takes effect some time after it was sent.
func (f *front) awaitCont() {
	deadline := time.After(stopTime)
	for {
		select {
		case <-deadline: // it runs down while we are stopped
			return
		case sig := <-f.signals:
			switch sig {
			case unix.SIGCONT:
				return
			case unix.SIGTSTP:
			default:
				_ = f.keeper.Signal(sig)
			}
		}
	}
}

// controlled reports whether our process group has a shell that may continue
// it: an ancestor outside of the group but in the session. The kernel lets
// other groups, which it calls orphaned, ignore SIGTSTP.
func controlled() bool {
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
			theirs, err := unix.Getsid(pid)
			return err == nil && theirs == session
		}
	}
	return false
}

// parent is the parent of another process, 0 where that cannot be known.
func parent(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name in parentheses may hold anything; state and parent follow it.
	at := bytes.LastIndexByte(stat, ')')
	fields := bytes.Fields(stat[at+1:])
	if at < 0 || len(fields) < 2 {
		return 0
	}
	ppid, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return ppid
}

// give gives the command the terminal, if it is ours to give.
func (f *front) give() {
	if f.terminal && f.foreground() == unix.Getpgrp() {
		f.setForeground(f.group)
	}
}

// resume lets the command go on, with the terminal.
func (f *front) resume() {
	if f.group == 0 {
		return
	}
	f.give()
	_ = unix.Kill(-f.group, unix.SIGCONT) // a group that is gone has no use for it
}

// take takes the terminal back from the command.
func (f *front) take() {
	if f.terminal && f.group != 0 && f.foreground() == f.group {
		f.setForeground(unix.Getpgrp())
	}
}

// foreground is the terminal's foreground process group, 0 if there is none.
func (f *front) foreground() int {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// setForeground hands the terminal over. Who does that from the background is
// stopped unless it ignores SIGTTOU.
func (f *front) setForeground(group int) {
	signal.Ignore(unix.SIGTTOU)
	_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, group) // a group or terminal that is gone
	signal.Reset(unix.SIGTTOU)
}
