package memnet

import (
	"errors"
	"io"
	"net"
	"time"
)

// Conn is one end of a connection in memory. Its methods are safe for concurrent use.
// Writes wait for the peer to read only when 64 KiB are in flight. Errors other than
// io.EOF are *net.OpError and wrap net.ErrClosed, os.ErrDeadlineExceeded,
// syscall.ECONNRESET, or syscall.EPIPE, as those of TCP do.
type Conn struct {
	link    *link
	end     int // 0 or 1: link.flows[end] is the direction in which it sends
	local   net.Addr
	remote  net.Addr
	peer    *Conn
	onClose func() // set by the listener; nil if there is none
}

var _ net.Conn = (*Conn)(nil)

// Pipe returns the two ends of a connection without a listener. The ends have the
// addresses 127.0.0.1:1 and 127.0.0.1:2.
func Pipe() (*Conn, *Conn) {
	return newConns(loopback(1), loopback(2))
}

// newConns returns both ends of a connection between two addresses.
func newConns(a, b net.Addr) (*Conn, *Conn) {
	l := newLink()
	c0 := &Conn{link: l, end: 0, local: a, remote: b}
	c1 := &Conn{link: l, end: 1, local: b, remote: a}
	c0.peer, c1.peer = c1, c0
	return c0, c1
}

// Read implements net.Conn. After the peer's Close it returns what the peer had sent,
// then io.EOF.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.link.read(1-c.end, p)
	return n, c.opError("read", err)
}

// Write implements net.Conn. After the peer's Close it fails with
// syscall.EPIPE.
func (c *Conn) Write(p []byte) (int, error) {
	n, err := c.link.write(c.end, p)
	return n, c.opError("write", err)
}

// Close implements net.Conn: the peer reads what was sent, then io.EOF.
func (c *Conn) Close() error {
	err := c.link.close(c.end)
	c.closed()
	return c.opError("close", err)
}

// CloseWrite closes the sending direction, as TCPConn's does. Reading continues.
func (c *Conn) CloseWrite() error {
	return c.opError("close", c.link.closeWrite(c.end))
}

// CloseAbrupt resets the connection: every call on both ends fails with
// syscall.ECONNRESET from now on, and the bytes in flight are lost. Both ends still
// have to be closed.
func (c *Conn) CloseAbrupt() {
	c.link.abort()
	c.closed()
	c.peer.closed()
}

// closed removes this end from its listener, if it has one.
func (c *Conn) closed() {
	if c.onClose != nil {
		c.onClose()
	}
}

// LocalAddr implements net.Conn; it is a *net.TCPAddr.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn; it is a *net.TCPAddr.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	f := &c.link.flows[1-c.end]
	return c.opError("set", c.link.setDeadline(&f.readBy, &f.readable, &f.readDone, t))
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	f, in := &c.link.flows[c.end], &c.link.flows[1-c.end]
	return c.opError("set", c.link.setDeadline(&f.writeBy, &f.writable, &in.readDone, t))
}

// opError wraps an error as package net does.
func (c *Conn) opError(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}
