package zkserver

import (
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// TestKeepAliveOption looks at the socket that the server has.
func TestKeepAliveOption(t *testing.T) {
	const idleOption = 4 // TCP_KEEPIDLE
	for want, set := range map[int]time.Duration{15: 0, 7: 7 * time.Second, 0: -1} {
		opts := quiet(t)
		opts.KeepAlive = set
		idle := make(chan int, 1)
		s := start(t, opts)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go s.Serve(ln)
		nc, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		c := over(t, nc)
		c.handshake(wire.ConnectRequest{Timeout: 10_000})
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
