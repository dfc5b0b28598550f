package zk

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/legible"
	"github.com/zklock/zklock/internal/testcert"
)

// tlsServer is a fake server with TLS.
type tlsServer struct {
	*fakeServer
	config atomic.Pointer[tls.Config]
	dials  atomic.Int64              // accepted connections
	peer   atomic.Pointer[shownCert] // the last client certificate
	hosts  chan string               // server names that clients requested
	plain  func(c *fakeConn) bool    // if it returns false, the TLS handshake follows
	over   func(c *fakeConn)         // serves after the handshake; nil accepts a session
	dial   func(context.Context, string, string) (net.Conn, error)
}

// shownCert is the certificate that a client presented.
type shownCert struct{ serial string }

// serveTLS starts the server.
func serveTLS(t *testing.T, s *tlsServer, cfg *tls.Config) *tlsServer {
	t.Helper()
	s.fakeServer = newFakeServer(t)
	s.hosts = make(chan string, 1000)
	s.config.Store(cfg)
	s.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return s.net.DialContext(ctx, "tcp", "127.0.0.1:2181")
	}
	s.serveAll(func(c *fakeConn) {
		s.dials.Add(1)
		if s.plain == nil || !s.plain(c) {
			s.handshake(c)
		}
	})
	return s
}

// handshake serves a connection over TLS.
func (s *tlsServer) handshake(c *fakeConn) {
	conn := tls.Server(&peeked{c.Conn, c.br}, s.config.Load())
	if conn.Handshake() != nil {
		return
	}
	state := conn.ConnectionState()
	s.hosts <- state.ServerName
	if len(state.PeerCertificates) > 0 {
		s.peer.Store(&shownCert{state.PeerCertificates[0].SerialNumber.String()})
	}
	over := newConn(c.t, conn)
	if s.over != nil {
		s.over(over)
	} else if over.acceptSession(7) {
		over.serveRequests()
	}
}

// peeked is a connection whose first bytes may have been read ahead.
type peeked struct {
	net.Conn
	br *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) { return p.br.Read(b) }

// presenting returns a configuration with this certificate.
func presenting(p testcert.Pair) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{p.TLS}}
}

// isTLSHello reports whether a connection begins with a TLS handshake.
func isTLSHello(c *fakeConn) bool {
	b, err := c.br.Peek(1)
	return err == nil && b[0] == 0x16
}

