//go:build unix

package local

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/zklock/zklock/internal/netutil"
	"github.com/zklock/zklock/internal/ownership"
)

// retryEvery is the interval between attempts while another process starts or stops the
// server.
const retryEvery = 20 * time.Millisecond

// maxLog is the size above which a new server truncates the log.
const maxLog = 1 << 20

// Dialer connects to the local server, and starts it if it does not run. DialContext may be
// called from any goroutine.
type Dialer struct {
	Place Place
	Exe   func() (string, error) // returns the path of this program, which an update can remove
	Idle  time.Duration          // for a server that is started; 0 means DefaultIdle

	first atomic.Bool // it started the first server of the directory
}

// First reports whether this Dialer started the first server of its directory.
func (d *Dialer) First() bool { return d.first.Load() }

// DialContext connects to the current socket of the server. It ignores network and address,
// because the socket may have moved.
func (d *Dialer) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := Prepare(d.Place.Dir); err != nil {
		return nil, err
	}
	last := error(nil)
	for {
		conn, err := d.Place.Connect(ctx)
		if err == nil {
			return conn, nil
		}
		if !errors.Is(err, ErrNotRunning) {
			return nil, err // another user has the directory or the socket: no server can be started
		}
		if last = d.start(ctx); last != nil && !errors.Is(last, errBusy) {
			return nil, d.Place.wrap(last)
		}
		if last == nil {
			continue // ready: the next attempt succeeds, unless the server was killed meanwhile
		}
		select {
		case <-ctx.Done():
			return nil, d.Place.wrap(fmt.Errorf("%w: %w", ctx.Err(), last))
		case <-time.After(retryEvery):
		}
	}
}

// Connect connects to the running server. The error wraps ErrNotRunning, or ErrUnavailable if
// another user's process answers at its socket, or is that of Check.
func (p Place) Connect(ctx context.Context) (net.Conn, error) {
	if err := p.Check(); err != nil { // another user could name any socket in the directory
		return nil, err
	}
	socket := p.Socket()
	if socket == "" {
		return nil, ErrNotRunning
	}
	if err := p.guarded(socket); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	conn, err := dialSame(ctx, socket)
	if errors.Is(err, errPeer) {
		return nil, p.wrap(err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotRunning, err)
	}
	return conn, nil
}

// dialSame connects to a socket and checks that a process of this user listens there.
func dialSame(ctx context.Context, socket string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	if err := samePeer(conn); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// DialNamed connects to an address of servers that the user named. If that is the socket
// of a local server in a directory for temporary files, it must still be this user's: a
// command under zklock run gets its path from the environment, and another user could have
// made the directory again after it was cleaned away.
func DialNamed(ctx context.Context, network, address string) (net.Conn, error) {
	if network != "unix" || !temporary(address) {
		return netutil.Dial(ctx, network, address)
	}
	err := Private(filepath.Dir(address))
	if err == nil {
		var conn net.Conn
		if conn, err = dialSame(ctx, address); err == nil {
			return conn, nil
		}
	}
	return nil, fmt.Errorf("%w: connect to the socket %s: %w", ErrUnavailable, address, err)
}

// guarded checks the directory of a socket outside p.Dir. A cleanup of temporary files may
// have removed it. Then any user could create another one of that name, or a link to the
// directory of another server of this user.
func (p Place) guarded(socket string) error {
	if !filepath.IsAbs(socket) { // of a relative TMPDIR: it leads each process elsewhere
		return fmt.Errorf("the path %q is not absolute", socket)
	}
	dir := filepath.Dir(socket)
	if dir == filepath.Clean(p.Dir) {
		return nil
	}
	return Private(dir)
}

// errPeer is wrapped by errors about the user at the other end of a socket.
var errPeer = errors.New("not a server of this user")

// samePeer returns an error if the peer is a process of another user.
func samePeer(conn net.Conn) error {
	uid, err := netutil.PeerUID(conn)
	if err == errors.ErrUnsupported { // itself: an error of the kernel does not count
		return nil // the mode of the directory is the only protection
	}
	if err != nil {
		return fmt.Errorf("%w: the user of the peer is unknown: %w", errPeer, err)
	}
	if uid != os.Geteuid() {
		return fmt.Errorf("%w: the peer is user %d, not %d", errPeer, uid, os.Geteuid())
	}
	return nil
}

// start starts a server and waits until it serves. It returns nil, errBusy if another process
// holds the flock, or the reason why the server cannot serve.
//
// The server gets no open file but the pipe for its answer and the log, and runs in a process
// session of its own, so that it outlives this process.
func (d *Dialer) start(ctx context.Context) error {
	exe, err := d.Exe()
	if err != nil {
		return withAdvice(err)
	}
	_, err = os.Stat(d.Place.DataDir())
	first := errors.Is(err, fs.ErrNotExist)
	log, err := openLog(d.Place.logFile())
	if err != nil {
		return fmt.Errorf("%w; %s", err, Advice)
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return withAdvice(err)
	}
	defer r.Close()
	idle := d.Idle
	if idle == 0 {
		idle = DefaultIdle
	}
	cmd := exec.Command(exe)
	cmd.Args = []string{"zklock", "serve", "--local", d.Place.Dir, "--idle", idle.String()}
	cmd.Dir = "/"
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = w.Close() // the server has its own copy
	if err != nil {
		return withAdvice(err)
	}
	// Reaps the server if it ends before this process.
	go func() { _ = cmd.Wait() }()
	if err := answer(ctx, r); err != nil {
		return err
	}
	if first {
		d.first.Store(true)
	}
	return nil
}

// answer reads the server's answer.
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
	return fmt.Errorf("the server ended while it started: %w", err)
}

// environment returns the environment of the server. It has few variables, because the server
// serves commands with other environments.
func environment() []string {
	var env []string
	for _, key := range []string{"PATH", "TMPDIR", "GOCOVERDIR"} {
		if v, ok := os.LookupEnv(key); ok {
			env = append(env, key+"="+v)
		}
	}
	return env
}

// openLog opens the log for appending. It truncates a log that is larger than maxLog, and
// does not wait for a process that reads a pipe. A new log has the mode 0600 under any umask.
func openLog(name string) (*os.File, error) {
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND | ownership.NoWait
	info, err := os.Stat(name)
	created := errors.Is(err, fs.ErrNotExist)
	if err == nil && info.Size() > maxLog {
		flags |= os.O_TRUNC
	}
	f, err := os.OpenFile(name, flags, 0o600)
	if err != nil || !created {
		return f, err
	}
	if err := f.Chmod(0o600); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}
