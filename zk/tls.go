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
	"strings"
	"syscall"
	"time"

	"github.com/zklock/zklock/internal/tlssuite"
)

// checkTLS refuses what no server could satisfy.
func checkTLS(c *tls.Config, list []address) error {
	if c == nil || c.ServerName != "" || c.InsecureSkipVerify {
		return nil
	}
	for _, a := range list {
		if a.host == "" {
			return fmt.Errorf("%w: TLS over a unix socket has no host to verify: set TLS.ServerName to a name of the server's certificate", ErrInvalidOptions)
		}
	}
	return nil
}

// shakeMargin is the part of the time for a connection that the TLS handshake
// does not get.
const shakeMargin = 20

// shake does the TLS handshake over a connection to a, which it closes if that
// fails. The error names what answered.
func (c *Client) shake(ctx context.Context, a address, raw net.Conn) (net.Conn, error) {
	// The user's configuration is not changed: it may serve other clients.
	cfg := c.opts.TLS
	if cfg.ServerName == "" || cfg.CipherSuites == nil {
		cfg = cfg.Clone()
	}
	if cfg.ServerName == "" {
		cfg.ServerName, _, _ = strings.Cut(a.host, "%") // no certificate has a zone
	}
	if cfg.CipherSuites == nil {
		cfg.CipherSuites = tlssuite.AEAD()
	}
	// A little before the connection is given up for want of an answer: then the
	// error can say which one.
	if at, ok := ctx.Deadline(); ok {
		left := time.Until(at)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, left-left/shakeMargin)
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
		if named := stranger(record.RecordHeader[:]); named != nil {
			return nil, named
		}
		return nil, fmt.Errorf("%w: the port does not speak TLS: %w", errWrongPeer, err)
	case hungUp(err):
		if c.speaksPlain(ctx, a) {
			return nil, fmt.Errorf("%w with TLS: the port is a plain one; leave the TLS option out, or use the server's secure port", errWrongPeer)
		}
		return nil, fmt.Errorf("TLS handshake failed: the server closed the connection; it may be starting, or the port a plain one: %w", err)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("no answer to the TLS handshake: %w", err)
	}
	return nil, fmt.Errorf("TLS handshake failed: %w", err)
}

// hungUp reports whether the peer closed the connection without a word.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// plainProbe bounds the question whether a port is a plain one.
const plainProbe = time.Second

// speaksPlain asks, over a connection of its own, whether a server that hung up
// on TLS is a ZooKeeper server without: those say nothing to a hello. It is
// asked before the first session only, when the options may be wrong.
func (c *Client) speaksPlain(ctx context.Context, a address) bool {
	c.mu.Lock()
	late := c.wasReady
	c.mu.Unlock()
	if late {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, plainProbe)
	defer cancel()
	conn, err := c.opts.DialContext(ctx, a.network, a.addr)
	if err != nil {
		return false
	}
	defer conn.Close()
	// Closing also ends what is under way when ctx ends, by its deadline or
	// since the client is closed.
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return false
	}
	head := make([]byte, len("Zookeeper"))
	n, _ := io.ReadFull(conn, head) // what came will do
	return bytes.EqualFold(head[:n], []byte("Zookeeper")) || bytes.HasPrefix(head[:n], []byte("srvr is"))
}

// refusal explains the end of a TLS connection by the server's alert. With TLS
// 1.3 it comes after the handshake, which for the client is over before the
// server has seen its certificate.
func refusal(err error) error {
	if _, ok := alert(err); ok {
		return fmt.Errorf("the server refused the TLS connection, perhaps for this client's certificate or the want of one: %w", err)
	}
	return err
}

// alert returns the number of the TLS alert that the server sent. Its type is
// private to crypto/tls.
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

// Alerts that do not mean that the next attempt ends alike.
const (
	alertCloseNotify   = 0
	alertInternalError = 80
	alertUserCanceled  = 90
)

// permanent reports whether a failure to connect will not mend itself.
func permanent(err error) bool {
	var cert *tls.CertificateVerificationError
	var host x509.HostnameError
	if n, ok := alert(err); ok {
		return n != alertCloseNotify && n != alertInternalError && n != alertUserCanceled
	}
	return errors.Is(err, errWrongPeer) || errors.Is(err, ErrTLSRequired) || errors.As(err, &cert) || errors.As(err, &host)
}
