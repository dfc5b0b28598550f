// Package tlssuite names the cipher suites of TLS 1.2 that zklock speaks.
package tlssuite

import (
	"crypto/tls"
	"slices"
	"strings"
)

// AEAD returns the cipher suites of TLS 1.2 with forward secrecy and authenticated
// encryption: ECDHE with AES-GCM or ChaCha20-Poly1305. The defaults of crypto/tls have
// suites with CBC besides. The suites of TLS 1.3 are all of this kind and can't be chosen.
func AEAD() []uint16 {
	var ids []uint16
	for _, s := range tls.CipherSuites() {
		if slices.Contains(s.SupportedVersions, tls.VersionTLS12) && strings.HasPrefix(s.Name, "TLS_ECDHE_") &&
			(strings.Contains(s.Name, "_GCM_") || strings.Contains(s.Name, "_CHACHA20_POLY1305")) {
			ids = append(ids, s.ID)
		}
	}
	return ids
}
