package zk

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"slices"
	"syscall"
	"time"

	"github.com/zklock/zklock/internal/netutil"
)

// checkTLS returns an error for a configuration that no server can satisfy.
func checkTLS(c *tls.Config, list []address) error {
	if c == nil || c.ServerName != "" || c.InsecureSkipVerify && c.VerifyConnection == nil {
		return nil
	}
	for _, a := range list {
		if a.host == "" {
			return fmt.Errorf("%w: TLS over a unix socket has no host to verify: set TLS.ServerName to a name of the server's certificate", ErrInvalidOptions)
		}
	}
	return nil
}

// tlsMargin is the divisor for the part of the connection deadline that is not
// available to the TLS handshake.
const tlsMargin = 20

// handshakeTLS performs the TLS handshake over a connection to a, which it closes if
// the handshake fails. The error names the peer.
func (c *Client) handshakeTLS(ctx context.Context, a address, raw net.Conn) (net.Conn, error) {
	// The user's configuration is not modified, because other clients may use it.
	cfg := netutil.ForHost(c.opts.TLS, a.host)
	if cfg.CipherSuites == nil {
		cfg.CipherSuites = netutil.CipherSuites()
	}
	// The handshake ends slightly before the deadline of the connection, so that the
	// error says which step had no answer.
	if at, ok := ctx.Deadline(); ok {
		left := time.Until(at)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, left-left/tlsMargin)
		defer cancel()
	}
	conn := tls.Client(raw, cfg)
	err := conn.HandshakeContext(ctx)
	if err == nil {
		return conn, nil
	}
	raw.Close()
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		if named := identifyPeer(record.RecordHeader[:]); named != nil {
			return nil, named
		}
		return nil, fmt.Errorf("%w: the port does not speak TLS: %w", errWrongPeer, err)
	case closedByPeer(err):
		if c.isPlainPort(ctx, a) {
			return nil, fmt.Errorf("%w with TLS: the port is a plain one; remove the TLS option, or use the server's secure port", errWrongPeer)
		}
		return nil, fmt.Errorf("TLS handshake failed: the server closed the connection; it may be starting, or the port a plain one: %w", err)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("no answer to the TLS handshake: %w", err)
	}
	return nil, fmt.Errorf("TLS handshake failed: %w", err)
}

// closedByPeer reports whether the peer closed the connection without an answer.
func closedByPeer(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// plainPortTimeout bounds the check whether a port is a plain one.
const plainPortTimeout = time.Second

// isPlainPort reports whether a server that closed a TLS connection is a ZooKeeper
// server without TLS, which answers nothing to a TLS hello. It asks over a separate
// connection, and only before the first session, when the options may be wrong.
func (c *Client) isPlainPort(ctx context.Context, a address) bool {
	c.mu.Lock()
	late := c.dialReturned
	c.mu.Unlock()
	if late {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, plainPortTimeout)
	defer cancel()
	conn, err := c.opts.DialContext(ctx, a.network, a.addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	// Closing ends the exchange when ctx ends, at its deadline or because the client
	// is closed.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return false
	}
	head := make([]byte, len("Zookeeper"))
	n, _ := io.ReadFull(conn, head) // a partial answer is sufficient
	return bytes.EqualFold(head[:n], []byte("Zookeeper")) || bytes.HasPrefix(head[:n], []byte("srvr is"))
}

// refusal explains the end of a TLS connection by the server's alert. With TLS 1.3
// the alert arrives after the handshake, which for the client is complete before the
// server has checked its certificate.
func refusal(err error) error {
	if _, ok := alert(err); ok {
		return fmt.Errorf("the server refused the TLS connection, perhaps because of this client's certificate or because there is none: %w", err)
	}
	return err
}

// alert returns the number of the TLS alert that the server sent. The type of the
// alert is private to crypto/tls.
func alert(err error) (uint8, bool) {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" {
		return 0, false
	}
	v := reflect.ValueOf(op.Err)
	if v.Kind() != reflect.Uint8 {
		return 0, false
	}
	return uint8(v.Uint()), true
}

// Alerts after which the next attempt may succeed.
const (
	alertCloseNotify   = 0
	alertInternalError = 80
	alertUserCanceled  = 90
)

// An addressError is the failure of the server at one address of a host name. The server at
// another address may work.
type addressError struct{ error }

// Unwrap returns the failure.
func (e *addressError) Unwrap() error { return e.error }

// atAddress returns the error of a connection to a server, or of the attempt if l is nil. If the
// error is permanent and the server is a host name, other addresses of the name may work. The next
// attempts use them first: see [netutil.SilentSet]. So only a second permanent error at the same
// address remains permanent, without another error of the server in between. c.mu is held.
func (c *Client) atAddress(server string, l *link, err error) error {
	switch {
	case c.dialReturned || !addressOf(server).isName():
		return err
	case !permanent(err):
		delete(c.unusable, server)
		return err
	}
	addr := ""
	if l != nil && l.raw.RemoteAddr() != nil {
		addr = l.raw.RemoteAddr().String()
	}
	if slices.Contains(c.unusable[server], addr) {
		return err
	}
	if c.unusable == nil {
		c.unusable = map[string][]string{}
	}
	c.unusable[server] = append(c.unusable[server], addr)
	return &addressError{err}
}

// permanent reports whether a failure to connect will recur until the configuration
// changes.
func permanent(err error) bool {
	var other *addressError
	if errors.As(err, &other) {
		return false
	}
	var cert *tls.CertificateVerificationError
	var host x509.HostnameError
	if n, ok := alert(err); ok {
		return n != alertCloseNotify && n != alertInternalError && n != alertUserCanceled
	}
	return errors.Is(err, errWrongPeer) || errors.Is(err, ErrTLSRequired) || errors.Is(err, ErrInvalidOptions) || errors.As(err, &cert) || errors.As(err, &host)
}
