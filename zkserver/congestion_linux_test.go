package zkserver

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestPlainWithinTheMachine: who comes from this machine has the plainest congestion
// control, whatever this machine's is.
func TestPlainWithinTheMachine(t *testing.T) {
	s, addr := serveTCP(t, nil)
	dialTCP(t, addr)
	has := make(chan string, 1)
	s.ask(func() {
		for _, c := range s.loop.conns {
			name, err := unix.GetsockoptString(int(c.polled.fd), unix.IPPROTO_TCP, unix.TCP_CONGESTION)
			if err != nil {
				t.Error(err)
			}
			has <- name
		}
	})
	if name := <-has; name != plainCongestion {
		t.Errorf("%s", name)
	}
}
