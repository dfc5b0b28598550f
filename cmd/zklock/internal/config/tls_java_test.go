package config

import (
	"crypto/tls"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/zklock/zklock/zkserver"
)

// read parses lines of key=value.
func read(t *testing.T, text string) (*JavaTLS, error) {
	t.Helper()
	j := &JavaTLS{}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			continue
		}
		known, err := j.Set(key, value)
		if err != nil {
			return j, err
		}
		if !known {
			t.Errorf("%s is not known", key)
		}
	}
	return j, nil
}

func TestJavaFiles(t *testing.T) {
	const stores = "ssl.keyStore.location=/x/server.pem\nssl.trustStore.location=/x/ca.pem\n"
	both := zkserver.TLSFiles{Cert: "/x/server.pem", CA: "/x/ca.pem", ClientAuth: tls.RequireAndVerifyClientCert}
	with := func(change func(*zkserver.TLSFiles)) zkserver.TLSFiles {
		f := both
		change(&f)
		return f
	}
	for _, row := range []struct {
		text string
		want zkserver.TLSFiles
		warn int
	}{
		{stores, both, 0},
		{stores + "ssl.clientAuth=WANT", with(func(f *zkserver.TLSFiles) { f.ClientAuth = tls.VerifyClientCertIfGiven }), 0},
		{stores + "ssl.clientAuth=need", both, 0},
		{stores + "ssl.clientAuth=none", with(func(f *zkserver.TLSFiles) { f.ClientAuth, f.CA = tls.NoClientCert, "" }), 1},
		{"ssl.keyStore.location=/x/a\nssl.keyStore.type=pem\nssl.clientAuth=none", zkserver.TLSFiles{Cert: "/x/a"}, 0},
		{stores + "ssl.keyStore.password=secret\nssl.trustStore.passwordPath=/p", both, 0},
		{stores + "ssl.protocol=TLSv1.2", both, 0},
		{stores + "ssl.protocol=TLSv1.3", with(func(f *zkserver.TLSFiles) { f.MinVersion = tls.VersionTLS13 }), 0},
		{stores + "ssl.enabledProtocols=TLSv1.3,TLSv1.2\nssl.protocol=TLSv1.3", both, 0},
		{stores + "ssl.enabledProtocols=TLSv1, TLSv1.1 ,TLSv1.2", both, 2},
		{stores + "ssl.ciphersuites=TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
			with(func(f *zkserver.TLSFiles) { f.CipherSuites = []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256} }), 0},
		{stores + "ssl.ciphersuites=TLS_AES_128_GCM_SHA256",
			with(func(f *zkserver.TLSFiles) { f.MinVersion = tls.VersionTLS13 }), 0},
		{stores + "ssl.crl=false\nssl.ocsp=false\nssl.authProvider=x509\nssl.handshakeDetectionTimeoutMillis=5", both, 1},
		{stores + "ssl.hostnameVerification=true\nssl.allowReverseDnsLookup=true", both, 2},
		{stores + "ssl.hostnameVerification=false\nssl.clientHostnameVerification=false\nssl.allowReverseDnsLookup=false", both, 0},
	} {
		j, err := read(t, row.text)
		if err != nil {
			t.Errorf("%q: %v", row.text, err)
			continue
		}
		got, warnings, err := j.Files()
		if err != nil || !reflect.DeepEqual(got, row.want) || len(warnings) != row.warn {
			t.Errorf("%q: %+v, %q, %v, want %+v and %d warnings", row.text, got, warnings, err, row.want, row.warn)
		}
	}
}

func TestJavaErrors(t *testing.T) {
	const trust = "ssl.trustStore.location=/x/ca.pem\n"
	for _, row := range []struct{ text, want string }{
		{"", "ssl.keyStore.location is missing"},
		{"ssl.keyStore.location=/x/a.pem", "ssl.trustStore.location is missing"},
		{"ssl.keyStore.location=/x/a.jks", "keytool -importkeystore -srckeystore /x/a.jks -destkeystore /x/a.p12"},
		{"ssl.keyStore.location=/x/a;id;b c.jks", "keytool -importkeystore -srckeystore '/x/a;id;b c.jks' -destkeystore '/x/a;id;b c.p12'"},
		{"ssl.keyStore.location=/x/a b.jks", "-nodes -out '/x/a b.pem' && rm '/x/a b.p12'"},
		{"ssl.keyStore.location=/x/a\nssl.keyStore.type=jks", "a JKS store"},
		{"ssl.keyStore.location=/x/a.p12", "openssl pkcs12 -in /x/a.p12 -nodes -out /x/a.pem"},
		{"ssl.keyStore.location=/x/a.bcfks", "a BCFKS store"},
		{"ssl.keyStore.location=/x/a", "its type is unknown"},
		{"ssl.keyStore.location=/x/a\nssl.keyStore.type=paper", `ssl.keyStore.type is "paper"`},
		{"ssl.keyStore.location=/x/a.pem\nssl.trustStore.location=/x/t.jks", "keytool -list -rfc -keystore /x/t.jks >/x/t.pem"},
		{"ssl.keyStore.location=/x/a.pem\nssl.trustStore.location=/x/t.p12", "keytool -list -rfc -keystore /x/t.p12 >/x/t.pem"},
		{trust + "ssl.clientAuth=maybe", `"maybe" is not none, want, or need`},
		{trust + "ssl.protocol=SSLv3", "no supported version"},
		{trust + "ssl.enabledProtocols=TLSv9", `"TLSv9" is not a TLS version`},
		{trust + "ssl.ciphersuites=TLS_RSA_WITH_RC4_128_SHA", "known and safe"},
		{trust + "ssl.crl=true", "does not check revocation"},
		{trust + "ssl.context.supplier.class=x.Y", "cannot load Java classes"},
		{trust + "ssl.authProvider=other", `"other" is not supported`},
	} {
		j, err := read(t, row.text)
		if err == nil {
			_, _, err = j.Files()
			if !errors.Is(err, ErrTLSFiles) {
				t.Errorf("%q: %v does not wrap ErrFiles", row.text, err)
			}
		}
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%q: %v, want %q", row.text, err, row.want)
		}
	}
	if known, err := new(JavaTLS).Set("ssl.quorum.keyStore.location", "x"); known || err != nil {
		t.Errorf("a key of ensembles is known: %v", err)
	}
}
