//go:build unix

package watchdog

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Guard is the wrapper's side of a watchdog. Its methods may be called from
// any goroutine.
type Guard struct {
	pipe *os.File // an os.File orders concurrent writes itself
	proc *os.Process
	died chan struct{}
}

// ErrDeaf says that a watchdog has not read for long, as one does that was
// stopped. It would learn of new deadlines too late to believe them.
var ErrDeaf = errors.New("the watchdog does not listen")

// Start starts a watchdog: the program exe with Argument. A goroutine waits for
// it and ends with it.
func Start(exe string) (*Guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("no pipe for the watchdog: %w", err)
	}
	cmd := exec.Command(program(exe))
	cmd.Args = []string{Name, Argument}
	cmd.Stdin = r
	cmd.Dir = "/"
	cmd.Env = []string{}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = r.Close() // the watchdog has its own
	if err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("the watchdog cannot be started: %w", err)
	}
	shorten(w)
	g := &Guard{pipe: w, proc: cmd.Process, died: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // however it ended, it is gone
		close(g.died)
	}()
	return g, nil
}

// Died is closed when the watchdog's process has ended.
func (g *Guard) Died() <-chan struct{} { return g.died }

// Watch tells of the process group to guard, which this process has started.
func (g *Guard) Watch(group int) error {
	return g.write(fmt.Sprintf("wrapper %d\ngroup %d\n", os.Getpid(), group))
}

// Until tells when the group has to be dead, on the boot clock.
func (g *Guard) Until(t time.Duration) error { return g.write(fmt.Sprintf("until %d\n", int64(t))) }

// Bye tells that there is nothing more to guard, and closes the pipe.
func (g *Guard) Bye() {
	_ = g.write("bye\n") // one that is gone needs no good-bye
	_ = g.pipe.Close()
}

// Kill ends the watchdog itself, also one that is stopped, and nobody else.
func (g *Guard) Kill() { _ = g.proc.Kill() } // one that has ended is fine

// write sends one message, shorter than a pipe's atomic size, so whole or not
// at all. It never waits: whoever calls it has a deadline to keep.
func (g *Guard) write(line string) error {
	conn, err := g.pipe.SyscallConn()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDeaf, err)
	}
	var failed error
	err = conn.Write(func(fd uintptr) (done bool) {
		for {
			if _, failed = unix.Write(int(fd), []byte(line)); failed != unix.EINTR {
				return true // a full pipe is not waited for
			}
		}
	})
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("%w: %w", ErrDeaf, err)
	}
	return nil
}
