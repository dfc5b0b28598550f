package testcert

import (
	"crypto/tls"
	"crypto/x509"
	"testing"
)

func TestCertificatesVerifyForTheirPurpose(t *testing.T) {
	a, b := New(t, "a"), New(t, "b")
	for _, row := range []struct {
		name string
		pair Pair
		by   *Authority
		host string
		use  x509.ExtKeyUsage
		good bool
	}{
		{"server", a.Server("zoo", "127.0.0.1"), a, "zoo", x509.ExtKeyUsageServerAuth, true},
		{"server by address", a.Server("zoo", "127.0.0.1"), a, "127.0.0.1", x509.ExtKeyUsageServerAuth, true},
		{"another host", a.Server("zoo"), a, "ark", x509.ExtKeyUsageServerAuth, false},
		{"client", a.Client("ann"), a, "", x509.ExtKeyUsageClientAuth, true},
		{"another authority", a.Client("ann"), b, "", x509.ExtKeyUsageClientAuth, false},
		{"another purpose", a.Client("ann"), a, "", x509.ExtKeyUsageServerAuth, false},
		{"every purpose", a.Issue(Request{}), a, "", x509.ExtKeyUsageServerAuth, true},
		{"expired", a.Issue(Request{Expired: true}), a, "", x509.ExtKeyUsageClientAuth, false},
	} {
		_, err := row.pair.TLS.Leaf.Verify(x509.VerifyOptions{Roots: row.by.Pool(), DNSName: row.host, KeyUsages: []x509.ExtKeyUsage{row.use}})
		if (err == nil) != row.good {
			t.Errorf("%s: %v", row.name, err)
		}
		both := row.pair.Both()
		if _, err := tls.X509KeyPair(both, both); err != nil {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
