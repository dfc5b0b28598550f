// Package tlsconf makes TLS configurations of what users say on the command
// line, in the environment and in ZooKeeper's own configuration files.
package tlsconf

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
)

// System stands for the authorities of the operating system, where the name of
// a file is expected.
const System = "system"

// ErrFiles is wrapped by every error about files of certificates and what was
// said of them.
var ErrFiles = errors.New("TLS")

// Client is what a client says of TLS. The zero Client means none.
type Client struct {
	// CA is a file of the certificates that the servers' must lead to, or
	// System. Empty means System too, if anything else is set.
	CA string
	// Cert and Key are files with the client's own certificate. An empty Key
	// means that Cert has both.
	Cert, Key string
	// ServerName is the name that the servers' certificates must have, instead
	// of the host in the connection string.
	ServerName string
}

// Wanted reports whether anything is set.
func (c Client) Wanted() bool { return c != Client{} }

// Config reads the files. The client's own certificate is read again for each
// connection, so that one that was renewed is used; warn is told, with an error
// that repeats from connection to connection, when that fails and the former
// one is used.
func (c Client) Config(warn func(error)) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if c.Key != "" && c.Cert == "" {
		return nil, fmt.Errorf("%w: there is a key and no certificate", ErrFiles)
	}
	if c.CA != "" && c.CA != System {
		b, err := os.ReadFile(c.CA)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrFiles, err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("%w: %s holds no certificate in PEM", ErrFiles, c.CA)
		}
	}
	if c.Cert == "" {
		return cfg, nil
	}
	first, err := c.pair()
	if err != nil {
		return nil, err
	}
	var last atomic.Pointer[tls.Certificate]
	last.Store(first)
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		fresh, err := c.pair()
		if err != nil {
			warn(err)
			return last.Load(), nil
		}
		last.Store(fresh)
		return fresh, nil
	}
	return cfg, nil
}

// pair reads certificate and key.
func (c Client) pair() (*tls.Certificate, error) {
	key := c.Key
	if key == "" {
		key = c.Cert
	}
	keyPEM, err := os.ReadFile(key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFiles, err)
	}
	if encrypted(keyPEM) {
		return nil, fmt.Errorf("%w: the key in %s is encrypted: decrypt it into a file that only you may read, by openssl pkey -in %s -out plain.pem",
			ErrFiles, key, key)
	}
	certPEM, err := os.ReadFile(c.Cert)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFiles, err)
	}
	p, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%w: %s with the key in %s: %w", ErrFiles, c.Cert, key, err)
	}
	return &p, nil
}

// encrypted reports whether a key is kept under a password.
func encrypted(content []byte) bool {
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
			return true
		}
	}
	return false
}
