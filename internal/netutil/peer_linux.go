package netutil

import (
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// PeerUID returns the user of the process at the other end of a unix socket. It returns exactly
// [errors.ErrUnsupported] if the system has no call for it.
func PeerUID(conn net.Conn) (int, error) {
	cred, err := credentials(conn)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}

// PeerPID returns the ID of the process that listens at the other end of a unix socket. It
// returns [errors.ErrUnsupported] on systems other than Linux.
func PeerPID(conn net.Conn) (int, error) {
	cred, err := credentials(conn)
	if err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

func credentials(conn net.Conn) (cred *unix.Ucred, err error) {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, errors.New("not a unix socket")
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return cred, errors.Join(err, failed)
}
