package zktest

import (
	"testing"
	"testing/synctest"

	"github.com/zklock/zklock/zk"
)

// setup is a server behind a relay, in one of the modes.
type setup struct {
	*Relay         // injects faults
	srv    *Server // the server behind the relay
	dial   func(t testing.TB, edit ...func(*zk.Options)) *zk.Client
}

// modes runs a test of a fault in every mode: in a bubble with virtual time, on its own route, on
// TCP sockets, and through a proxy.
func modes(t *testing.T, test func(t *testing.T, s setup)) {
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := Start(t)
			test(t, setup{&srv.Relay, srv, srv.Dial})
		})
	})
	t.Run("route", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := Start(t)
			way := srv.Route(t)
			test(t, setup{&way.Relay, srv, way.Dial})
		})
	})
	t.Run("tcp", func(t *testing.T) {
		t.Parallel()
		srv := Start(t)
		addr := srv.ListenTCP(t)
		test(t, setup{&srv.Relay, srv, func(t testing.TB, edit ...func(*zk.Options)) *zk.Client {
			return dialTCP(t, addr, edit...)
		}})
	})
	t.Run("proxy", func(t *testing.T) {
		t.Parallel()
		srv := Start(t)
		p := NewProxy(t, "tcp", srv.ListenTCP(t))
		test(t, setup{&p.Relay, srv, func(t testing.TB, edit ...func(*zk.Options)) *zk.Client {
			return dialTCP(t, p.Servers(), edit...)
		}})
	})
}

// dialTCP returns a client that connects by TCP.
func dialTCP(t testing.TB, addr string, edit ...func(*zk.Options)) *zk.Client {
	t.Helper()
	opts := &zk.Options{}
	for _, e := range edit {
		e(opts)
	}
	c, err := zk.Dial(t.Context(), addr, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
