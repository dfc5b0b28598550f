package zktest

import (
	"context"
	"errors"
	"net"
	"testing"
)

// Proxy is a [Relay] on a loopback TCP port in front of a server elsewhere,
// of any kind: a real ZooKeeper, or a zkserver in another process. For an ensemble, each
// server gets a proxy of its own, and clients get the addresses of all proxies. A proxy
// reads the frames that pass. With TLS it cannot, and faults by operation have no effect.
type Proxy struct{ Relay }

// NewProxy starts a proxy for the server at target, an address for net.Dial:
// network is "tcp" or "unix". The proxy ends with the test. It connects to the server
// only when a client connects to the proxy. The test fails if the network or the form of target
// is invalid, if target is the address of a [Server] without a TCP port, and in a synctest bubble.
func NewProxy(t testing.TB, network, target string) *Proxy {
	t.Helper()
	if err := checkTarget(network, target); err != nil {
		t.Fatal("zktest: NewProxy: " + err.Error())
	}
	p := &Proxy{}
	dial := func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, target)
	}
	p.init(dial, dial, new(passwords))
	p.ListenTCP(t)
	t.Cleanup(p.Close)
	return p
}

// checkTarget returns an error if the network or the form of target is invalid, or if no server
// can be reached there.
func checkTarget(network, target string) error {
	if target == placeholder {
		return errors.New("the server has no TCP port: call its ListenTCP first")
	}
	switch network {
	case "tcp", "tcp4", "tcp6":
		if _, port, err := net.SplitHostPort(target); err != nil {
			return err
		} else if port == "" {
			return &net.AddrError{Err: "missing port in address", Addr: target}
		} else if _, err := net.LookupPort(network, port); err != nil {
			return err
		}
	case "unix":
		if target == "" {
			return &net.AddrError{Err: "missing path of the socket", Addr: target}
		}
	default:
		return net.UnknownNetworkError(network)
	}
	return nil
}

// Close ends the proxy and its connections. The end of the test calls it.
func (p *Proxy) Close() { p.Relay.close() }