// TestTLSMismatchIsReported checks that the error names the mismatch between a TLS client and its
// peer, and that Dial does not retry if the mismatch will recur.
func TestTLSMismatchIsReported(t *testing.T) {
	ca, other := testcert.New(t, "ca"), testcert.New(t, "other")
	good := presenting(ca.Server("zoo.example"))
	demand := good.Clone()
	demand.ClientAuth, demand.ClientCAs = tls.RequireAndVerifyClientCert, ca.Pool()
	demand12 := demand.Clone()
	demand12.MaxVersion = tls.VersionTLS12
	cbc := good.Clone()
	cbc.MaxVersion, cbc.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}
	says := func(text string) func(*fakeConn) bool {
		return func(c *fakeConn) bool { c.send([]byte(text)); c.br.Peek(1); return true }
	}
	for _, row := range []struct {
		name   string
		server *tls.Config
		plain  func(*fakeConn) bool
		over   func(*fakeConn)
		client *tls.Config
		want   string
		as     any  // for errors.As
		final  bool // Dial does not retry
	}{
		{name: "only cipher suites with CBC", server: cbc, want: "handshake failure", final: true},
		{name: "unknown authority", server: presenting(other.Server("zoo.example")), want: "signed by unknown authority", as: new(x509.UnknownAuthorityError), final: true},
		{name: "expired", server: presenting(ca.Issue(testcert.Request{Hosts: []string{"zoo.example"}, Expired: true})), want: "expired", as: new(x509.CertificateInvalidError), final: true},
		{name: "certificate of a client", server: presenting(ca.Client("zoo.example")), want: "certificate", as: new(x509.HostnameError), final: true},
		{name: "another host", server: presenting(ca.Server("ark.example")), want: "not zoo.example", as: new(x509.HostnameError), final: true},
		{name: "an address", server: presenting(ca.Server("127.0.0.1")), want: "zoo.example", as: new(x509.HostnameError), final: true},
		{name: "no certificate shown", server: demand, want: "certificate required", final: true},
		{name: "no certificate shown, TLS 1.2", server: demand12, want: "TLS handshake failed: remote error", final: true},
		{name: "certificate of another authority", server: demand, client: alwaysPresenting(other.Client("ann")), want: "unknown certificate authority", final: true},
		{name: "expired certificate shown", server: demand, client: alwaysPresenting(ca.Issue(testcert.Request{Expired: true})), want: "expired certificate", final: true},
		{name: "only old versions", server: &tls.Config{Certificates: good.Certificates, MaxVersion: tls.VersionTLS11}, want: "protocol version", final: true},
		{name: "HTTP", plain: says("HTTP/1.0 400 Bad Request\r\n\r\n"), want: "an HTTP server answered", final: true},
		{name: "SSH", plain: says("SSH-2.0-OpenSSH_9.2\r\n"), want: "an SSH server answered", final: true},
		{name: "mail", plain: says("220 mail.example ESMTP\r\n"), want: `a text protocol answered with "220 m"`, final: true},
		{name: "bytes", plain: says("\x00\x00\x00\x00\x00\x00\x00"), want: "does not speak TLS", final: true},
		{name: "HTTPS", server: good, over: func(c *fakeConn) { c.read(); c.send([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, want: "an HTTP server answered", final: true},
		{name: "plain ZooKeeper", plain: func(c *fakeConn) bool {
			if !isTLSHello(c) {
				c.send([]byte("Zookeeper version: 3.8.0\n"))
			}
			return true
		}, want: "the port is a plain one", final: true},
		{name: "plain ZooKeeper without words", plain: func(c *fakeConn) bool {
			if !isTLSHello(c) {
				c.send([]byte("srvr is not executed because it is not in the whitelist.\n"))
			}
			return true
		}, want: "the port is a plain one", final: true},
		{name: "closes the connection", plain: func(*fakeConn) bool { return true }, want: "the server closed the connection; it may be starting"},
		{name: "silent", plain: func(c *fakeConn) bool {
			for {
				if _, err := c.br.Discard(1); err != nil {
					return true
				}
			}
		}, want: "no answer to the TLS handshake"},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := serveTLS(t, &tlsServer{plain: row.plain, over: row.over}, row.server)
				if row.client == nil {
					row.client = &tls.Config{}
				}
				row.client.RootCAs = ca.Pool()
				before := time.Now()
				_, err := Dial(within(t, 30*time.Second), "zoo.example", &Options{TLS: row.client, DialContext: s.dial})
				took := time.Since(before)
				if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "zoo.example:2181") {
					t.Fatalf("%v, want %q in it", err, row.want)
				}
				if row.as != nil && !errors.As(err, row.as) {
					t.Errorf("%v is not a %T", err, row.as)
				}
				if got := took < time.Second; got != row.final || row.final == errors.Is(err, context.DeadlineExceeded) || took > 30*time.Second {
					t.Errorf("%v after %v, final: want %v", err, took, row.final)
				}
				// Two attempts, because the name could have several addresses, each with a check
				// whether the port speaks TLS.
				if n := s.dials.Load(); row.final && n > 4 || n > 200 {
					t.Errorf("%d connections are too many", n)
				}
				if Applied(err) != AppliedNo {
					t.Error("a failed dial is reported as applied")
				}
			})
		})
	}
}

// alwaysPresenting returns a configuration that presents a certificate even if the server requests
// one of another authority.
func alwaysPresenting(p testcert.Pair) *tls.Config {
	return &tls.Config{GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &p.TLS, nil }}
}

// TestTLSServerName checks that the client verifies each server by its name, or all servers by
// ServerName, and passes that name to VerifyConnection.
func TestTLSServerName(t *testing.T) {
	ca := testcert.New(t, "ca")
	for _, row := range []struct{ servers, name, cert, asked string }{
		{"a.example,b.example", "", "a.example", "a.example"},
		{"a.example,b.example", "", "b.example", "b.example"},
		{"a.example,b.example", "zoo", "zoo", "zoo"},
		{"10.1.2.3:2281", "", "10.1.2.3", ""},
		{"[::1]:2281", "", "::1", ""},
		{"[fe80::1%eth0]:2281", "", "fe80::1", ""},
		{"a.example.:2281", "", "a.example", "a.example"},
		{"unix:/x", "zoo", "zoo", "zoo"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := serveTLS(t, &tlsServer{}, presenting(ca.Server(row.cert)))
			verified := ""
			cfg := &tls.Config{RootCAs: ca.Pool(), ServerName: row.name, VerifyConnection: func(state tls.ConnectionState) error {
				verified = state.ServerName
				return nil
			}}
			c, err := Dial(within(t, 10*time.Second), row.servers, &Options{TLS: cfg, DialContext: s.dial, KeepOrder: true})
			if err != nil {
				t.Errorf("%s with a certificate of %s: %v", row.servers, row.cert, err)
				return
			}
			defer c.Close()
			if got := <-s.hosts; got != row.asked {
				t.Errorf("%s: requested %q, want %q", row.servers, got, row.asked)
			}
			if strings.TrimSuffix(verified, ".") != row.cert {
				t.Errorf("%s: VerifyConnection got %q, want %q", row.servers, verified, row.cert)
			}
			if cfg.ServerName != row.name {
				t.Errorf("%s: the caller's configuration was changed", row.servers)
			}
		})
	}
}

