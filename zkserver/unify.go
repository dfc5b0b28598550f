package zkserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// errPlain ends a connection without TLS where TLS is spoken.
var errPlain = fmt.Errorf("%w: a client without TLS came to a port with TLS; set it to TLS, or give it the plain port", errTLS)

// errHello ends a connection with TLS where none is spoken.
var errHello = errors.New("zkserver: a client with TLS came to a port without; give it the port with TLS, or set it to none")

// Secure returns a listener of TLS connections over those of ln, for Serve. It
// does what tls.NewListener does, and tells clients without TLS at their first
// byte, while that waits for five: a short request, as one of the four-letter
// words, would hang until the handshake timeout. Closing it closes ln.
func Secure(ln net.Listener, c *tls.Config) net.Listener {
	return &tlsListener{Listener: ln, config: c}
}

// Unify returns a listener for clients with and without TLS on one port, as
// client.portUnification in ZooKeeper; a connection's first byte tells which.
// The clients without have no certificate, and anybody can be one: c's demand
// for certificates protects nothing here, but for ACLs of the scheme x509.
//
// Like Secure's, it does the handshake on the connection's goroutine: Accept
// never waits for a client. Closing it closes ln.
func Unify(ln net.Listener, c *tls.Config) net.Listener {
	return &tlsListener{Listener: ln, config: c, plain: true}
}

// tlsListener makes a tlsConn of each connection.
type tlsListener struct {
	net.Listener
	config *tls.Config
	plain  bool // clients without TLS are welcome
}

// Accept implements net.Listener. It reads nothing.
func (l *tlsListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tlsConn{Conn: nc, config: l.config, plain: l.plain}, nil
}

// tlsConn is a connection that is found to be of TLS or plain at its first
// byte. The embedded connection is the one below TLS: deadlines and Close are
// its own, so that Close never waits to say goodbye.
type tlsConn struct {
	net.Conn
	config *tls.Config
	plain  bool

	once sync.Once // runs shake
	err  error     // what came of it
	over net.Conn  // what is read and written
	tls  *tls.Conn // over, or nil without TLS
}

// HandshakeContext finds out what the client speaks, and shakes hands with it.
// Read and Write do so if it was not called. The first call counts.
func (c *tlsConn) HandshakeContext(ctx context.Context) error {
	c.once.Do(func() { c.err = c.shake(ctx) })
	return c.err
}

// tlsRecord is the first byte of a TLS handshake. In a plain connection it
// would begin the length of a request of 352 MB.
const tlsRecord = 0x16

func (c *tlsConn) shake(ctx context.Context) error {
	var first [1]byte
	if _, err := io.ReadFull(c.Conn, first[:]); err != nil {
		return &silentError{err}
	}
	rest := &prefixConn{Conn: c.Conn, prefix: first[:]}
	switch {
	case first[0] == tlsRecord:
		c.tls = tls.Server(rest, c.config)
		c.over = c.tls
		return c.tls.HandshakeContext(ctx)
	case c.plain:
		c.over = rest
		return nil
	}
	// An alert is all that a client can understand, if it looks: most take
	// it for a length beyond any limit. The error is that of the client.
	_, _ = c.Conn.Write(plainAlert())
	return errPlain
}

// plainAlert is the TLS record that says "unexpected message", fatal.
func plainAlert() []byte { return []byte{0x15, 3, 3, 0, 2, 2, 10} }

// Read implements net.Conn.
func (c *tlsConn) Read(b []byte) (int, error) {
	if err := c.HandshakeContext(context.Background()); err != nil {
		return 0, err
	}
	return c.over.Read(b)
}

// Write implements net.Conn.
func (c *tlsConn) Write(b []byte) (int, error) {
	if err := c.HandshakeContext(context.Background()); err != nil {
		return 0, err
	}
	return c.over.Write(b)
}

// CloseWrite tells a TLS client, after a handshake, that nothing more comes.
func (c *tlsConn) CloseWrite() error {
	if c.tls == nil {
		return nil
	}
	return c.tls.CloseWrite()
}

// ConnectionState is that of the TLS connection, and the zero one without TLS
// or before the end of the handshake.
func (c *tlsConn) ConnectionState() tls.ConnectionState {
	if c.tls == nil {
		return tls.ConnectionState{}
	}
	return c.tls.ConnectionState()
}

// NetConn returns the connection below.
func (c *tlsConn) NetConn() net.Conn { return c.Conn }

// silentError is why a connection ended before its first byte, which is not
// worth a word: monitoring connects and hangs up.
type silentError struct{ err error }

func (e *silentError) Error() string { return fmt.Sprintf("no first byte: %v", e.err) }
func (e *silentError) Unwrap() error { return e.err }

// prefixConn gives back bytes that were read.
type prefixConn struct {
	net.Conn
	prefix []byte
}

// Read implements net.Conn.
func (c *prefixConn) Read(b []byte) (int, error) {
	if len(c.prefix) == 0 {
		return c.Conn.Read(b)
	}
	n := copy(b, c.prefix)
	c.prefix = c.prefix[n:]
	return n, nil
}
