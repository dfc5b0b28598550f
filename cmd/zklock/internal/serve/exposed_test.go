package serve

import (
	"bytes"
	"crypto/tls"
	"log/slog"
	"net"
	"strings"
	"testing"
)

// TestExposure checks that addresses of other machines cause a warning, and that the defaults and
// local addresses do not.
func TestExposure(t *testing.T) {
	const plain, bare, page = "without TLS", "without authentication of clients", "serving metrics at"
	for _, tt := range []struct {
		args, cfg string
		want      []string // parts of the warnings, in order
	}{
		{"--memory", "", nil},
		{"--memory --metrics 9", "", nil},
		{"--memory --metrics :9", "", nil},
		{"--memory --listen unix:/run/s", "", nil},
		{"--memory --listen localhost:1", "", nil},
		{"--memory --listen [::1]:1 --metrics [::1]:2", "", nil},
		{"--memory --listen 127.9.9.9:1", "", nil},
		{"", "dataDir=/f", nil},
		{"--memory --listen :1", "", []string{plain}},
		{"--memory --listen 0.0.0.0:1", "", []string{plain}},
		{"--memory --listen [::]:1", "", []string{plain}},
		{"--memory --listen 10.0.0.1:1", "", []string{plain}},
		{"--memory --listen [fe80::1%eth0]:1", "", []string{plain}},
		{"--memory --listen db1:1", "", []string{plain}},
		{"", "dataDir=/f\nclientPort=1", []string{plain}},
		{"", "dataDir=/f\nclientPort=1\nclientPortAddress=127.0.0.1", nil},
		{"--memory --metrics 0.0.0.0:9", "", []string{page}},
		{"--memory --tls-listen :1 --tls-cert c", "", []string{bare}},
		{"--memory --tls-listen :1 --tls-cert c --tls-ca a", "", nil},
		{"--memory --tls-listen :1 --tls-cert c --listen :2 --metrics h:3", "", []string{plain, bare, page}},
		{"--memory --tls-unify --tls-cert c --tls-ca a --listen :2", "", []string{plain}},
		// A scheme that every client fulfills is no authentication.
		{"--memory --tls-listen :1 --tls-cert c", "enforce.auth.enabled=true\nenforce.auth.schemes=ip", []string{bare}},
		{"--memory --tls-listen :1 --tls-cert c", "enforce.auth.enabled=true\nenforce.auth.schemes=digest,sasl", []string{bare}},
		{"--memory --tls-listen :1 --tls-cert c --tls-ca a --tls-client-auth want", "enforce.auth.enabled=true\nenforce.auth.schemes=x509,sasl", nil},
	} {
		p, err := planned(t, tt.args, tt.cfg)
		if err != nil {
			t.Errorf("%s with %q: %v", tt.args, tt.cfg, err)
			continue
		}
		wantWarnings(t, tt.args+" with "+tt.cfg, p.exposures(), tt.want)
	}
}

func wantWarnings(t *testing.T, what string, got, want []string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %q, want %q", what, got, want)
		return
	}
	for i := range want {
		if !strings.Contains(got[i], want[i]) {
			t.Errorf("%s: %q, want %q", what, got[i], want[i])
		}
	}
}

// TestAuthenticatedTLSIsNoExposure checks TLS with clients that must authenticate.
func TestAuthenticatedTLSIsNoExposure(t *testing.T) {
	for _, change := range []func(*plan){
		func(p *plan) { p.tls.Files.ClientAuth = tls.RequireAndVerifyClientCert },
		func(p *plan) { p.opts.RequireSASL = true },
		func(p *plan) { p.opts.EnforceAuthSchemes = []string{"x509"} },
	} {
		p := &plan{}
		p.tls.Listen = ":1"
		wantWarnings(t, "TLS", p.exposures(), []string{"without authentication"})
		change(p)
		wantWarnings(t, "TLS with proofs", p.exposures(), nil)
	}
}

// TestExposureOfSockets checks that sockets of systemd replace the addresses.
func TestExposureOfSockets(t *testing.T) {
	p := &plan{listen: ":2181", metrics: ":7000"}
	for _, name := range []string{"unknown", socketMetrics} {
		p.sockets = append(p.sockets, Socket{Name: name, Listener: addressed{&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}}})
	}
	wantWarnings(t, "of the loopback", p.exposures(), nil)
	p.sockets = append(p.sockets, Socket{Name: "other", Listener: addressed{&net.UnixAddr{Name: "/run/s", Net: "unix"}}})
	for _, name := range []string{"unknown", socketTLS, socketMetrics} { // each with two addresses
		for _, ip := range []net.IP{net.IPv6zero, net.IPv6loopback} {
			p.sockets = append(p.sockets, Socket{Name: name, Listener: addressed{&net.TCPAddr{IP: ip, Port: 2}}})
		}
	}
	wantWarnings(t, "of others", p.exposures(), []string{"listening at [::]:2", "TLS at [::]:2", "metrics at [::]:2"})
}

// TestPagesHaveAddressesOfTheirNetwork: a unix socket has no URL.
func TestPagesHaveAddressesOfTheirNetwork(t *testing.T) {
	for want, addr := range map[string]net.Addr{
		"http://[::1]:2/metrics": &net.TCPAddr{IP: net.IPv6loopback, Port: 2},
		"unix:/run/s":            &net.UnixAddr{Name: "/run/s", Net: "unix"},
	} {
		if got := pageAddress(addressed{addr}, "/metrics"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// addressed is a listener that has only an address.
type addressed struct{ addr net.Addr }

func (a addressed) Addr() net.Addr            { return a.addr }
func (a addressed) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (a addressed) Close() error              { return nil }

// TestExposureIsLogged checks that a server logs the warning even if it cannot listen.
func TestExposureIsLogged(t *testing.T) {
	var b bytes.Buffer
	p := &plan{listen: "0.0.0.0:99999", log: slog.New(slog.NewTextHandler(&b, nil))}
	if err := p.serve(); err == nil {
		t.Fatal("served at an invalid address")
	}
	if !strings.Contains(b.String(), "level=WARN") || !strings.Contains(b.String(), "to other machines") {
		t.Errorf("logged: %s", b.String())
	}
}
