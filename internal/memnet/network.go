package memnet

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
)

// firstPort is the first port to assign, like the ephemeral ports of the system.
const firstPort = 49152

// Network maps addresses to listeners in memory. The zero value is ready to use. Its
// methods are safe for concurrent use.
type Network struct {
	mu          sync.Mutex
	listeners   map[netip.AddrPort]*Listener
	unreachable map[netip.AddrPort]chan struct{} // closed when reachable again
	lastPort    uint16                           // last assigned, 0 if none
}

// Listen returns a listener at an address like "127.0.0.1:2181" or "[::1]:2181". Port
// 0 means an unused port. The address is free again when the listener is closed.
// network must be "tcp".
func (n *Network) Listen(network, address string) (*Listener, error) {
	addr, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp" {
		return nil, fmt.Errorf("memnet: cannot listen on %s %q: give tcp and an IP address with a port", network, address)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if addr.Port() == 0 {
		addr = netip.AddrPortFrom(addr.Addr(), n.port())
	}
	if n.listeners[addr] != nil {
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: net.TCPAddrFromAddrPort(addr), Err: syscall.EADDRINUSE}
	}
	if n.listeners == nil {
		n.listeners = make(map[netip.AddrPort]*Listener)
	}
	l := newListener(n, addr)
	n.listeners[addr] = l
	return l, nil
}

// port assigns the next port to a listener or a dial. mu must be held.
func (n *Network) port() uint16 {
	n.lastPort++
	if n.lastPort < firstPort {
		n.lastPort = firstPort
	}
	return n.lastPort
}

// DialContext connects to a listener. It has the signature of clients' dial options.
// If there is no listener, it fails with syscall.ECONNREFUSED. If the address is
// unreachable, it waits. ctx bounds only the connecting.
func (n *Network) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	addr, err := netip.ParseAddrPort(address)
	if err != nil || network != "tcp" {
		return nil, fmt.Errorf("memnet: cannot dial %s %q: give tcp and an IP address with a port", network, address)
	}
	fail := func(err error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(addr), Err: err}
	}
	for {
		l, lifted, port := n.route(addr)
		if lifted != nil {
			select {
			case <-lifted:
				continue
			case <-ctx.Done():
				return fail(ctx.Err())
			}
		}
		if l == nil {
			return fail(syscall.ECONNREFUSED)
		}
		c, err := l.dial(ctx, port)
		if err != nil {
			return fail(err)
		}
		return c, nil
	}
}

// route returns the listener at addr, or the channel that is closed when addr is
// reachable again, and a port for a client.
func (n *Network) route(addr netip.AddrPort) (l *Listener, lifted chan struct{}, port uint16) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.listeners[addr], n.unreachable[addr], n.port()
}

// SetUnreachable makes new connections to an address wait, as if nothing answered
// there, until it is called again with false. Existing connections continue.
func (n *Network) SetUnreachable(address string, unreachable bool) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("memnet: address %q: give an IP address with a port", address)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	lifted := n.unreachable[addr]
	switch {
	case unreachable && lifted == nil:
		if n.unreachable == nil {
			n.unreachable = make(map[netip.AddrPort]chan struct{})
		}
		n.unreachable[addr] = make(chan struct{})
	case !unreachable && lifted != nil:
		delete(n.unreachable, addr)
		close(lifted) // only dials receive from it, and they never hold mu
	}
	return nil
}

// forget frees a listener's address.
func (n *Network) forget(l *Listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners[l.addr] == l {
		delete(n.listeners, l.addr)
	}
}

// loopback returns an address on 127.0.0.1.
func loopback(port uint16) net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port))
}
