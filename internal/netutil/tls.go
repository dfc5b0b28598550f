package netutil

import (
	"crypto/tls"
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
