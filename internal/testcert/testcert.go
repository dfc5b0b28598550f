// Package testcert creates certificates for tests.
package testcert

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	tb   testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	// PEM is the certificate of the authority.
	PEM []byte
}

// Request describes a certificate. The zero Request has no subject and permits every purpose.
type Request struct {
	// Subject is the subject. RawSubject, if not nil, is its encoding.
	Subject    pkix.Name
	RawSubject []byte
	// Hosts are the names and addresses of a server.
	Hosts []string
	// Usage are the purposes. Nil permits all.
	Usage []x509.ExtKeyUsage
	// Expired makes the certificate valid only in the past.
	Expired bool
	// Expires is the end of the validity. Zero means 150 years after the beginning.
	Expires time.Time
}

// Pair is a certificate with its key.
type Pair struct {
	Cert, Key []byte // PEM
	TLS       tls.Certificate
}

// validity returns a time span that includes the time of a synctest bubble, which begins in the
// year 2000, and the current time.
func validity(expired bool) (from, to time.Time) {
	from = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
	if expired {
		return from, from.AddDate(1, 0, 0)
	}
	return from, from.AddDate(150, 0, 0)
}

// New creates an authority with this name.
func New(tb testing.TB, name string) *Authority {
	tb.Helper()
	a := &Authority{tb: tb, key: newKey(tb)}
	tmpl := template(tb, Request{Subject: pkix.Name{CommonName: name}})
	tmpl.IsCA, tmpl.KeyUsage = true, x509.KeyUsageCertSign|x509.KeyUsageCRLSign
	a.cert = sign(tb, tmpl, tmpl, &a.key.PublicKey, a.key)
	a.PEM = encode("CERTIFICATE", a.cert.Raw)
	return a
}

// Issue creates a certificate.
func (a *Authority) Issue(r Request) Pair {
	a.tb.Helper()
	key := newKey(a.tb)
	cert := sign(a.tb, template(a.tb, r), a.cert, &key.PublicKey, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.tb.Fatal(err)
	}
	return Pair{
		Cert: encode("CERTIFICATE", cert.Raw), Key: encode("PRIVATE KEY", der),
		TLS: tls.Certificate{Certificate: [][]byte{cert.Raw}, PrivateKey: key, Leaf: cert},
	}
}

// Server creates a certificate of a server.
func (a *Authority) Server(hosts ...string) Pair {
	a.tb.Helper()
	return a.Issue(Request{Subject: pkix.Name{CommonName: "server"}, Hosts: hosts, Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
}

// Client creates a certificate of a client with the subject CN=name.
func (a *Authority) Client(name string) Pair {
	a.tb.Helper()
	return a.Issue(Request{Subject: pkix.Name{CommonName: name}, Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// Pool returns a pool that contains only this authority.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// Both returns the content of a PEM file with certificate and key, as ZooKeeper requires.
func (p Pair) Both() []byte { return bytes.Join([][]byte{p.Cert, p.Key}, nil) }

// Write writes files into a directory and returns their paths. Names and contents alternate.
func Write(tb testing.TB, dir string, namesAndContents ...any) []string {
	tb.Helper()
	var paths []string
	for i := 0; i+1 < len(namesAndContents); i += 2 {
		path := filepath.Join(dir, namesAndContents[i].(string))
		if err := os.WriteFile(path, namesAndContents[i+1].([]byte), 0o600); err != nil {
			tb.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// template returns the certificate to sign.
func template(tb testing.TB, r Request) *x509.Certificate {
	tb.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		tb.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: serial, Subject: r.Subject, RawSubject: r.RawSubject, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: r.Usage}
	c.NotBefore, c.NotAfter = validity(r.Expired)
	if !r.Expires.IsZero() {
		c.NotAfter = r.Expires
	}
	for _, h := range r.Hosts {
		if ip := net.ParseIP(h); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, h)
		}
	}
	return c
}

func sign(tb testing.TB, tmpl, parent *x509.Certificate, public *ecdsa.PublicKey, key *ecdsa.PrivateKey) *x509.Certificate {
	tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, tmpl, parent, public, key)
	if err != nil {
		tb.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		tb.Fatal(err)
	}
	return cert
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
