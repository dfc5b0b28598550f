package memnet

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
)

// backlog is how many connections may wait to be accepted before a dial waits, as in
// listen(2).
const backlog = 128

// Listener accepts connections of a [Network]. Its methods are safe for
// concurrent use.
type Listener struct {
	network *Network
	addr    netip.AddrPort
	queue   chan *Conn    // dialed, not yet accepted
	done    chan struct{} // closed by Close
	once    sync.Once     // for Close

	mu    sync.Mutex
	conns []*Conn // accepted and open, oldest first
}

var _ net.Listener = (*Listener)(nil)

// newListener returns a listener. Its channels belong to the synctest bubble of the
// caller, if there is one.
func newListener(n *Network, addr netip.AddrPort) *Listener {
	return &Listener{network: n, addr: addr, queue: make(chan *Conn, backlog), done: make(chan struct{})}
}

// Accept implements net.Listener; the connection is a *Conn. After Close it
// fails with net.ErrClosed.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case <-l.done: // not a connection of the queue, which Close resets
		return nil, l.closedError("accept")
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.done:
		return nil, l.closedError("accept")
	}
}

// Close implements net.Listener. It resets connections that were not yet accepted;
// accepted ones continue.
func (l *Listener) Close() error {
	err := l.closedError("close")
	l.once.Do(func() {
		l.network.forget(l)
		close(l.done)
		err = nil
	})
	l.drain()
	return err
}

// Addr implements net.Listener; it is a *net.TCPAddr.
func (l *Listener) Addr() net.Addr { return net.TCPAddrFromAddrPort(l.addr) }

// Conns returns the listener's ends of all open connections, oldest first, including
// those not yet accepted, for fault injection.
func (l *Listener) Conns() []*Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.conns)
}

// dial makes a connection from a client's port.
func (l *Listener) dial(ctx context.Context, port uint16) (*Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	client, server := newConns(net.TCPAddrFromAddrPort(netip.AddrPortFrom(l.addr.Addr(), port)), l.Addr())
	server.onClose = func() { l.remove(server) }
	l.add(server)
	select {
	case l.queue <- server:
		select {
		case <-l.done: // Close may already have emptied the queue
			l.drain()
		default:
		}
		return client, nil
	case <-l.done:
		l.remove(server)
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		l.remove(server)
		return nil, ctx.Err()
	}
}

// drain resets the connections that wait to be accepted.
func (l *Listener) drain() {
	for {
		select {
		case c := <-l.queue:
			c.CloseAbrupt()
		default:
			return
		}
	}
}

// add adds a connection to the list that Conns returns.
func (l *Listener) add(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, c)
}

// remove removes a connection, if it is still in the list: both ends may close.
func (l *Listener) remove(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = slices.DeleteFunc(l.conns, func(o *Conn) bool { return o == c })
}

// closedError returns the error of calls after Close.
func (l *Listener) closedError(op string) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
}
