package harness

import (
	"net"
	"sync"
)

// Conns serves the connections of a listener. Its methods may be called from any
// goroutine.
type Conns struct {
	ln   net.Listener
	done sync.WaitGroup // of the goroutines

	mu     sync.Mutex // guards the fields below
	open   map[net.Conn]bool
	closed bool
}

// ServeConns calls serve in a new goroutine for each connection to ln, until Close is called.
// It closes the connection when serve returns.
func ServeConns(ln net.Listener, serve func(net.Conn)) *Conns {
	c := &Conns{ln: ln, open: map[net.Conn]bool{}}
	c.done.Go(func() { // ends when Close closes the listener
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			c.done.Go(func() { c.serve(conn, serve) }) // ends with the connection
		}
	})
	return c
}

func (c *Conns) serve(conn net.Conn, serve func(net.Conn)) {
	defer func() { _ = conn.Close() }()
	c.mu.Lock()
	closed := c.closed
	c.open[conn] = true
	c.mu.Unlock()
	if !closed {
		serve(conn)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, conn)
}

// Addr returns the address of the listener.
func (c *Conns) Addr() string { return c.ln.Addr().String() }

// Close closes the listener and all connections, and waits until each call of serve returns.
func (c *Conns) Close() {
	_ = c.ln.Close()
	c.mu.Lock()
	c.closed = true
	for conn := range c.open {
		_ = conn.Close()
	}
	c.mu.Unlock()
	c.done.Wait()
}
