package netutil

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// CipherSuites returns the cipher suites of TLS 1.2 with forward secrecy and
// authenticated encryption: ECDHE with AES-GCM or ChaCha20-Poly1305. The defaults of
// crypto/tls also include suites with CBC. All suites of TLS 1.3 are of this kind, and
// crypto/tls does not let a program choose among them.
func CipherSuites() []uint16 {
	var ids []uint16
	for _, s := range tls.CipherSuites() {
		if slices.Contains(s.SupportedVersions, tls.VersionTLS12) && strings.HasPrefix(s.Name, "TLS_ECDHE_") &&
			(strings.Contains(s.Name, "_GCM_") || strings.Contains(s.Name, "_CHACHA20_POLY1305")) {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// ParseCertificates returns the certificates of a PEM file, and ignores its other blocks. An
// invalid certificate and a block that is damaged or has no end are errors: crypto/x509 and
// crypto/tls ignore them, so the rest of a file that is only half written would take effect.
func ParseCertificates(file []byte) ([]*x509.Certificate, error) {
	var certs []*x509.Certificate
	blocks := 0
	for block, rest := pem.Decode(file); block != nil; block, rest = pem.Decode(rest) {
		if blocks++; block.Type != "CERTIFICATE" {
			continue
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d is invalid: %w", len(certs)+1, err)
		}
		certs = append(certs, cert)
	}
	all := max(bytes.Count(file, []byte("-----BEGIN ")), bytes.Count(file, []byte("-----END ")))
	if all > blocks {
		return nil, fmt.Errorf("%d of its %d PEM blocks are damaged or incomplete", all-blocks, all)
	}
	return certs, nil
}

// ParseCertPool returns the certificates of a PEM file, as ParseCertificates does. Without one, it
// returns an error.
func ParseCertPool(file []byte) (*x509.CertPool, error) {
	certs, err := ParseCertificates(file)
	if err == nil && len(certs) == 0 {
		err = errors.New("no certificate in PEM")
	}
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	for _, cert := range certs {
		pool.AddCert(cert)
	}
	return pool, nil
}

// ForHost returns a client's configuration for a connection to host. ServerName is host
// without its zone, unless c has one. VerifyConnection gets that name in the ServerName of
// its state, which crypto/tls leaves empty for an IP address.
func ForHost(c *tls.Config, host string) *tls.Config {
	c = c.Clone()
	if c.ServerName == "" {
		c.ServerName, _, _ = strings.Cut(host, "%") // certificates have no zone
	}
	if verify, name := c.VerifyConnection, c.ServerName; verify != nil {
		c.VerifyConnection = func(state tls.ConnectionState) error {
			state.ServerName = name
			return verify(state)
		}
	}
	return c
}
