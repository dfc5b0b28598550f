package command

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/test/harness"
)

// Resource is the resource to which commands write. It keeps a record of each trial. Its
// methods may be called from any goroutine.
type Resource struct {
	conns *harness.Conns

	mu      sync.Mutex // guards the fields below and all records
	records map[uint32]*Record
	closed  bool
}

// Listen returns a resource that listens on a socket until Close is called.
func Listen(path string) (*Resource, error) {
	ln, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	r := &Resource{records: map[uint32]*Record{}}
	r.conns = harness.ServeConns(ln, r.serve)
	return r, nil
}

// Path returns the path of the socket.
func (r *Resource) Path() string { return r.conns.Addr() }

// Begin returns the record of a new trial. members is the number of members of its first
// command.
func (r *Resource) Begin(trial uint32, members int) *Record {
	rec := &Record{mu: &r.mu, wanted: members, runs: map[uint16]bool{}, OldReady: make(chan struct{}), NewStarted: make(chan struct{}), oldGone: make(chan struct{})}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records[trial] = rec
	return rec
}

// serve answers one member. The connection ends when the member ends.
func (r *Resource) serve(conn net.Conn) {
	var rec *Record
	var m *member
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if m != nil && !r.closed {
			rec.ended(m)
		}
	}()
	for {
		msg, err := Receive(conn)
		if err != nil {
			return
		}
		if m == nil {
			if rec, m, err = r.hello(conn.(*net.UnixConn), msg); err != nil {
				return
			}
		}
		if _, err := conn.Write([]byte{rec.answer(m, msg)}); err != nil {
			return
		}
	}
}

// hello adds a member to its trial's record.
func (r *Resource) hello(conn *net.UnixConn, msg Message) (*Record, *member, error) {
	pid, fd, err := peer(conn)
	if err != nil {
		return nil, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	rec := r.records[msg.Trial]
	if rec == nil {
		_ = unix.Close(fd)
		return nil, nil, fmt.Errorf("command: there is no trial %d", msg.Trial)
	}
	m := &member{run: msg.Run, number: msg.Member, pid: pid, fd: fd, first: msg.At, last: msg.At, token: msg.Token}
	rec.addMember(m)
	return rec, m, nil
}

// peer returns the process ID of the other end and a descriptor of that process. The
// descriptor never refers to another process.
func peer(conn *net.UnixConn) (pid, fd int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(sock uintptr) {
		if cred, failed = unix.GetsockoptUcred(int(sock), unix.SOL_SOCKET, unix.SO_PEERCRED); failed != nil {
			return
		}
		fd, failed = pidfd(int(cred.Pid))
	})
	if err = errors.Join(err, failed); err != nil {
		return 0, 0, err
	}
	return int(cred.Pid), fd, nil
}

// pidfd returns a descriptor of a process.
func pidfd(pid int) (int, error) { return unix.PidfdOpen(pid, 0) }

// lives reports whether a process is alive. A zombie is not.
func lives(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		if !errors.Is(err, syscall.EINTR) {
			return n == 0 && err == nil
		}
	}
}

// Close ends the resource and its connections.
func (r *Resource) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.conns.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rec := range r.records {
		for _, m := range rec.members {
			_ = unix.Close(m.fd)
		}
	}
}
