package zkserver

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"math/big"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/testcert"
)

// chainTest makes chains of certificates.
type chainTest struct {
	t   *testing.T
	key *ecdsa.PrivateKey // signs all certificates
}

func newChainTest(t *testing.T) *chainTest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &chainTest{t, key}
}

// cert returns a certificate of subject for the public key, signed by issuer, in DER form.
func (h *chainTest) cert(subject, issuer string, ca bool, public any) []byte {
	h.t.Helper()
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: subject}, IsCA: ca, BasicConstraintsValid: true,
		NotBefore: time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2130, 1, 1, 0, 0, 0, 0, time.UTC)}
	if ca {
		c.KeyUsage = x509.KeyUsageCertSign
	}
	der, err := x509.CreateCertificate(rand.Reader, c, &x509.Certificate{Subject: pkix.Name{CommonName: issuer}}, public, h.key)
	if err != nil {
		h.t.Fatal(err)
	}
	return der
}

func (h *chainTest) parse(ders ...[]byte) (certs []*x509.Certificate) {
	h.t.Helper()
	for _, der := range ders {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			h.t.Fatal(err)
		}
		certs = append(certs, c)
	}
	return certs
}

// largeKey returns an RSA public key without a private key. Verifying a signature with it takes
// long.
func largeKey(bits, exponent int) *rsa.PublicKey {
	n := make([]byte, bits/8)
	rand.Read(n)
	n[0] |= 0xc0
	n[len(n)-1] |= 1
	return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: exponent}
}

// TestClientChainAboveBoundsIsRefusedUnverified: a client sends a valid certificate and others
// that are not needed. Above each bound, the server refuses the chain before it verifies any
// signature: it never checks the constraint of the authority.
func TestClientChainAboveBoundsIsRefusedUnverified(t *testing.T) {
	h := newChainTest(t)
	leaf, root := h.cert("ann", "root", false, h.key.Public()), h.cert("root", "root", true, h.key.Public())
	other := func(subject string, key any) []byte { return h.cert(subject, "root", true, key) }
	many := func(n int) (ders [][]byte) {
		for i := range n {
			ders = append(ders, other(strings.Repeat("i", 1+i), h.key.Public()))
		}
		return ders
	}
	for _, row := range []struct {
		name  string
		extra [][]byte
		fits  bool
	}{
		{"alone", nil, true},
		{"most certificates", many(maxClientCerts - 1), true},
		{"too many certificates", many(maxClientCerts), false},
		{"too many bytes", [][]byte{other(strings.Repeat("x", maxClientCertBytes), h.key.Public())}, false},
		{"two of a name", [][]byte{other("i", h.key.Public()), other("i", largeKey(2048, 65537))}, true},
		{"three of a name", [][]byte{other("i", h.key.Public()), other("i", largeKey(2048, 65537)), other("i", largeKey(2048, 65537))}, false},
		{"two of each of two names", [][]byte{other("i", h.key.Public()), other("i", largeKey(2048, 65537)), other("j", h.key.Public()), other("j", largeKey(2048, 65537))}, false},
		{"largest key", [][]byte{other("i", largeKey(maxRSABits, maxRSAExponent))}, true},
		{"key too large", [][]byte{other("i", largeKey(maxRSABits+8, maxRSAExponent))}, false},
		{"exponent too large", [][]byte{other("i", largeKey(2048, maxRSAExponent+2))}, false},
	} {
		verified := 0
		roots := x509.NewCertPool()
		roots.AddCertWithConstraint(h.parse(root)[0], func([]*x509.Certificate) error { verified++; return nil })
		err := verifyClientChain(h.parse(slices.Concat([][]byte{leaf}, row.extra)...), roots)
		if row.fits && (err != nil || verified == 0) {
			t.Errorf("%s: %v, verified %d times", row.name, err, verified)
		}
		if !row.fits && (!errors.Is(err, errClientChain) || verified > 0) {
			t.Errorf("%s: %v, verified %d times", row.name, err, verified)
		}
	}
}

// hostileChain returns a client's certificate, with n authorities that could have signed it.
// None has, and it takes long to verify that.
func hostileChain(t *testing.T, n int) *tls.Certificate {
	t.Helper()
	h := newChainTest(t)
	var leaf struct {
		Signed, Algorithm asn1.RawValue
		Signature         asn1.BitString
	}
	if _, err := asn1.Unmarshal(h.cert("ann", "i", false, h.key.Public()), &leaf); err != nil {
		t.Fatal(err)
	}
	// Change the algorithm of the signature to RSA with SHA-256.
	algorithm := asn1.RawValue{FullBytes: []byte{0x30, 0x0d, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 0x0b, 5, 0}}
	var fields []asn1.RawValue
	for rest := leaf.Signed.Bytes; len(rest) > 0; {
		var v asn1.RawValue
		rest, _ = asn1.Unmarshal(rest, &v)
		fields = append(fields, v)
	}
	fields[2] = algorithm
	signed, err := asn1.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	leaf.Signed, leaf.Algorithm = asn1.RawValue{FullBytes: signed}, algorithm
	leaf.Signature = asn1.BitString{Bytes: make([]byte, 1024), BitLength: 8192}
	leaf.Signature.Bytes[1] = 1
	der, err := asn1.Marshal(leaf)
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: h.key}
	for range n {
		c.Certificate = append(c.Certificate, h.cert("i", "i", true, largeKey(8192, 1<<31-1)))
	}
	h.parse(c.Certificate...)
	return c
}

