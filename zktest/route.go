package zktest

import (
	"context"
	"net"
	"testing"
)

// Route is a [Relay] before another one: the cable of some of the clients,
// where that of the [Server] or [Proxy] is everybody's. What is done to a route
// concerns only who dials through it, such as the one holder of a lock of
// several clients.
type Route struct{ Relay }

// Route makes a route that ends with the test. Faults of r concern its clients
// as well.
func (r *Relay) Route(t testing.TB) *Route {
	t.Helper()
	way := &Route{}
	way.init(func(ctx context.Context) (net.Conn, error) { return r.DialContext(ctx, "", "") }, r.bypass, r.known)
	t.Cleanup(way.Relay.close)
	return way
}
