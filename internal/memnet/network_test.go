package memnet_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/memnet"
)

const address = "127.0.0.1:2181"

func listen(t *testing.T, n *memnet.Network, address string) *memnet.Listener {
	t.Helper()
	l, err := n.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func dial(t *testing.T, n *memnet.Network, address string) net.Conn {
	t.Helper()
	c, err := n.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestDialConnectsBeforeAndAfterAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		l := listen(t, &n, address)
		client := dial(t, &n, address)
		write(t, client, "early")
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		expect(t, server, "early")
		if client.RemoteAddr().String() != address || server.LocalAddr().String() != address || l.Addr().String() != address {
			t.Errorf("addresses: %v, %v, %v", client.RemoteAddr(), server.LocalAddr(), l.Addr())
		}
		if server.RemoteAddr().String() != client.LocalAddr().String() {
			t.Errorf("the client is %v, not %v", server.RemoteAddr(), client.LocalAddr())
		}
		accepting := startCall(func() error { _, err := l.Accept(); return err })
		if returned, err := accepting(); returned {
			t.Fatal(err)
		}
		if other := dial(t, &n, address); other.LocalAddr().String() == client.LocalAddr().String() {
			t.Error("two clients have the same address")
		}
		if returned, err := accepting(); !returned || err != nil {
			t.Fatal(returned, err)
		}
	})
}

// TestListenerCloseKeepsAcceptedConnections also checks that Close resets connections that were not
// accepted, and refuses new ones.
func TestListenerCloseKeepsAcceptedConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		l := listen(t, &n, address)
		accepted := dial(t, &n, address)
		server, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		accepting := startCall(func() error { _, err := l.Accept(); return err })
		if returned, _ := accepting(); returned {
			t.Fatal("accepted nothing")
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if returned, err := accepting(); !returned || !errors.Is(err, net.ErrClosed) {
			t.Error(returned, err)
		}
		_, aerr := l.Accept()
		if err := l.Close(); !errors.Is(err, net.ErrClosed) || !errors.Is(aerr, net.ErrClosed) {
			t.Error(err, aerr)
		}
		write(t, accepted, "still here")
		expect(t, server, "still here")
		if _, err := n.DialContext(t.Context(), "tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Error(err)
		}
		again := listen(t, &n, address)
		waiting := dial(t, &n, address)
		if err := again.Close(); err != nil {
			t.Fatal(err)
		}
		if err := readOne(waiting)(); !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
	})
}

func TestInvalidAddressesAreRefused(t *testing.T) {
	var n memnet.Network
	listen(t, &n, address)
	if _, err := n.Listen("tcp", address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Error(err)
	}
	for _, bad := range []string{"", "2181", "localhost:2181", "127.0.0.1", "127.0.0.1:99999"} {
		_, lerr := n.Listen("tcp", bad)
		_, derr := n.DialContext(t.Context(), "tcp", bad)
		if lerr == nil || derr == nil || n.SetUnreachable(bad, true) == nil {
			t.Errorf("%q: %v, %v", bad, lerr, derr)
		}
	}
	if _, err := n.Listen("udp", address); err == nil {
		t.Error("udp")
	}
	if a, b := listen(t, &n, "[::1]:0"), listen(t, &n, "[::1]:0"); a.Addr().String() == b.Addr().String() {
		t.Error("two listeners have the same port")
	}
}

// TestDialOfUnreachableAddressWaits checks that a dial waits until its context ends or the address
// is reachable.
func TestDialOfUnreachableAddressWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		l := listen(t, &n, address)
		set := func(on bool) {
			if err := n.SetUnreachable(address, on); err != nil {
				t.Fatal(err)
			}
		}
		set(false)
		set(true)
		set(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begin := time.Now()
		if _, err := n.DialContext(ctx, "tcp", address); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Second {
			t.Error(err, time.Since(begin))
		}
		dialing := startCall(func() error { _, err := n.DialContext(t.Context(), "tcp", address); return err })
		if returned, err := dialing(); returned {
			t.Fatal(err)
		}
		set(false)
		if returned, err := dialing(); !returned || err != nil {
			t.Fatal(returned, err)
		}
		if _, err := l.Accept(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestDialWaitsForFullBacklog checks that a dial waits until its context ends or the listener is
// closed.
func TestDialWaitsForFullBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		l := listen(t, &n, address)
		for range 128 {
			dial(t, &n, address)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancelled := startCall(func() error { _, err := n.DialContext(ctx, "tcp", address); return err })
		refused := startCall(func() error { _, err := n.DialContext(t.Context(), "tcp", address); return err })
		if returned, err := cancelled(); returned {
			t.Fatal(err)
		}
		cancel()
		if returned, err := cancelled(); !returned || !errors.Is(err, context.Canceled) {
			t.Error(returned, err)
		}
		if returned, err := refused(); returned {
			t.Fatal(err)
		}
		if got := len(l.Conns()); got != 129 {
			t.Errorf("%d connections", got)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if returned, err := refused(); !returned || (err != nil && !errors.Is(err, syscall.ECONNREFUSED)) {
			t.Error(returned, err)
		}
		if got := len(l.Conns()); got != 0 {
			t.Errorf("%d connections left", got)
		}
		done, cancel := context.WithCancel(t.Context())
		cancel()
		listen(t, &n, address)
		if _, err := n.DialContext(done, "tcp", address); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestConnsListsOpenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n memnet.Network
		l := listen(t, &n, address)
		first, second := dial(t, &n, address), dial(t, &n, address)
		third := dial(t, &n, address)
		conns := l.Conns()
		if len(conns) != 3 || conns[0].RemoteAddr().String() != first.LocalAddr().String() {
			t.Fatalf("%d connections", len(conns))
		}
		conns[1].CloseAbrupt()
		if err := readOne(second)(); !errors.Is(err, syscall.ECONNRESET) {
			t.Error(err)
		}
		if err := conns[0].Close(); err != nil {
			t.Error(err)
		}
		if left := l.Conns(); len(left) != 1 || left[0] != conns[2] {
			t.Errorf("%d left", len(left))
		}
		third.(*memnet.Conn).CloseAbrupt() // by the client, which also closes the server's end
		if left := l.Conns(); len(left) != 0 {
			t.Errorf("%d left", len(left))
		}
	})
}
