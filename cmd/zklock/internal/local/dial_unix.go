//go:build unix

package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/home"
	"github.com/zklock/zklock/internal/ownership"
)

// retryEvery is how often a server is looked for that another process is
// starting or stopping.
const retryEvery = 20 * time.Millisecond

// maxLog is the size at which a new server begins a new log.
const maxLog = 1 << 20

// Dialer connects to a place's server and starts one where there is none. Its
// DialContext may be called from any goroutine.
type Dialer struct {
	Place Place
	Exe   string        // this program
	Idle  time.Duration // for a server that is started; 0 means DefaultIdle
}

// DialContext connects, whatever network and address say: that the socket may
// move is this package's own affair.
func (d *Dialer) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := home.Prepare(d.Place.Dir); err != nil {
		return nil, err
	}
	last := error(nil)
	for {
		conn, err := d.Place.Connect(ctx)
		if err == nil {
			return conn, nil
		}
		if errors.Is(err, ErrUnavailable) {
			return nil, err // what answers is not ours: starting cannot help
		}
		if last = d.start(ctx); last != nil && !errors.Is(last, errBusy) {
			return nil, d.Place.wrap(last)
		}
		if last == nil {
			continue // ready: the next attempt succeeds, or it was killed since
		}
		select {
		case <-ctx.Done():
			return nil, d.Place.wrap(fmt.Errorf("%w: %w", ctx.Err(), last))
		case <-time.After(retryEvery):
		}
	}
}

// Connect connects to the running server. The error wraps ErrNotRunning, or
// ErrUnavailable if something else answers at its socket.
func (p Place) Connect(ctx context.Context) (net.Conn, error) {
	socket := p.Socket()
	if socket == "" {
		return nil, ErrNotRunning
	}
	if err := p.guarded(socket); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	if err := samePeer(conn); err != nil {
		_ = conn.Close()
		return nil, p.wrap(err)
	}
	return conn, nil
}

// guarded checks the directory of a socket that is not in the place. In a directory for
// temporary files, ours may have been cleaned away: then any user could make another one
// of that name, or a link to the directory of another server of this user.
func (p Place) guarded(socket string) error {
	dir := filepath.Dir(socket)
	if dir == filepath.Clean(p.Dir) {
		return nil
	}
	if err := ownership.CheckLinks(dir); err != nil {
		return err
	}
	return home.Private(dir)
}

// samePeer refuses a peer of another user.
func samePeer(conn net.Conn) error {
	uid, err := peerUID(conn)
	if err != nil {
		return fmt.Errorf("the peer's user cannot be known: %w", err)
	}
	if uid != os.Geteuid() {
		return fmt.Errorf("the peer is user %d, not %d", uid, os.Geteuid())
	}
	return nil
}

// start starts a server and waits until it serves. It returns what the server
// says: nil, errBusy where another holds the flock, or why it cannot serve.
//
// The server gets no file of ours but a pipe for that word, and a session of
// its own: it outlives this process.
func (d *Dialer) start(ctx context.Context) error {
	log, err := openLog(d.Place.logFile())
	if err != nil {
		return fmt.Errorf("%w; %s", err, home.Advice)
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	idle := d.Idle
	if idle == 0 {
		idle = DefaultIdle
	}
	cmd := exec.Command(d.Exe, "serve", "--local", d.Place.Dir, "--idle", idle.String())
	cmd.Dir = "/"
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = w.Close() // the server has its own
	if err != nil {
		return err
	}
	// Reaps the server if it ends before this process; ends with either.
	go func() { _ = cmd.Wait() }()
	return answer(ctx, r)
}

// answer reads the server's word.
func answer(ctx context.Context, r *os.File) error {
	stop := context.AfterFunc(ctx, func() { _ = r.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := bufio.NewReaderSize(r, maxNote).ReadString('\n')
	line = strings.TrimSpace(line)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case line == wordReady:
		return nil
	case line == wordBusy:
		return errBusy
	case line != "":
		return errors.New(line)
	}
	return fmt.Errorf("it ended while it started: %w", err)
}

// environment is what the server needs of ours: little, since it serves
// commands that have another.
func environment() []string {
	var env []string
	for _, key := range []string{"PATH", "TMPDIR", "GOCOVERDIR"} {
		if v, ok := os.LookupEnv(key); ok {
			env = append(env, key+"="+v)
		}
	}
	return env
}

// openLog opens the log for appending, emptied if it has grown large.
func openLog(name string) (*os.File, error) {
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(name); err == nil && info.Size() > maxLog {
		flags |= os.O_TRUNC
	}
	return os.OpenFile(name, flags, 0o600)
}
