//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/internal/wal"
	"github.com/zklock/zklock/zkserver"
)

// The answers of a server to the command that started it. Any other text is the reason why
// the server cannot serve.
const (
	wordReady = "ready"
	wordBusy  = "busy"
)

// The clients of the local server are processes of one machine. Scripts and tests use short
// session timeouts, and long ones do no harm.
const (
	tick       = 100 * time.Millisecond
	maxSession = time.Hour
)

// Serve runs the server until ctx ends, the server had no session for the idle time, or the
// directory is gone. It calls ready once, with wordReady, wordBusy, or the text of an error.
// It sets the umask of this process, because an inherited umask may mask bits of the owner, and
// later servers must be able to read the files.
func Serve(ctx context.Context, p Place, idle time.Duration, ready func(string)) error {
	unix.Umask(0o077)
	s := &serving{place: p, idle: idle, log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	err := s.open()
	switch {
	case errors.Is(err, errBusy):
		ready(wordBusy)
		return err
	case err != nil:
		ready(err.Error())
		return err
	}
	s.log.Info("serving", "directory", p.Dir, "socket", s.socket, "pid", os.Getpid())
	ready(wordReady)
	why := s.run(ctx)
	s.log.Info("leaving", "why", why)
	return s.close()
}

// serving is a running server. Only the goroutine of Serve uses it.
type serving struct {
	place  Place
	idle   time.Duration
	log    *slog.Logger
	lock   *os.File // has the flock; closing it releases the directory
	server *zkserver.Server
	ln     net.Listener
	socket string
	bound  os.FileInfo // the socket's file
	failed chan error  // from the goroutines that run the listeners
}

// open takes the flock and starts the server.
func (s *serving) open() (err error) {
	if err := Prepare(s.place.Dir); err != nil {
		return err
	}
	if s.lock, err = takeLock(s.place.lockFile()); err != nil {
		return withAdvice(err)
	}
	s.failed = make(chan error, 4)
	s.server, err = zkserver.New(&zkserver.Options{
		DataDir: s.place.DataDir(), TickTime: tick, MaxSessionTimeout: maxSession,
		EndOnStorageError: true, // the next command starts another one
		Accept:            samePeer, FourLetterWords: []string{"srvr", "mntr", "ruok", "conf", "cons", "dump"}, Logger: s.log,
	})
	if err != nil {
		_ = s.lock.Close() // releases the flock
		return err
	}
	if err = s.bind(); err != nil {
		return errors.Join(withAdvice(err), s.close())
	}
	return nil
}

// withAdvice adds what to do about an error of the file system.
func withAdvice(err error) error { return fmt.Errorf("%w%s", err, wal.Advice(err)) }

// takeLock takes the flock and stores the ID of this process in the file.
func takeLock(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		if err = f.Truncate(0); err == nil {
			_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
		}
	}
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errBusy
	}
	return nil, err
}

// bind listens at a socket and stores its path. This process holds the flock, so no process
// listens at a socket that exists at the path.
func (s *serving) bind() error {
	socket, err := s.choose()
	if err != nil {
		return err
	}
	if err := os.Remove(socket); err != nil && !os.IsNotExist(err) {
		return err
	}
	ln, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	if s.bound, err = os.Stat(socket); err != nil {
		return errors.Join(err, ln.Close())
	}
	if err := s.announce(socket); err != nil {
		return errors.Join(err, ln.Close())
	}
	s.ln, s.socket = ln, socket
	// Ends when the listener or the server is closed.
	go func() { s.failed <- s.server.Serve(ln) }()
	return nil
}

// choose returns the path of the socket: in the directory of the server, or if that path is
// too long, in a private directory for temporary files. It reuses the last such directory if
// it is still private.
func (s *serving) choose() (string, error) {
	socket := filepath.Join(s.place.Dir, socketName)
	if len(socket) <= maxSocket {
		return socket, nil
	}
	if last := s.place.Socket(); last != "" && len(last) <= maxSocket && s.place.guarded(last) == nil {
		return last, nil
	}
	for _, temp := range []string{os.TempDir(), "/tmp"} {
		dir, err := os.MkdirTemp(temp, tempPrefix)
		if err != nil {
			continue
		}
		if socket := filepath.Join(dir, socketName); len(socket) <= maxSocket && s.place.guarded(socket) == nil {
			return socket, nil
		}
		_ = os.Remove(dir) // also too long, or other users could replace it
	}
	return "", fmt.Errorf("no directory for a socket with a path of at most %d bytes", maxSocket)
}

// announce stores the path of the socket atomically.
func (s *serving) announce(socket string) error {
	temp := s.place.socketFile() + ".new"
	if err := os.WriteFile(temp, []byte(socket+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, s.place.socketFile())
}

// run checks the directory and the socket periodically, and returns the reason to stop.
func (s *serving) run(ctx context.Context) string {
	look := time.NewTicker(max(min(s.idle/4, time.Second), time.Millisecond))
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return "told to stop"
		case <-s.server.Done():
			return "the server failed"
		case err := <-s.failed:
			s.log.Warn("a listener ended", "error", err)
		case <-look.C:
		}
		if !s.stillMine() {
			return "the directory was removed or replaced"
		}
		if since := s.server.Stats().IdleSince; !since.IsZero() && time.Since(since) >= s.idle {
			return "idle"
		}
		if err := s.rebind(); err != nil {
			s.log.Warn("the socket is gone and cannot be made again", "error", err)
		}
	}
}

// stillMine reports whether the flock is still on the file at the path of the lock file.
// Otherwise this process is no longer the server of the directory.
func (s *serving) stillMine() bool {
	mine, err := s.lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(s.place.lockFile())
	return err == nil && os.SameFile(mine, there)
}

// rebind creates the socket again if a cleanup removed it.
func (s *serving) rebind() error {
	ours := s.atSocket()
	if ours && s.place.Socket() == s.socket {
		return nil
	}
	s.unlink(ours)
	_ = s.ln.Close() // no client can reach it
	return s.bind()
}

// atSocket reports whether the socket of this process is at its path and its directory is
// still private.
func (s *serving) atSocket() bool {
	there, err := os.Stat(s.socket)
	return err == nil && os.SameFile(there, s.bound) && s.place.guarded(s.socket) == nil
}

// unlink sets whether closing the listener removes the file at the path of the socket.
func (s *serving) unlink(ours bool) {
	if ln, ok := s.ln.(*net.UnixListener); ok {
		ln.SetUnlinkOnClose(ours)
	}
}

// close shuts the server down, then releases the directory. If the directory belongs to
// another server now, close writes and removes nothing there.
func (s *serving) close() error {
	mine := s.stillMine()
	s.unlink(mine && s.atSocket())
	if !mine {
		return errors.Join(s.server.Close(), s.lock.Close())
	}
	ctx, cancel := context.WithTimeout(context.Background(), ShutdownTime)
	defer cancel()
	err := s.server.Shutdown(ctx)
	return errors.Join(err, s.lock.Close())
}
