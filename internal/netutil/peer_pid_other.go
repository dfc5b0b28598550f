//go:build !linux

package netutil

import (
	"errors"
	"net"
)

// PeerPID returns [errors.ErrUnsupported].
func PeerPID(net.Conn) (int, error) { return 0, errors.ErrUnsupported }