// TestTLSErrorIsOneLegibleLine checks that an error escapes text of the server's certificate,
// because a terminal or a log may show it.
func TestTLSErrorIsOneLegibleLine(t *testing.T) {
	ca := testcert.New(t, "ca")
	for _, name := range []string{"a\x1b]0;title\a", "a\nzklock: acquired", "a\x7f\r"} {
		synctest.Test(t, func(t *testing.T) {
			s := serveTLS(t, &tlsServer{}, presenting(ca.Server(name)))
			_, err := Dial(within(t, 10*time.Second), "a.example", &Options{TLS: &tls.Config{RootCAs: ca.Pool()}, DialContext: s.dial})
			if err == nil {
				t.Fatalf("%q: connected", name)
			}
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return !legible.Rune(r) }) {
				t.Errorf("%q: the error is %q", name, err)
			}
		})
	}
}

func TestTLSOverUnixNeedsAName(t *testing.T) {
	_, err := Dial(t.Context(), "unix:/x", &Options{TLS: &tls.Config{}})
	if !errors.Is(err, ErrInvalidOptions) || !strings.Contains(err.Error(), "ServerName") {
		t.Errorf("%v, want ErrInvalidOptions", err)
	}
	if err := checkTLS(&tls.Config{InsecureSkipVerify: true}, []address{{network: "unix"}}); err != nil {
		t.Errorf("a ServerName is required without verification: %v", err)
	}
	verified := &tls.Config{InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error { return nil }}
	if err := checkTLS(verified, []address{{network: "unix"}}); !errors.Is(err, ErrInvalidOptions) {
		t.Errorf("%v for a name that VerifyConnection verifies, want ErrInvalidOptions", err)
	}
}

// TestTLSUsesRenewedClientCertificate checks that the client calls GetClientCertificate for each
// connection.
func TestTLSUsesRenewedClientCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := testcert.New(t, "ca")
		cfg := presenting(ca.Server("zoo.example"))
		cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, ca.Pool()
		var mine atomic.Pointer[tls.Certificate]
		renew := func() string {
			p := ca.Client("ann")
			mine.Store(&p.TLS)
			return p.TLS.Leaf.SerialNumber.String()
		}
		first := renew()
		s := serveTLS(t, &tlsServer{}, cfg)
		c, err := Dial(within(t, time.Minute), "zoo.example", &Options{DialContext: s.dial, TLS: &tls.Config{RootCAs: ca.Pool(),
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return mine.Load(), nil }}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if got := s.peer.Load().serial; got != first {
			t.Errorf("certificate %s, want %s", got, first)
		}
		next := renew()
		for _, conn := range s.ln.Conns() {
			conn.Close()
		}
		time.Sleep(10 * time.Second) // in the bubble
		if err := c.Sync(t.Context(), "/"); err != nil {
			t.Fatal(err)
		}
		if got := s.peer.Load().serial; got != next {
			t.Errorf("after the renewal: certificate %s, want %s", got, next)
		}
	})
}

// TestTLSRetriesSlowlyWhileCertificateIsExpired checks that a client reconnects after the server's
// certificate was renewed.
func TestTLSRetriesSlowlyWhileCertificateIsExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ca := testcert.New(t, "ca")
		good := presenting(ca.Server("zoo.example"))
		s := serveTLS(t, &tlsServer{}, good)
		c, err := Dial(within(t, time.Minute), "zoo.example", &Options{DialContext: s.dial, TLS: &tls.Config{RootCAs: ca.Pool()}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s.config.Store(presenting(ca.Issue(testcert.Request{Hosts: []string{"zoo.example"}, Expired: true})))
		before := s.dials.Load()
		for _, conn := range s.ln.Conns() {
			conn.Close()
		}
		time.Sleep(5 * time.Minute) // in the bubble
		if n := s.dials.Load() - before; n < 10 || n > 600 {
			t.Errorf("%d attempts in five minutes, want 10 to 600", n)
		}
		s.config.Store(good)
		time.Sleep(10 * time.Second)
		if c.State() != Connected {
			t.Errorf("%v after the certificate was renewed", c.State())
		}
	})
}
