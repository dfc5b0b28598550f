package zkserver

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/zklock/zklock/internal/x500"
)

// handshaker is a connection that has a handshake before it can be read: a
// *tls.Conn, or one of Secure and Unify.
type handshaker interface {
	net.Conn
	HandshakeContext(ctx context.Context) error
	ConnectionState() tls.ConnectionState
	CloseWrite() error
	NetConn() net.Conn
}

// below returns the connection that can be closed without waiting: a TLS
// connection that is closed says goodbye first, which a peer that does not
// read holds up for seconds.
func below(nc net.Conn) net.Conn {
	if h, ok := nc.(handshaker); ok {
		return h.NetConn()
	}
	return nc
}

// errDistrust ends a TLS handshake that the client broke off without a word.
var errDistrust = fmt.Errorf("%w: the client closed the connection, perhaps since it does not trust the server's certificate", errTLS)

// errTLS is wrapped by what ends a TLS handshake.
var errTLS = errors.New("zkserver: TLS handshake failed")

// secure does the handshake of a TLS connection, within the deadline that is
// set on it, and keeps who the client is. It runs on the goroutine of the
// connection. Other connections are left alone.
func (s *Server) secure(c *conn) error {
	h, ok := c.nc.(handshaker)
	if !ok {
		return nil
	}
	// The context carries a value and never ends: the deadline is enough, and
	// a context that can end would cost a goroutine.
	var files *tlsReloader
	ctx := context.WithValue(context.Background(), tlsWatcherKey{}, tlsWatcher{log: s.log, counts: &s.count, used: &files, recheck: s.recheck})
	if err := h.HandshakeContext(ctx); err != nil {
		return s.handshakeError(err)
	}
	subject, err := subject(h.ConnectionState())
	if err != nil {
		s.count.tlsHandshakeFailures.Add(1)
		return err
	}
	c.subject = subject
	return c.remember(files, h.ConnectionState())
}

// handshakeError counts a failed handshake and says what it means.
func (s *Server) handshakeError(err error) error {
	var silent *silentError
	if errors.As(err, &silent) {
		return silent.err
	}
	s.count.tlsHandshakeFailures.Add(1)
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, errPlain):
		return errPlain
	case errors.As(err, &record) && record.RecordHeader[0] != tlsRecord:
		return errPlain
	case errors.Is(err, io.EOF):
		return errDistrust
	case errors.Is(err, os.ErrDeadlineExceeded):
		return err // as for a connect request that does not come
	}
	return fmt.Errorf("%w: %w", errTLS, err)
}

// subject is the identity of the client: the subject of its certificate, as
// Java writes it, or nothing without one. A certificate that was not verified
// against a CA, with a configuration that does not ask for that, is none.
func subject(state tls.ConnectionState) (string, error) {
	if len(state.PeerCertificates) == 0 || len(state.VerifiedChains) == 0 {
		return "", nil
	}
	name, err := x500.Name(state.PeerCertificates[0].RawSubject)
	if err != nil {
		return "", fmt.Errorf("zkserver: the subject of the client's certificate cannot be read: %w", err)
	}
	return name, nil
}
