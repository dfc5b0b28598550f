//go:build !linux

package zkserver

import (
	"errors"
	"net"
)

// poller exists only on Linux. Elsewhere each connection has a goroutine.
type poller struct{}

const pollBuffer = 0

var errNoPoller = errors.New("zkserver: this system has no poller")

func newPoller() (*poller, error)                     { return nil, errNoPoller }
func (*poller) close()                                {}
func (*poller) wake()                                 {}
func (*poller) setSleeping(bool)                      {}
func (*poller) watch(int, int) error                  { return errNoPoller }
func (*poller) wait(int, func(int, bool, bool, bool)) {}
func (*poller) read(int, int) ([]byte, error)         { return nil, errNoPoller }
func (*poller) peek(int, []byte) (int, error)         { return 0, errNoPoller }
func (*poller) write(int, []byte) (int, error)        { return 0, errNoPoller }
func takeSocket(net.Conn) (int, error)                { return -1, errNoPoller }
func cutSocket(int)                                   {}
func closeSocket(int)                                 {}
