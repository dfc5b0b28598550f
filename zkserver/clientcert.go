package zkserver

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
)

// Bounds of a client's certificate and the intermediate certificates that the client sends
// with it. Any client can send them, and crypto/x509 checks up to a hundred signatures to
// find a chain, each with a key of the client's choice. Within these bounds there are few
// ways to build a chain, and no check takes long.
const (
	maxClientCerts     = 8
	maxClientCertBytes = 16 << 10
	// maxSameSubject is how many intermediate certificates may have the subject of another one.
	// One is needed if two authorities certify one key, or if an authority changes its key.
	// Each such certificate doubles the ways to build a chain.
	maxSameSubject = 1
	maxRSABits     = 8192
	maxRSAExponent = 65537
	// maxConstraintChecks bounds the comparisons of names with the constraints of a certificate.
	maxConstraintChecks = 10_000
)

// errClientChain ends a handshake in which the client sent certificates above a bound.
var errClientChain = errors.New("zkserver: the client's certificates are refused unverified")

// verifyClientCerts returns a tls.Config's VerifyConnection that verifies the certificate
// of the client, if it sent one, as crypto/tls does with tls.VerifyClientCertIfGiven, but
// within bounds.
func verifyClientCerts(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		chain := state.PeerCertificates
		if len(chain) == 0 {
			return nil
		}
		if err := verifyClientChain(chain, roots); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: chain, Err: err}
		}
		return nil
	}
}

// verifyClientChain verifies a client's certificate, the first of chain. The others may be
// needed to reach one of the roots.
func verifyClientChain(chain []*x509.Certificate, roots *x509.CertPool) error {
	if err := checkClientChain(chain); err != nil {
		return err
	}
	opts := x509.VerifyOptions{
		Roots: roots, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		MaxConstraintComparisions: maxConstraintChecks,
	}
	for _, cert := range chain[1:] {
		opts.Intermediates.AddCert(cert)
	}
	_, err := chain[0].Verify(opts)
	return err
}

// checkClientChain returns an error if a client's certificates exceed a bound.
func checkClientChain(chain []*x509.Certificate) error {
	if len(chain) > maxClientCerts {
		return fmt.Errorf("%w: %d certificates, want at most %d", errClientChain, len(chain), maxClientCerts)
	}
	size, same, subjects := 0, 0, make(map[string]bool, len(chain))
	for i, cert := range chain {
		if size += len(cert.Raw); size > maxClientCertBytes {
			return fmt.Errorf("%w: more than %d bytes", errClientChain, maxClientCertBytes)
		}
		if key, ok := cert.PublicKey.(*rsa.PublicKey); ok && (key.N.BitLen() > maxRSABits || key.E > maxRSAExponent) {
			return fmt.Errorf("%w: an RSA key of %d bits with the exponent %d, want at most %d bits and %d",
				errClientChain, key.N.BitLen(), key.E, maxRSABits, maxRSAExponent)
		}
		if i == 0 {
			continue
		}
		if subjects[string(cert.RawSubject)] {
			same++
		}
		subjects[string(cert.RawSubject)] = true
		if same > maxSameSubject {
			return fmt.Errorf("%w: intermediate certificates have the same subjects", errClientChain)
		}
	}
	return nil
}
