//go:build unix && !linux

package local

import (
	"errors"
	"net"
)

// peerPID is not supported on this system: the caller uses the ID in the lock file.
func peerPID(net.Conn) (int, error) { return 0, errors.ErrUnsupported }