// TestHostileClientChainCostsLittle: crypto/tls needs hundreds of times as long to verify a
// hostile chain as a good one. The server refuses it in about the time of a good one.
func TestHostileClientChainCostsLittle(t *testing.T) {
	b := newTLSFixture(t, tls.RequireAndVerifyClientCert)
	for name, wrap := range wrappers() {
		port := map[string]string{"Secure": "2281", "Unify": "2282", "tls.NewListener": "2283"}[name]
		b.serve(port, wrap)
		login := func(c *tls.Certificate) time.Duration {
			return took(func() {
				_, err := b.login(tls.Client(b.dial(port), &tls.Config{RootCAs: b.ca.Pool(), ServerName: tlsHost,
					GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c, nil }}))
				if (err == nil) != (c.Leaf != nil) {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		ann, hostile := b.ca.Client("ann"), hostileChain(t, 95)
		good, bad := time.Hour, time.Hour
		for range 5 {
			good, bad = min(good, login(&ann.TLS)), min(bad, login(hostile))
		}
		t.Logf("%s: %v for a good client, %v for a hostile one", name, good, bad)
		if bad > 50*good {
			t.Errorf("%s: a hostile handshake took %v, a good one %v", name, bad, good)
		}
	}
}

// eachTLSListener calls test with a server for each listener that bounds handshakes.
func eachTLSListener(t *testing.T, test func(t *testing.T, name string, b *tlsFixture)) {
	for name, wrap := range wrappers() {
		if name == "tls.NewListener" {
			continue // its handshakes are not bounded
		}
		synctest.Test(t, func(t *testing.T) {
			b := newTLSFixture(t, tls.RequireAndVerifyClientCert)
			b.serve("2281", wrap)
			test(t, name, b)
		})
	}
}

// TestHandshakesComputeInTurns checks that no more handshakes than slots compute at once. A
// handshake that waits for the network takes no slot, and one whose connection ends stops
// waiting for a slot.
func TestHandshakesComputeInTurns(t *testing.T) {
	eachTLSListener(t, func(t *testing.T, name string, b *tlsFixture) {
		for range 20 { // these wait for the rest of the hello
			b.dial("2281").Write([]byte{tlsRecord, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3})
		}
		synctest.Wait()
		if n := len(b.srv.handshakes); n > 0 {
			t.Fatalf("%s: silent clients take %d slots", name, n)
		}
		for range cap(b.srv.handshakes) { // as if handshakes computed
			b.srv.handshakes <- struct{}{}
		}
		ann := b.ca.Client("ann")
		waiting, aborted := b.tlsClient(b.dial("2281"), ann), b.tlsClient(b.dial("2281"), ann)
		var served atomic.Bool
		go func() { // ends with the answer to the connect request
			_, err := b.login(waiting)
			served.Store(err == nil)
		}()
		go aborted.Handshake() // ends with the connection
		synctest.Wait()
		if served.Load() {
			t.Errorf("%s: a handshake needed no slot", name)
		}
		b.srv.mu.Lock()
		conns := slices.Clone(b.srv.live)
		b.srv.mu.Unlock()
		last := slices.MaxFunc(conns, func(a, b *conn) int { return cmp.Compare(a.id, b.id) })
		last.abort(errEvicted)
		synctest.Wait()
		if n := b.srv.Stats().Connections; n != len(conns)-1 {
			t.Errorf("%s: %d of %d connections are left, want one fewer", name, n, len(conns))
		}
		<-b.srv.handshakes
		synctest.Wait()
		if !served.Load() {
			t.Errorf("%s: not served once a slot was free", name)
		}
		if n, want := len(b.srv.handshakes), cap(b.srv.handshakes)-1; n != want {
			t.Errorf("%s: %d slots are taken, want %d", name, n, want)
		}
	})
}

// TestLongHandshakeIsRefused: a client sends a hundred certificates in its handshake.
func TestLongHandshakeIsRefused(t *testing.T) {
	eachTLSListener(t, func(t *testing.T, name string, b *tlsFixture) {
		ann := b.ca.Client("ann")
		for len(ann.TLS.Certificate) < 100 {
			ann.TLS.Certificate = append(ann.TLS.Certificate, testcert.New(t, strings.Repeat("x", 400)).Client("ann").TLS.Certificate[0])
		}
		if _, err := b.session("2281", ann); err == nil {
			t.Errorf("%s: served", name)
		}
		synctest.Wait()
		if log := b.log.String(); !strings.Contains(log, errLongHandshake.Error()) {
			t.Errorf("%s: the log does not say why:\n%s", name, log)
		}
	})
}
