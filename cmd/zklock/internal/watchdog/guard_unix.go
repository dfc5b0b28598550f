//go:build unix

package watchdog

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Guard is the wrapper's side of a watchdog. Its methods may be called from
// any goroutine.
type Guard struct {
	pipe *os.File // an os.File orders concurrent writes itself
	died chan struct{}
}

// writeTimeout bounds a write to a watchdog that does not read.
const writeTimeout = 100 * time.Millisecond

// Start starts a watchdog: the program exe with Argument. A goroutine waits for
// it and ends with it.
func Start(exe string) (*Guard, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("no pipe for the watchdog: %w", err)
	}
	cmd := exec.Command(exe, Argument)
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
	g := &Guard{pipe: w, died: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // however it ended, it is gone
		close(g.died)
	}()
	return g, nil
}

// Died is closed when the watchdog's process has ended.
func (g *Guard) Died() <-chan struct{} { return g.died }

// Watch tells of the process group to guard.
func (g *Guard) Watch(group int) error { return g.write(fmt.Sprintf("group %d\n", group)) }

// Until tells when the group has to be dead, on the boot clock.
func (g *Guard) Until(t time.Duration) error { return g.write(fmt.Sprintf("until %d\n", int64(t))) }

// Bye tells that there is nothing more to guard, and closes the pipe.
func (g *Guard) Bye() {
	_ = g.write("bye\n") // one that is gone needs no good-bye
	_ = g.pipe.Close()
}

// write sends one message, shorter than a pipe's atomic size, so whole or not
// at all.
func (g *Guard) write(line string) error {
	_ = g.pipe.SetWriteDeadline(time.Now().Add(writeTimeout)) // a pipe always has deadlines
	if _, err := g.pipe.WriteString(line); err != nil {
		return fmt.Errorf("the watchdog does not listen: %w", err)
	}
	return nil
}
