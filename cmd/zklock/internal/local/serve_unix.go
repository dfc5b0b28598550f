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

	"github.com/zklock/zklock/cmd/zklock/internal/home"
	"github.com/zklock/zklock/zkserver"
)

// What a server that was started in the background says to who started it.
// Anything else is the reason why it cannot serve.
const (
	wordReady = "ready"
	wordBusy  = "busy"
)

// The local server's clients are processes of one machine and want short
// sessions, for scripts and tests; long ones do no harm.
const (
	tick       = 100 * time.Millisecond
	maxSession = time.Hour
)

// shutdownTime bounds the last snapshot.
const shutdownTime = 10 * time.Second

// Serve serves the place until ctx ends, the server has had no session for
// the idle time, or the place is gone. ready is told once how it went.
func Serve(ctx context.Context, p Place, idle time.Duration, ready func(string)) error {
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

// serving is a server at work. All of it belongs to the goroutine of Serve.
type serving struct {
	place  Place
	idle   time.Duration
	log    *slog.Logger
	lock   *os.File // with the flock; closing it gives the place up
	server *zkserver.Server
	ln     net.Listener
	socket string
	bound  os.FileInfo // the socket's file
	failed chan error  // from the goroutines that run the listeners
}

// open takes the place and begins to serve.
func (s *serving) open() (err error) {
	if err := home.Prepare(s.place.Dir); err != nil {
		return err
	}
	if s.lock, err = takeLock(s.place.lockFile()); err != nil {
		return err
	}
	s.failed = make(chan error, 4)
	s.server, err = zkserver.New(zkserver.Options{
		DataDir: s.place.dataDir(), TickTime: tick, MaxSessionTimeout: maxSession,
		EndOnStorageError: true, // the next command starts another one
		Accept:            samePeer, FourLetterWords: []string{"srvr", "mntr", "ruok"}, Logger: s.log,
	})
	if err != nil {
		_ = s.lock.Close() // gives the flock up
		return err
	}
	if err = s.bind(); err != nil {
		return errors.Join(err, s.close())
	}
	return nil
}

// takeLock takes the flock and notes our process id in the file.
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

// bind listens at a socket and notes its path. Only who holds the flock gets
// here, so what is at the path is dead.
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

// choose returns the socket's path: in the place, or where that path is too
// long for a socket in a private directory of its own, the last one if that is
// still ours.
func (s *serving) choose() (string, error) {
	socket := filepath.Join(s.place.Dir, "sock")
	if len(socket) <= maxSocket {
		return socket, nil
	}
	if last := s.place.Socket(); last != "" && len(last) <= maxSocket && s.place.guarded(last) == nil {
		return last, nil
	}
	for _, temp := range []string{os.TempDir(), "/tmp"} {
		dir, err := os.MkdirTemp(temp, "zklock-")
		if err != nil {
			continue
		}
		if socket := filepath.Join(dir, "sock"); len(socket) <= maxSocket {
			return socket, nil
		}
		_ = os.Remove(dir) // too long as well
	}
	return "", fmt.Errorf("no directory for a socket with a path of at most %d bytes", maxSocket)
}

// announce writes the socket's path, whole or not at all.
func (s *serving) announce(socket string) error {
	temp := s.place.socketFile() + ".new"
	if err := os.WriteFile(temp, []byte(socket+"\n"), 0o600); err != nil {
		return err
	}
	return os.Rename(temp, s.place.socketFile())
}

// run looks after the place and returns why it is time to leave.
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

// stillMine reports whether the flock is still on the file that others look
// at: without that this is no longer the place's server.
func (s *serving) stillMine() bool {
	mine, err := s.lock.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(s.place.lockFile())
	return err == nil && os.SameFile(mine, there)
}

// rebind makes the socket again where somebody has cleaned it away.
func (s *serving) rebind() error {
	ours := s.atSocket()
	if ours && s.place.Socket() == s.socket {
		return nil
	}
	s.unlink(ours)
	_ = s.ln.Close() // nobody can reach it
	return s.bind()
}

// atSocket reports whether our socket is at its path, where clients trust it.
func (s *serving) atSocket() bool {
	there, err := os.Stat(s.socket)
	return err == nil && os.SameFile(there, s.bound) && s.place.guarded(s.socket) == nil
}

// unlink says whether the end of the listener removes what is at the socket's path.
func (s *serving) unlink(ours bool) {
	if ln, ok := s.ln.(*net.UnixListener); ok {
		ln.SetUnlinkOnClose(ours)
	}
}

// close ends the server in good order, then gives the place up. In a directory
// that has become another server's, nothing is written or unlinked.
func (s *serving) close() error {
	mine := s.stillMine()
	s.unlink(mine && s.atSocket())
	if !mine {
		return errors.Join(s.server.Close(), s.lock.Close())
	}
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	err := s.server.Shutdown(ctx)
	return errors.Join(err, s.lock.Close())
}
