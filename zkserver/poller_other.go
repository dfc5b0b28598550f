//go:build !linux

package zkserver

import (
	"errors"
	"net"
)

// poller is for Linux: elsewhere there is a goroutine for each connection.
type poller struct{}

const pollBuffer = 0

var errNoPoller = errors.New("zkserver: there is no poller on this system")

func newPoller() (*poller, error)                     { return nil, errNoPoller }
func (*poller) close()                                {}
func (*poller) wake()                                 {}
func (*poller) sleep(bool)                            {}
func (*poller) watch(int, int) error                  { return errNoPoller }
func (*poller) wait(int, func(int, bool, bool, bool)) {}
func (*poller) read(int, int) ([]byte, error)         { return nil, errNoPoller }
func (*poller) write(int, []byte) (int, error)        { return 0, errNoPoller }
func takeSocket(net.Conn) (int, error)                { return -1, errNoPoller }
func cutSocket(int)                                   {}
func closeSocket(int)                                 {}
