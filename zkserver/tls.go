package zkserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"github.com/zklock/zklock/internal/x500"
)

// handshaker is a connection with a handshake before the first read: a *tls.Conn, or a
// connection of Secure and Unify.
type handshaker interface {
	net.Conn
	HandshakeContext(ctx context.Context) error
	ConnectionState() tls.ConnectionState
	CloseWrite() error
	NetConn() net.Conn
}

// rawConn returns the connection that can be closed without blocking. Closing a TLS
// connection first sends a message, which a peer that does not read delays for seconds.
func rawConn(nc net.Conn) net.Conn {
	if h, ok := nc.(handshaker); ok {
		return h.NetConn()
	}
	return nc
}

// errClientClosedTLS ends a TLS handshake in which the client closed the connection without
// an alert.
var errClientClosedTLS = fmt.Errorf("%w: the client closed the connection, perhaps because it does not trust the server's certificate", errTLS)

// errTLS is wrapped by errors that end a TLS handshake.
var errTLS = errors.New("zkserver: TLS handshake failed")

// handshakeTLS does the handshake of a TLS connection, within the deadline set on it, and
// records the client's identity. It runs on the connection's goroutine. Other connections
// need no handshake.
func (s *Server) handshakeTLS(c *conn) error {
	h, ok := c.nc.(handshaker)
	if !ok {
		return nil
	}
	var files *tlsReloader
	ctx, err := c.beginHandshake(&files)
	if err != nil {
		return err
	}
	err = h.HandshakeContext(ctx)
	c.endHandshake()
	if err != nil {
		return s.handshakeError(err)
	}
	subject, err := clientSubject(h.ConnectionState(), files != nil)
	if err != nil {
		s.count.tlsHandshakeFailures.Add(1)
		return err
	}
	c.subject = subject
	return c.keepCertificate(files, h.ConnectionState())
}

// handshakeError counts a failed handshake and returns an error that explains it.
func (s *Server) handshakeError(err error) error {
	var silent *noFirstByteError
	if errors.As(err, &silent) {
		return silent.err
	}
	s.count.tlsHandshakeFailures.Add(1)
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, errNotTLS):
		return errNotTLS
	case errors.As(err, &record) && record.RecordHeader[0] != tlsRecord:
		return errNotTLS
	case errors.Is(err, errLongHandshake):
		return errLongHandshake
	case errors.Is(err, io.EOF):
		return errClientClosedTLS
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err // as for a connect request that does not arrive
	}
	return fmt.Errorf("%w: %w", errTLS, err)
}

// clientSubject returns the identity of the client: the subject of its certificate, as Java
// writes it, or "" without a certificate. TLSFiles verify each certificate. Another
// configuration may not verify it against a CA: then it is no identity.
func clientSubject(state tls.ConnectionState, fromFiles bool) (string, error) {
	if len(state.PeerCertificates) == 0 || !fromFiles && len(state.VerifiedChains) == 0 {
		return "", nil
	}
	name, err := x500.Name(state.PeerCertificates[0].RawSubject)
	if err != nil {
		return "", fmt.Errorf("zkserver: read the subject of the client's certificate: %w", err)
	}
	return name, nil
}

// errNotTLS ends a connection without TLS on a TLS port.
var errNotTLS = fmt.Errorf("%w: a client without TLS connected to a TLS port; configure the client for TLS, or use the plain port", errTLS)

// errUnexpectedTLS ends a TLS connection on a port without TLS.
var errUnexpectedTLS = errors.New("zkserver: a TLS client connected to a port without TLS; use the TLS port, or configure the client without TLS")

// Secure returns a listener of TLS connections over those of ln, for Serve. Like
// tls.NewListener, but it rejects clients without TLS at their first byte, and not after
// five: a short request, such as a four-letter word, would hang until the handshake
// timeout. It also bounds what handshakes cost the server: how much a client may send, and
// how many handshakes compute at a time. If c verifies client certificates, make it with
// [TLSFiles], which bounds their number and keys. Closing the listener closes ln.
func Secure(ln net.Listener, c *tls.Config) net.Listener {
	return &tlsListener{Listener: ln, config: c}
}

