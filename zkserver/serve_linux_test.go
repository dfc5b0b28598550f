package zkserver

import (
	"syscall"
	"testing"
	"time"
)

// TestKeepAliveOption looks at the socket that the server has.
func TestKeepAliveOption(t *testing.T) {
	const idleOption = 4 // TCP_KEEPIDLE
	for want, set := range map[int]time.Duration{15: 0, 7: 7 * time.Second, 0: -1} {
		opts := quiet(t)
		opts.KeepAlive = set
		idle := make(chan int, 1)
		s := start(t, opts)
		dialTCP(t, listenTCP(t, s))
		s.runOnLoop(func() {
			for _, c := range s.loop.conns {
				idle <- socketOption(t, int(c.polled.fd), idleOption)
			}
		})
		if got := <-idle; got != want {
			t.Errorf("KeepAlive %v: the socket has %d s, want %d", set, got, want)
		}
	}
}

// socketOption reads an option of TCP, 0 if keepalive is off.
func socketOption(t *testing.T, fd, option int) int {
	on, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_KEEPALIVE)
	if err != nil || on == 0 {
		return 0
	}
	value, err := syscall.GetsockoptInt(fd, syscall.IPPROTO_TCP, option)
	if err != nil {
		t.Error(err)
	}
	return value
}
