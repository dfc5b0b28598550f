package config

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/zklock/zklock/internal/netutil"
	"github.com/zklock/zklock/internal/testcert"
)

func TestClient(t *testing.T) {
	if (ClientTLS{}).Wanted() {
		t.Error("the zero Client wants TLS")
	}
	ca := testcert.New(t, "ca")
	p, q := ca.Client("ann"), ca.Client("ann")
	dir := t.TempDir()
	paths := testcert.Write(t, dir, "ca.pem", ca.PEM, "cert.pem", p.Cert, "key.pem", p.Key, "both.pem", p.Both(),
		"text.pem", []byte("x"), "other.pem", q.Key, "enc.pem", []byte("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n"))
	caFile, cert, key, both, text, other, enc := paths[0], paths[1], paths[2], paths[3], paths[4], paths[5], paths[6]
	for _, row := range []struct {
		client ClientTLS
		want   string
	}{
		{ClientTLS{CA: caFile}, ""},
		{ClientTLS{CA: SystemCAs}, ""},
		{ClientTLS{ServerName: "zoo"}, ""},
		{ClientTLS{CA: caFile, Cert: cert, Key: key}, ""},
		{ClientTLS{Cert: both}, ""},
		{ClientTLS{CA: text}, text + ": no certificate in PEM"},
		{ClientTLS{CA: filepath.Join(dir, "none")}, "no such file"},
		{ClientTLS{Key: key}, "a key without a certificate"},
		{ClientTLS{Cert: cert}, "with the key in " + cert},
		{ClientTLS{Cert: cert, Key: other}, "does not match"},
		{ClientTLS{Cert: cert, Key: enc}, "openssl pkey -in " + enc},
		{ClientTLS{Cert: cert, Key: filepath.Join(dir, "none")}, "no such file"},
		{ClientTLS{Cert: filepath.Join(dir, "none"), Key: key}, "no such file"},
	} {
		cfg, err := row.client.Config(func(err error) { t.Errorf("%+v: warned: %v", row.client, err) })
		if !row.client.Wanted() {
			t.Errorf("%+v is not wanted", row.client)
		}
		if row.want == "" {
			if err != nil || cfg.ServerName != row.client.ServerName || (cfg.VerifyConnection == nil) != (row.client.CA == "" || row.client.CA == SystemCAs) ||
				(cfg.GetClientCertificate == nil) != (row.client.Cert == "") {
				t.Errorf("%+v: %v", row.client, err)
			}
		} else if !errors.Is(err, ErrTLSFiles) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %q", row.client, err, row.want)
		}
	}
}