// Unify returns a listener for clients with and without TLS on one port, as
// client.portUnification in ZooKeeper. The first byte of a connection tells which. A client
// without TLS has no certificate, so a requirement of c for certificates protects nothing
// here, except ACLs of the scheme x509.
//
// As with Secure, the cost of handshakes is bounded, and the handshake runs on the connection's goroutine: Accept never waits for
// a client. Closing the listener closes ln.
func Unify(ln net.Listener, c *tls.Config) net.Listener {
	return &tlsListener{Listener: ln, config: c, plain: true}
}

// tlsListener wraps each connection in a tlsConn.
type tlsListener struct {
	net.Listener
	config *tls.Config
	plain  bool // accept clients without TLS
}

// Accept implements net.Listener. It reads nothing.
func (l *tlsListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tlsConn{Conn: nc, config: l.config, plain: l.plain}, nil
}

// tlsConn is a connection whose first byte tells whether it is TLS or plain. The embedded
// connection is the one below TLS: it provides the deadlines and Close, so that Close never
// waits to send a TLS message.
type tlsConn struct {
	net.Conn
	config *tls.Config
	plain  bool

	once   sync.Once // runs handshake
	err    error     // its result
	stream net.Conn  // what Read and Write use
	tls    *tls.Conn // stream, or nil without TLS
}

// HandshakeContext determines whether the client uses TLS, and does the TLS handshake. Read
// and Write call it if the caller did not. The first call counts.
func (c *tlsConn) HandshakeContext(ctx context.Context) error {
	c.once.Do(func() { c.err = c.handshake(ctx) })
	return c.err
}

// tlsRecord is the first byte of a TLS handshake. In a plain connection it would begin the
// length of a 352 MB request.
const tlsRecord = 0x16

func (c *tlsConn) handshake(ctx context.Context) error {
	var first [1]byte
	if _, err := io.ReadFull(c.Conn, first[:]); err != nil {
		return &noFirstByteError{err}
	}
	rest := &handshakeConn{Conn: c.Conn, prefix: first[:], left: maxHandshakeBytes, in: handshakeContextOf(ctx)}
	switch {
	case first[0] == tlsRecord:
		c.tls = tls.Server(rest, c.config)
		c.stream = c.tls
		defer rest.finish()
		return c.tls.HandshakeContext(ctx)
	case c.plain:
		rest.finish()
		c.stream = rest
		return nil
	}
	// Send an alert, the only message that the client may understand. Most clients read it
	// as a length beyond any limit. The returned error describes the client's mistake.
	_, _ = c.Conn.Write(notTLSAlert())
	return errNotTLS
}

// notTLSAlert returns the TLS record for "unexpected message", fatal.
func notTLSAlert() []byte { return []byte{0x15, 3, 3, 0, 2, 2, 10} }

// Read implements net.Conn.
func (c *tlsConn) Read(b []byte) (int, error) {
	if err := c.HandshakeContext(context.Background()); err != nil {
		return 0, err
	}
	return c.stream.Read(b)
}

// Write implements net.Conn.
func (c *tlsConn) Write(b []byte) (int, error) {
	if err := c.HandshakeContext(context.Background()); err != nil {
		return 0, err
	}
	return c.stream.Write(b)
}

// CloseWrite tells a TLS client, after a handshake, that no more output follows.
func (c *tlsConn) CloseWrite() error {
	if c.tls == nil {
		return nil
	}
	return c.tls.CloseWrite()
}

// ConnectionState returns the state of the TLS connection. It is zero without TLS or before
// the end of the handshake.
func (c *tlsConn) ConnectionState() tls.ConnectionState {
	if c.tls == nil {
		return tls.ConnectionState{}
	}
	return c.tls.ConnectionState()
}

// NetConn returns the connection below TLS.
func (c *tlsConn) NetConn() net.Conn { return c.Conn }

// noFirstByteError is why a connection ended before its first byte. It is not logged:
// monitoring connects and hangs up.
type noFirstByteError struct{ err error }

func (e *noFirstByteError) Error() string { return fmt.Sprintf("no first byte: %v", e.err) }
func (e *noFirstByteError) Unwrap() error { return e.err }
