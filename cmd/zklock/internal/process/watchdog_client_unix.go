//go:build unix

package process

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Watchdog is the wrapper's end of a watchdog process. Its methods may be called from any
// goroutine.
type Watchdog struct {
	pipe *os.File // an os.File serializes concurrent writes
	proc *os.Process
	died chan struct{}
	// ready is closed when the watchdog needs nothing more, such as threads, to guard a command.
	ready chan struct{}
}

// ErrNotReading means that a watchdog has not read its input for long, for example because
// it was stopped. When it continued, it could act on an old deadline.
var ErrNotReading = errors.New("the watchdog does not read its input")

// StartWatchdog starts a watchdog: the program exe (see [RunningProgram]) with
// WatchdogArgument. Two goroutines wait for it and end with it.
func StartWatchdog(exe string) (*Watchdog, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("create a pipe for the watchdog: %w", err)
	}
	started, out, err := os.Pipe()
	if err != nil {
		_, _ = r.Close(), w.Close()
		return nil, fmt.Errorf("create a pipe for the watchdog: %w", err)
	}
	cmd := exec.Command(exe)
	cmd.Args = []string{WatchdogName, WatchdogArgument}
	cmd.Stdin, cmd.Stdout = r, out
	cmd.Dir = "/"
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_, _ = r.Close(), out.Close() // the watchdog has copies
	if err != nil {
		_, _ = w.Close(), started.Close()
		return nil, fmt.Errorf("start the watchdog: %w", err)
	}
	shrinkPipe(w)
	g := &Watchdog{pipe: w, proc: cmd.Process, died: make(chan struct{}), ready: make(chan struct{})}
	go func() { // ends when the watchdog is ready, or has ended
		defer started.Close()
		if n, _ := started.Read(make([]byte, 1)); n == 1 {
			close(g.ready)
		}
	}()
	go func() {
		_ = cmd.Wait() // its exit code does not matter
		close(g.died)
	}()
	return g, nil
}

// Ready returns a channel that is closed when the watchdog can guard a command.
func (w *Watchdog) Ready() <-chan struct{} { return w.ready }

// Died returns a channel that is closed when the watchdog process has ended.
func (w *Watchdog) Died() <-chan struct{} { return w.died }

// Watch sends the process group that the watchdog guards, and what it needs of the environment
// of the command. This process has started it.
func (w *Watchdog) Watch(group int, env []string) error {
	text := fmt.Sprintf("wrapper %d\n", os.Getpid())
	for _, v := range env {
		if key, _, _ := strings.Cut(v, "="); key == EnvSession || key == EnvToken {
			text += "variable " + v + "\n"
		}
	}
	return w.write(text + fmt.Sprintf("group %d\n", group))
}

// Until sends the time at which the group must be dead, on the boot clock.
func (w *Watchdog) Until(t time.Duration) error { return w.write(fmt.Sprintf("until %d\n", int64(t))) }

// Bye sends that the command has ended, and closes the pipe.
func (w *Watchdog) Bye() {
	_ = w.write("bye\n") // the watchdog may have ended
	_ = w.pipe.Close()
}

// Kill kills the watchdog process itself, even if it is stopped.
func (w *Watchdog) Kill() { _ = w.proc.Kill() } // it may have ended

// write sends one message, completely or not at all, because it is shorter than the atomic
// size of a pipe. It never blocks, because its caller has a deadline.
func (w *Watchdog) write(line string) error {
	conn, err := w.pipe.SyscallConn()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotReading, err)
	}
	var failed error
	err = conn.Write(func(fd uintptr) (done bool) {
		for {
			if _, failed = unix.Write(int(fd), []byte(line)); failed != unix.EINTR {
				return true // also if the pipe is full
			}
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("%w: %w", ErrNotReading, err)
	}
	return nil
}
