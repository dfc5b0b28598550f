package config

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/zklock/zklock/internal/inputfile"
	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/netutil"
)

// This file makes TLS configurations from flags, environment variables, and ZooKeeper's
// configuration files.

// SystemCAs, in place of a file name, means the certificate authorities of the operating
// system.
const SystemCAs = "system"

// ErrTLSFiles is wrapped by every error about certificate files and TLS settings.
var ErrTLSFiles = errors.New("TLS")

// ClientTLS has the TLS settings of a client. The zero value means no TLS.
type ClientTLS struct {
	// CA is a file with the authorities of the servers' certificates, or SystemCAs. If it
	// is empty and another field is set, it means SystemCAs.
	CA string
	// Cert and Key are files with the client's certificate. An empty Key
	// means that Cert has both.
	Cert, Key string
	// ServerName is the name in the servers' certificates, if it is not the host in the
	// connection string.
	ServerName string
}

// Wanted reports whether a field is set.
func (c ClientTLS) Wanted() bool { return c != ClientTLS{} }

// Exposed returns the warning of ExposedKey for the client's key.
func (c ClientTLS) Exposed() string { return ExposedKey(cmp.Or(c.Key, c.Cert)) }

// ExposedKey returns a warning if every user of the machine may read the file of a TLS key,
// otherwise "".
func ExposedKey(name string) string {
	if name == "" || !permissions {
		return ""
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm()&0o007 == 0 {
		return "" // reading a missing file reports the error
	}
	return fmt.Sprintf("%q contains the TLS key, and all users of this machine can read it: chmod o= it", name)
}

// Config reads the files. It reads them again for each connection, so that a renewed
// certificate and changed authorities take effect. If that fails, the connection uses the
// previous ones. The configuration then calls warn, for each reason once. Connections can call
// it at the same time. SystemCAs and pipes are read once.
func (c ClientTLS) Config(warn func(error)) (*tls.Config, error) {
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if c.Key != "" && c.Cert == "" {
		return nil, fmt.Errorf("%w: a key without a certificate: give --tls-cert", ErrTLSFiles)
	}
	if c.CA != "" && c.CA != SystemCAs {
		roots, err := reread(c.roots, warn, c.CA)
		if err != nil {
			return nil, err
		}
		// crypto/tls would verify with RootCAs, which cannot change. VerifyConnection verifies
		// in the same way instead.
		cfg.InsecureSkipVerify = true
		cfg.VerifyConnection = func(state tls.ConnectionState) error { return verify(state, roots()) }
	}
	if c.Cert == "" {
		return cfg, nil
	}
	pair, err := reread(c.pair, warn, c.Cert, c.Key)
	if err != nil {
		return nil, err
	}
	cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return pair(), nil }
	return cfg, nil
}

// reread calls read, which reads files, and returns a function that calls it again. If that
// fails, the function returns the previous result, and calls warn unless the previous call
// failed for the same reason. If a file is a pipe, as that of a shell's <(command), it has no
// content any more, and the function returns the first result.
func reread[T any](read func() (T, error), warn func(error), files ...string) (func() T, error) {
	last, err := read()
	if err != nil {
		return nil, err
	}
	for _, name := range files {
		if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
			return func() T { return last }, nil
		}
	}
	var mu sync.Mutex // guards last and reason
	reason := ""
	return func() T {
		fresh, err := read()
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			last, reason = fresh, ""
			return fresh
		}
		mu.Lock()
		previous, known := last, err.Error() == reason
		reason = err.Error()
		mu.Unlock()
		if !known {
			warn(err)
		}
		return previous
	}, nil
}

// roots reads the authorities.
func (c ClientTLS) roots() (*x509.CertPool, error) {
	b, err := readPEM(c.CA)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTLSFiles, err)
	}
	pool, err := netutil.ParseCertPool(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrTLSFiles, c.CA, err)
	}
	return pool, nil
}

// verify checks the server's certificate and its name, as crypto/tls does.
func verify(state tls.ConnectionState, roots *x509.CertPool) error {
	opts := x509.VerifyOptions{
		Roots: roots, DNSName: state.ServerName, Intermediates: x509.NewCertPool(),
	}
	for _, cert := range state.PeerCertificates[1:] {
		opts.Intermediates.AddCert(cert)
	}
	_, err := state.PeerCertificates[0].Verify(opts)
	if state.ServerName == "" { // Verify then checks no name
		err = errors.New("a unix socket has no host to verify: give the name in the server's certificate with --tls-server-name")
	}
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
	}
	return nil
}

// pair reads the certificate and the key.
func (c ClientTLS) pair() (*tls.Certificate, error) {
	key := cmp.Or(c.Key, c.Cert)
	keyPEM, err := readPEM(key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTLSFiles, err)
	}
	if encrypted(keyPEM) {
		return nil, fmt.Errorf("%w: the key in %s is encrypted: decrypt it to a file that only you may read, with openssl pkey -in %s -out plain.pem",
			ErrTLSFiles, key, legible.Word(key))
	}
	certPEM, err := readPEM(c.Cert)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTLSFiles, err)
	}
	if _, err := netutil.ParseCertificates(certPEM); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrTLSFiles, c.Cert, err)
	}
	p, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("%w: %s with the key in %s: %w", ErrTLSFiles, c.Cert, key, err)
	}
	return &p, nil
}

// maxPEM limits the size of a file, as in the server.
const maxPEM = 4 << 20

func readPEM(name string) ([]byte, error) {
	text, _, err := inputfile.Read(name, maxPEM)
	return text, err
}

// encrypted reports whether a key is encrypted with a password.
func encrypted(content []byte) bool {
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED") {
			return true
		}
	}
	return false
}
