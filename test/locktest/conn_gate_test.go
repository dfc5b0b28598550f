package locktest

import (
	"context"
	"errors"
	"net"
	"sync"
)

// A gate makes connections that it can silence: when it is shut, they neither deliver nor
// accept data, and no new connections are made.
type gate struct {
	inner func(ctx context.Context, network, address string) (net.Conn, error)

	mu     sync.Mutex // guards what follows
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

// shut silences everything. The servers see a silent client, not a closed connection.
func (g *gate) shut() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
}

// open lets new connections be made, and cuts those that were silenced.
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

// gated is a connection through a gate. While the gate is shut, data to read are held back,
// and written data are dropped.
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

// Close leaves the server's side open while the gate is shut, as a crashed machine does.
// The connection is closed when the gate opens.
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
