package locktest

import (
	"context"
	"errors"
	"net"
	"sync"
)

// A gate opens connections that it can silence. While it is shut, they transfer no data, and
// no connection can be opened.
type gate struct {
	inner func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex // guards the fields below
	closed bool
	opened *sync.Cond
	conns  []net.Conn
}

func newGate(inner func(context.Context, string, string) (net.Conn, error)) *gate {
	if inner == nil {
		inner = (&net.Dialer{}).DialContext
	}
	g := &gate{inner: inner}
	g.opened = sync.NewCond(&g.mu)
	return g
}

var errShut = errors.New("the gate is shut")

func (g *gate) dial(ctx context.Context, network, address string) (net.Conn, error) {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed {
		return nil, errShut
	}
	conn, err := g.inner(ctx, network, address)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	g.conns = append(g.conns, conn)
	g.mu.Unlock()
	return &gated{Conn: conn, gate: g}, nil
}

// shut silences all connections. For the servers, the client is silent, but connected.
func (g *gate) shut() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
}

// open permits new connections, and closes the silenced ones.
func (g *gate) open() {
	g.mu.Lock()
	g.closed = false
	conns := g.conns
	g.conns = nil
	g.mu.Unlock()
	g.opened.Broadcast()
	for _, c := range conns {
		c.Close()
	}
}

// gated is a connection through a gate. While the gate is shut, it blocks reads and drops
// writes.
type gated struct {
	net.Conn
	gate *gate
	over bool // guarded by the gate's mutex
}

func (c *gated) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.gate.mu.Lock()
	defer c.gate.mu.Unlock()
	for c.gate.closed && !c.over {
		c.gate.opened.Wait()
	}
	return n, err
}

func (c *gated) Write(b []byte) (int, error) {
	c.gate.mu.Lock()
	closed := c.gate.closed
	c.gate.mu.Unlock()
	if closed {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// Close leaves the server's end open while the gate is shut, like a crash of the machine. When
// the gate opens, it closes the connection.
func (c *gated) Close() error {
	c.gate.mu.Lock()
	closed := c.gate.closed
	c.over = true
	c.gate.mu.Unlock()
	c.gate.opened.Broadcast()
	if closed {
		return nil
	}
	return c.Conn.Close()
}
