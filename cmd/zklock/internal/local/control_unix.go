//go:build unix

package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/internal/netutil"
	"github.com/zklock/zklock/internal/ownership"
)

// Status is the state of a local server.
type Status struct {
	Dir, Socket string
	PID         int // 0 if it does not run
	Sessions    string
}

// Status asks the running server for its state. The error wraps ErrNotRunning if no server
// runs.
func (p Place) Status(ctx context.Context) (Status, error) {
	st := Status{Dir: p.Dir, Socket: p.Socket()}
	answer, err := p.ask(ctx, "mntr")
	if errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.EPIPE) {
		// The server accepted the connection and ended. Another server may run now.
		answer, err = p.ask(ctx, "mntr")
	}
	switch {
	case errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE):
		if running, failed := p.running(); running || failed != nil {
			return st, fmt.Errorf("process %d refuses connections: %w", p.PID(), cmp.Or(failed, err))
		}
		return st, fmt.Errorf("%w: %w", ErrNotRunning, err)
	case err != nil:
		return st, err
	}
	st.PID, st.Sessions = p.PID(), counter(answer, "zk_global_sessions")
	return st, nil
}

// ask sends a four-letter word and returns the answer.
func (p Place) ask(ctx context.Context, word string) (string, error) {
	conn, err := p.Connect(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(deadline) // a socket always has deadlines
	}
	if _, err := io.WriteString(conn, word); err != nil {
		return "", p.wrap(err)
	}
	answer, err := io.ReadAll(io.LimitReader(conn, 1<<16))
	if err != nil {
		return "", p.wrap(err)
	}
	return string(answer), nil
}

// counter returns a value from the answer to mntr.
func counter(answer, name string) string {
	for line := range strings.SplitSeq(answer, "\n") {
		if key, value, ok := strings.Cut(line, "\t"); ok && key == name {
			return strings.TrimSpace(value)
		}
	}
	return "?"
}

// Stop ends the running server and waits until it has released the directory. The data stays.
// Sessions continue when a server runs again, which is at once if a command needs it.
func (p Place) Stop(ctx context.Context) error {
	if err := p.Check(); err != nil {
		return err
	}
	told := 0
	for {
		running, err := p.running()
		pid := p.PID()
		switch {
		case err != nil:
			return p.wrap(err)
		case !running && told == 0:
			return ErrNotRunning
		case !running, told != 0 && pid != told:
			return nil
		}
		if told == 0 {
			if told, err = p.tell(ctx); err != nil {
				return p.wrap(err)
			}
		}
		select {
		case <-ctx.Done():
			return p.wrap(fmt.Errorf("process %d does not end: %w", pid, ctx.Err()))
		case <-time.After(retryEvery):
		}
	}
}

// tell sends SIGTERM to the process that listens at the socket, and returns its ID, or 0
// while the process is not known for sure. The ID in the lock file alone proves nothing: until
// a new server stores its ID, the file has the ID of the last server, which the system may
// have given to an unrelated process.
func (p Place) tell(ctx context.Context) (int, error) {
	conn, err := p.Connect(ctx)
	if errors.Is(err, ErrNotRunning) {
		return 0, nil // the server starts or ends: the flock shows which
	}
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	pid, err := netutil.PeerPID(conn)
	if errors.Is(err, errors.ErrUnsupported) {
		pid, err = p.PID(), nil
	}
	if err != nil || pid < 2 {
		return 0, err
	}
	if err := unix.Kill(pid, unix.SIGTERM); err != nil && !errors.Is(err, unix.ESRCH) {
		return 0, fmt.Errorf("process %d: %w", pid, err)
	}
	return pid, nil
}

// running reports whether a process holds the flock. The kernel releases it at a crash.
func (p Place) running() (bool, error) {
	f, err := os.OpenFile(p.lockFile(), os.O_RDONLY|ownership.NoWait, 0) // it could be a pipe
	if os.IsNotExist(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == unix.EWOULDBLOCK {
		return true, nil
	}
	return false, err
}
