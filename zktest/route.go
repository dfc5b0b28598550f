package zktest

import (
	"context"
	"net"
	"testing"
)

// Route is a [Relay] in front of another one: the network of some of the clients, while the
// relay of the [Server] or [Proxy] is that of all clients. Faults of a route affect only
// clients that dial through it, such as one holder of a lock among several clients.
type Route struct{ Relay }

// Route returns a new route through r, which ends with the test. Faults of r also affect the
// clients of the route.
func (r *Relay) Route(t testing.TB) *Route {
	t.Helper()
	way := &Route{}
	way.init(func(ctx context.Context) (net.Conn, error) { return r.DialContext(ctx, "", "") }, r.bypass, r.known)
	t.Cleanup(way.Relay.close)
	return way
}
