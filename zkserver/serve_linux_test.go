package zkserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zklock/zklock/internal/wire"
)

// TestKeepAliveOption checks the option of the server's socket.
func TestKeepAliveOption(t *testing.T) {
	const idleOption = 4 // TCP_KEEPIDLE
	for want, set := range map[int]time.Duration{15: 0, 7: 7 * time.Second, 0: -1} {
		opts := testOptions(t)
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

// TestLoopbackUsesRenoCongestionControl checks that connections within the machine do not use
// the machine's default congestion control.
func TestLoopbackUsesRenoCongestionControl(t *testing.T) {
	s, addr := serveTCP(t, nil)
	dialTCP(t, addr)
	has := make(chan string, 1)
	s.runOnLoop(func() {
		for _, c := range s.loop.conns {
			name, err := unix.GetsockoptString(int(c.polled.fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
			if err != nil {
				t.Error(err)
			}
			has <- name
		}
	})
	if name := <-has; name != plainCongestion {
		t.Errorf("congestion control %s, want %s", name, plainCongestion)
	}
}

// TestClientsOnUnixSocketCountByUser: limits by address and the delay of guesses apply to the
// user of a client on a unix socket.
func TestClientsOnUnixSocketCountByUser(t *testing.T) {
	opts := testOptions(t)
	opts.MaxClientConns = 1
	s := start(t, opts)
	ln, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	for range 2 { // this user could end the server, so MaxClientConns does not apply
		dialSocket(t, "unix", ln.Addr().String())
	}
	s.runOnLoop(func() {
		for _, k := range s.loop.conns {
			if got, want := k.limitAddr(), userKey(os.Geteuid()); got != want {
				t.Errorf("a client counts as %v, want %v", got, want)
			}
		}
	})
	var c *rawClient
	for i := range freeAttempts + 8 {
		if i%50 == 0 { // the identities of a connection are limited
			c = dialSocket(t, "unix", ln.Addr().String())
		}
		c.do(wire.OpAuth, &wire.AuthPacket{Scheme: "digest", Auth: fmt.Appendf(nil, "ann:guess%d", i)})
	}
	if n := s.Stats().AuthDelays; n == 0 {
		t.Error("guesses are not delayed")
	}
}

// socketOption returns an option of TCP, or 0 if keepalive is off.
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