// TestClientReadsRenewedCertificate replaces the certificate of a running program.
func TestClientReadsRenewedCertificate(t *testing.T) {
	ca := testcert.New(t, "ca")
	old, renewed := ca.Client("ann"), ca.Client("ann")
	paths := testcert.Write(t, t.TempDir(), "cert.pem", old.Cert, "key.pem", old.Key)
	var warned []error
	cfg, err := ClientTLS{Cert: paths[0], Key: paths[1]}.Config(func(err error) { warned = append(warned, err) })
	if err != nil {
		t.Fatal(err)
	}
	expect := func(p testcert.Pair, warnings int) {
		t.Helper()
		got, err := cfg.GetClientCertificate(nil)
		if err != nil || !bytes.Equal(got.Certificate[0], p.TLS.Certificate[0]) || len(warned) != warnings {
			t.Errorf("%v, another certificate, or %d warnings, want %d", err, len(warned), warnings)
		}
	}
	expect(old, 0)
	if err := os.WriteFile(paths[0], renewed.Cert, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(old, 1) // the key is still the old one
	if err := os.WriteFile(paths[1], renewed.Key, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(renewed, 1)
	if err := os.Remove(paths[1]); err != nil {
		t.Fatal(err)
	}
	expect(renewed, 2)
}

// TestClientReadsRenewedAuthorities replaces the authorities of a running program.
func TestClientReadsRenewedAuthorities(t *testing.T) {
	old, renewed := testcert.New(t, "old"), testcert.New(t, "new")
	ca := testcert.Write(t, t.TempDir(), "ca.pem", old.PEM)[0]
	warned := 0
	cfg, err := ClientTLS{CA: ca}.Config(func(error) { warned++ })
	if err != nil {
		t.Fatal(err)
	}
	handshake := func(a *testcert.Authority, host string) error {
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{a.Server("127.0.0.1", "zoo.example").TLS}})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() { // ends when the client closes its connection, or l is closed
			if server, err := l.Accept(); err == nil {
				_, _ = server.Read(make([]byte, 1))
				server.Close()
			}
		}()
		client, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		return tls.Client(client, netutil.ForHost(cfg, host)).Handshake()
	}
	expect := func(accepted, refused *testcert.Authority, warnings int) {
		t.Helper()
		var unknown x509.UnknownAuthorityError
		var other x509.HostnameError
		var invalid *tls.CertificateVerificationError
		for _, host := range []string{"127.0.0.1", "127.0.0.1%lo", "zoo.example"} {
			if err := handshake(accepted, host); err != nil {
				t.Errorf("%s: %v", host, err)
			}
			if err := handshake(refused, host); !errors.As(err, &unknown) || !errors.As(err, &invalid) {
				t.Errorf("%s, another authority: %v", host, err)
			}
		}
		for _, host := range []string{"127.0.0.2", "other.example"} {
			if err := handshake(accepted, host); !errors.As(err, &other) || !errors.As(err, &invalid) {
				t.Errorf("%s: %v", host, err)
			}
		}
		if err := handshake(accepted, ""); err == nil {
			t.Error("a server without a name to verify is accepted")
		}
		if (warned > 0) != (warnings > 0) {
			t.Errorf("warned %d times", warned)
		}
	}
	expect(old, renewed, 0)
	if err := os.WriteFile(ca, renewed.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(renewed, old, 0)
	for _, invalid := range [][]byte{
		[]byte("x"),
		slices.Concat(old.PEM, renewed.PEM[:len(renewed.PEM)-20]),
		slices.Concat(old.PEM, bytes.Replace(renewed.PEM, []byte("MII"), []byte("MIA"), 1)),
	} {
		warned = 0
		if err := os.WriteFile(ca, invalid, 0o600); err != nil {
			t.Fatal(err)
		}
		expect(renewed, old, 1) // the former authorities
	}
}

// TestPipesAreReadOnce: a file that a shell creates for <(command) can be read only once.
func TestPipesAreReadOnce(t *testing.T) {
	ca := testcert.New(t, "ca")
	pipe := func(content []byte) string {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
		w.Close()
		return fmt.Sprintf("/dev/fd/%d", r.Fd())
	}
	p := ca.Client("ann")
	client := ClientTLS{CA: pipe(ca.PEM), Cert: testcert.Write(t, t.TempDir(), "cert.pem", p.Cert)[0], Key: pipe(p.Key)}
	if _, err := os.Stat(client.CA); err != nil {
		t.Skip("this system has no files for pipes: ", err)
	}
	cfg, err := client.Config(func(err error) { t.Errorf("warned: %v", err) })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cfg.GetClientCertificate(nil); err != nil {
		t.Error(err)
	}
	server, err := x509.ParseCertificate(ca.Server("zoo.example").TLS.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.VerifyConnection(tls.ConnectionState{ServerName: "zoo.example", PeerCertificates: []*x509.Certificate{server}}); err != nil {
		t.Error(err)
	}
}

// TestClientWarnsOnceForEachReason checks that simultaneous connections report the same reason
// once.
func TestClientWarnsOnceForEachReason(t *testing.T) {
	ca := testcert.New(t, "ca")
	paths := testcert.Write(t, t.TempDir(), "ca.pem", ca.PEM, "both.pem", ca.Client("ann").Both())
	var warned atomic.Int64
	cfg, err := ClientTLS{CA: paths[0], Cert: paths[1]}.Config(func(error) { warned.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	state := tls.ConnectionState{ServerName: "zoo.example", PeerCertificates: []*x509.Certificate{{}}}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, _ = cfg.GetClientCertificate(nil)
			_ = cfg.VerifyConnection(state)
		})
	}
	if all.Wait(); warned.Load() != 2 {
		t.Errorf("warned %d times, want once for each file", warned.Load())
	}
}

// TestClientRefusesServers checks that the client accepts the same certificates as crypto/tls.
func TestClientRefusesServers(t *testing.T) {
	ca, other := testcert.New(t, "ca"), testcert.New(t, "ca")
	file := testcert.Write(t, t.TempDir(), "ca.pem", ca.PEM)[0]
	cfg, err := ClientTLS{CA: file}.Config(func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	hosts := []string{"zoo.example", "127.0.0.1"}
	server, client := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for _, row := range []struct {
		what    string
		ca      *testcert.Authority
		request testcert.Request
		host    string
		want    bool
	}{
		{"a server", ca, testcert.Request{Hosts: hosts, Usage: server}, "zoo.example", true},
		{"its address", ca, testcert.Request{Hosts: hosts, Usage: server}, "127.0.0.1", true},
		{"another name", ca, testcert.Request{Hosts: hosts, Usage: server}, "other.example", false},
		{"another address", ca, testcert.Request{Hosts: hosts, Usage: server}, "127.0.0.2", false},
		{"no name", ca, testcert.Request{Hosts: hosts, Usage: server}, "", false},
		{"a certificate without names", ca, testcert.Request{Usage: server}, "zoo.example", false},
		{"another authority of the same name", other, testcert.Request{Hosts: hosts, Usage: server}, "zoo.example", false},
		{"an expired certificate", ca, testcert.Request{Hosts: hosts, Usage: server, Expired: true}, "zoo.example", false},
		{"the certificate of a client", ca, testcert.Request{Hosts: hosts, Usage: client}, "zoo.example", false},
	} {
		cert, err := x509.ParseCertificate(row.ca.Issue(row.request).TLS.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}
		err = netutil.ForHost(cfg, row.host).VerifyConnection(state)
		var invalid *tls.CertificateVerificationError
		if (err == nil) != row.want || err != nil && !errors.As(err, &invalid) {
			t.Errorf("%s: %v", row.what, err)
		}
	}
}
