//go:build !linux && !darwin && !freebsd

package netutil

import (
	"errors"
	"net"
)

// PeerUID returns [errors.ErrUnsupported]: the system has no call for it.
func PeerUID(net.Conn) (int, error) { return 0, errors.ErrUnsupported }
