package zk

import (
	"net"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// TestDialLeavesAddressThatDoesNotAccept checks that a client tries the other addresses of a host
// if the first ones do not accept a connection during the time for one attempt.
func TestDialLeavesAddressThatDoesNotAccept(t *testing.T) {
	resolve(t, [4]byte{127, 0, 0, 1}, [4]byte{127, 0, 0, 2}, [4]byte{127, 0, 0, 3})
	_, port := listenAt(t, "127.0.0.3", "0", func(conn net.Conn) {
		c := newConn(t, conn)
		if c.acceptSession(7) {
			c.serveRequests()
		}
	})
	acceptNothingAt(t, "127.0.0.1", port)
	acceptNothingAt(t, "127.0.0.2", port)
	c, err := Dial(within(t, 30*time.Second), "zk.example:"+port, &Options{SessionTimeout: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close() // the server of this test does not confirm it
}

// acceptNothingAt makes ip ignore connection requests until the test ends, like a host that is
// down: a listener ignores them while its backlog is full.
func acceptNothingAt(t *testing.T, ip, port string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: n, Addr: [4]byte(net.ParseIP(ip).To4())}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, 0); err != nil {
		t.Fatal(err)
	}
	for range 10 { // until the backlog is full
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(ip, port), 100*time.Millisecond)
		if err != nil {
			return
		}
		t.Cleanup(func() { conn.Close() })
	}
	t.Skip("this system has a longer backlog than requested")
}

// TestFailedDialEndsSession checks that Dial, after it waited for the answer to the credentials in
// vain, asks the server to end the session.
func TestFailedDialEndsSession(t *testing.T) {
	last := make(chan wire.OpCode, 1)
	_, port := listenAt(t, "127.0.0.1", "0", func(conn net.Conn) {
		c := newConn(t, conn)
		c.acceptSession(7)
		op := wire.OpCode(0)
		for r, ok := c.read(); ok; r, ok = c.read() {
			op = r.Op
		}
		last <- op
	})
	opts := &Options{Auth: []Auth{{"digest", []byte("a:b")}}}
	if _, err := Dial(within(t, 200*time.Millisecond), "127.0.0.1:"+port, opts); err == nil {
		t.Error("Dial has a client")
	}
	if op := <-last; op != wire.OpCloseSession {
		t.Errorf("the last request was %v", op)
	}
}
