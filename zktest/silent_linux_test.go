package zktest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// silentAddress returns an address at which a new connection gets no answer, as behind a
// firewall that drops packets: the queue of its listener is full.
func silentAddress(t *testing.T) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)
	first, err := net.Dial("tcp", addr) // fills the queue
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { first.Close() })
	return addr
}

// TestSilentTargetOfProxyDelaysNothingElse has a limit below the two minutes that the system
// waits for the answer of the target.
func TestSilentTargetOfProxyDelaysNothingElse(t *testing.T) {
	const limit = time.Minute
	p := NewProxy(t, "tcp", silentAddress(t))
	first, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	p.Refuse(true)
	second, err := net.Dial("tcp", p.Addr())
	if err == nil {
		defer second.Close()
		second.SetReadDeadline(time.Now().Add(limit))
		_, err = second.Read(make([]byte, 1))
	}
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a second connection: %v, want that it is refused", err)
	}
	ended := make(chan struct{})
	go func() { // ends with Close, or when the system gives up the target
		defer close(ended)
		p.Close()
	}()
	select {
	case <-ended:
	case <-time.After(limit):
		t.Error("the proxy does not end")
	}
}
