package zkserver

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/internal/testcert"
	"github.com/zklock/zklock/internal/wire"
)

// wrappers are the ways to serve TLS.
func wrappers() map[string]func(net.Listener, *tls.Config) net.Listener {
	return map[string]func(net.Listener, *tls.Config) net.Listener{
		"Secure": Secure, "Unify": Unify, "tls.NewListener": tls.NewListener,
	}
}

func TestTLSListeners(t *testing.T) {
	for name, wrap := range wrappers() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTLSBench(t, tls.VerifyClientCertIfGiven)
				b.serve("2281", wrap)
				b.serve("2181", nil)
				ann := b.must(b.session("2281", b.ca.Client("ann")))
				nobody := b.must(b.session("2281"))
				plain := b.must(b.login(b.dial("2181")))
				got := b.subjects()
				slices.Sort(got)
				if !slices.Equal(got, []string{"", "", "CN=ann"}) {
					t.Errorf("subjects %q", got)
				}
				ann.create("/x", wire.ModeEphemeral)
				for _, c := range []*raw{nobody, plain} {
					if !c.exists("/x") {
						t.Error("the listeners lead to different trees")
					}
				}
				if st := b.srv.Stats(); st.TLSHandshakeFailures != 0 || st.Connections != 3 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// TestGoodbye has a client told that an answer is whole: without, it would have
// to take the end for an attack.
func TestGoodbye(t *testing.T) {
	for name, wrap := range wrappers() {
		synctest.Test(t, func(t *testing.T) {
			b := newTLSBench(t, tls.NoClientCert)
			b.serve("2281", wrap)
			word := b.over(b.dial("2281"))
			io.WriteString(word, "ruok")
			if got, err := io.ReadAll(word); err != nil || string(got) != "imok" {
				t.Errorf("%s: %q, %v", name, got, err)
			}
			c := b.must(b.session("2281"))
			c.send(wire.OpCloseSession, nil)
			if rest, err := io.ReadAll(c.br); err != nil || len(rest) == 0 {
				t.Errorf("%s: %d bytes, %v", name, len(rest), err)
			}
		})
	}
}

func TestUnifyServesBothOnOnePort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSBench(t, tls.RequireAndVerifyClientCert)
		b.serve("2181", Unify)
		b.must(b.session("2181", b.ca.Client("ann")))
		b.must(b.login(b.dial("2181")))
		word := b.dial("2181")
		io.WriteString(word, "ruok")
		if got, err := io.ReadAll(word); err != nil || string(got) != "imok" {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := b.session("2181"); err == nil {
			t.Error("a TLS client without a certificate was served where one is needed")
		}
		synctest.Wait()
		if st := b.srv.Stats(); st.TLSHandshakeFailures != 1 || st.Connections != 2 {
			t.Errorf("%d failures, %d connections", st.TLSHandshakeFailures, st.Connections)
		}
	})
}

// TestWrongPort has clients at the port of the other protocol: they are closed
// at once, and the log says what happened.
func TestWrongPort(t *testing.T) {
	connect := wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 1000})
	var hello bytes.Buffer
	tls.Client(pipeTo(&hello), &tls.Config{ServerName: "x"}).Handshake()
	for _, row := range []struct {
		name  string
		wrap  func(net.Listener, *tls.Config) net.Listener
		send  []byte
		want  string // in the log
		alert bool   // a TLS alert is the answer
		fails int64
	}{
		{"plain at Secure", Secure, connect, errPlain.Error(), true, 1},
		{"a word at Secure", Secure, []byte("ruok"), errPlain.Error(), true, 1},
		{"HTTP at Secure", Secure, []byte("GET / HTTP/1.1\r\n\r\n"), errPlain.Error(), true, 1},
		{"plain at tls.NewListener", tls.NewListener, connect, errPlain.Error(), false, 1},
		{"TLS at plain", nil, hello.Bytes(), errHello.Error(), false, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newTLSBench(t, tls.NoClientCert)
			b.serve("2181", row.wrap)
			nc := b.dial("2181")
			if _, err := nc.Write(row.send); err != nil {
				t.Fatal(err)
			}
			answer := wantEnd(t, nc, 0)
			if got := len(answer) > 0 && answer[0] == 0x15; got != row.alert {
				t.Errorf("%s: answer %x", row.name, answer)
			}
			synctest.Wait()
			if !strings.Contains(b.log.String(), row.want) {
				t.Errorf("%s: the log does not say what happened:\n%s", row.name, b.log)
			}
			if st := b.srv.Stats(); st.TLSHandshakeFailures != row.fails || st.Connections != 0 {
				t.Errorf("%s: %d failures, %d connections", row.name, st.TLSHandshakeFailures, st.Connections)
			}
		})
	}
}

// pipeTo is a connection that keeps what is written and gives nothing.
func pipeTo(w io.Writer) net.Conn {
	a, b := net.Pipe()
	b.Close()
	return &recorded{Conn: a, w: w}
}

type recorded struct {
	net.Conn
	w io.Writer
}

func (r *recorded) Write(p []byte) (int, error) { return r.w.Write(p) }

// TestHandshakeIsBounded has clients that never end their handshake; others
// are served meanwhile.
func TestHandshakeIsBounded(t *testing.T) {
	for name, wrap := range wrappers() {
		for begun, first := range map[string][]byte{
			"silent": nil, "one byte": {tlsRecord}, "half a hello": {tlsRecord, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3},
		} {
			synctest.Test(t, func(t *testing.T) {
				b := newTLSBench(t, tls.NoClientCert)
				b.serve("2281", wrap)
				slow := b.dial("2281")
				slow.Write(first)
				synctest.Wait()
				b.must(b.session("2281"))
				wantEnd(t, slow, 10*time.Second)
				synctest.Wait()
				if !strings.Contains(b.log.String(), errHandshake.Error()) {
					t.Errorf("%s, %s: the log does not say why:\n%s", name, begun, b.log)
				}
			})
		}
	}
}

// TestClientCertificates has who gets in, and as whom.
func TestClientCertificates(t *testing.T) {
	for _, row := range []struct {
		name    string
		cert    func(*testcert.Authority) []testcert.Pair
		want    bool // with VerifyClientCertIfGiven
		need    bool // with RequireAndVerifyClientCert
		subject string
	}{
		{"none", func(*testcert.Authority) []testcert.Pair { return nil }, true, false, ""},
		{"good", func(ca *testcert.Authority) []testcert.Pair { return []testcert.Pair{ca.Client("ann")} }, true, true, "CN=ann"},
		{"for all purposes", func(ca *testcert.Authority) []testcert.Pair {
			return []testcert.Pair{ca.Issue(testcert.Request{Subject: pkix.Name{CommonName: "a,b", Organization: []string{"Zoo"}}})}
		}, true, true, `CN=a\,b,O=Zoo`},
		{"a server's", func(ca *testcert.Authority) []testcert.Pair { return []testcert.Pair{ca.Server("x")} }, false, false, ""},
		{"expired", func(ca *testcert.Authority) []testcert.Pair {
			return []testcert.Pair{ca.Issue(testcert.Request{Expired: true, Usage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})}
		}, false, false, ""},
	} {
		for auth, served := range map[tls.ClientAuthType]bool{
			tls.NoClientCert: true, tls.VerifyClientCertIfGiven: row.want, tls.RequireAndVerifyClientCert: row.need,
		} {
			synctest.Test(t, func(t *testing.T) {
				b := newTLSBench(t, auth)
				b.serve("2281", Secure)
				_, err := b.session("2281", row.cert(b.ca)...)
				if (err == nil) != served {
					t.Fatalf("%s, %v: %v; the log:\n%s", row.name, auth, err, b.log)
				}
				want := row.subject
				if auth == tls.NoClientCert {
					want = ""
				}
				if got := b.subjects(); served && (len(got) != 1 || got[0] != want) {
					t.Errorf("%s, %v: subjects %q, want %q", row.name, auth, got, want)
				}
				synctest.Wait()
				if n := b.srv.Stats().TLSHandshakeFailures; served != (n == 0) {
					t.Errorf("%s, %v: %d failures counted", row.name, auth, n)
				}
			})
		}
	}
}

// TestForeignCertificate has one of an authority that the server does not
// know, sent although the server named those it takes.
func TestForeignCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSBench(t, tls.VerifyClientCertIfGiven)
		b.serve("2281", Secure)
		foreign := testcert.New(t, "other").Client("ann")
		cfg := &tls.Config{RootCAs: b.ca.Pool(), ServerName: tlsHost, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &foreign.TLS, nil
		}}
		if _, err := b.login(tls.Client(b.dial("2281"), cfg)); err == nil {
			t.Error("served")
		}
		synctest.Wait()
		if !strings.Contains(b.log.String(), "unknown authority") {
			t.Errorf("the log does not say why:\n%s", b.log)
		}
	})
}

// TestUnverifiedCertificateIsNobody has a configuration that asks for any
// certificate and verifies none.
func TestUnverifiedCertificateIsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSBench(t, tls.NoClientCert)
		pair := b.ca.Server(tlsHost)
		b.serve("2281", func(ln net.Listener, _ *tls.Config) net.Listener {
			return tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{pair.TLS}, ClientAuth: tls.RequireAnyClientCert})
		})
		b.must(b.session("2281", testcert.New(t, "other").Client("super")))
		if got := b.subjects(); len(got) != 1 || got[0] != "" {
			t.Errorf("subjects %q of a certificate that nobody verified", got)
		}
	})
}

func TestOldTLSIsRefused(t *testing.T) {
	for _, row := range []struct {
		least, client uint16
		served        bool
	}{
		{0, tls.VersionTLS11, false}, {0, tls.VersionTLS12, true}, {0, tls.VersionTLS13, true},
		{tls.VersionTLS13, tls.VersionTLS12, false}, {tls.VersionTLS13, tls.VersionTLS13, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newTLSBench(t, tls.NoClientCert)
			b.files.MinVersion = row.least
			b.serve("2281", Secure)
			cfg := &tls.Config{RootCAs: b.ca.Pool(), ServerName: tlsHost, MinVersion: tls.VersionTLS10, MaxVersion: row.client}
			if _, err := b.login(tls.Client(b.dial("2281"), cfg)); (err == nil) != row.served {
				t.Errorf("%s where the least is %#x: %v", tls.VersionName(row.client), row.least, err)
			}
		})
	}
}

// TestSuitesWithCBCAreRefused: a client that speaks TLS 1.2 is served with every cipher
// suite that authenticates what it encrypts, and with no other one, unless the files'
// owner names it.
func TestSuitesWithCBCAreRefused(t *testing.T) {
	const cbc = tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA
	for _, row := range []struct {
		server []uint16
		client uint16
		served bool
	}{
		{nil, cbc, false}, {nil, tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, false},
		{nil, tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, true}, {nil, tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, true},
		{nil, tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, true},
		{[]uint16{cbc}, cbc, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newTLSBench(t, tls.NoClientCert)
			b.files.CipherSuites = row.server
			b.serve("2281", Secure)
			cfg := &tls.Config{RootCAs: b.ca.Pool(), ServerName: tlsHost, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{row.client}}
			if _, err := b.login(tls.Client(b.dial("2281"), cfg)); (err == nil) != row.served {
				t.Errorf("%s where the server has %v: %v", tls.CipherSuiteName(row.client), row.server, err)
			}
		})
	}
}

// TestMonitoringIsSilent has connections that are closed before a byte.
func TestMonitoringIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSBench(t, tls.NoClientCert)
		b.serve("2281", Secure)
		b.dial("2281").Close()
		synctest.Wait()
		if st := b.srv.Stats(); st.TLSHandshakeFailures != 0 || st.Connections != 0 || b.log.String() != "" {
			t.Errorf("%d failures, %d connections, log %q", st.TLSHandshakeFailures, st.Connections, b.log)
		}
	})
}

// TestEndDuringHandshake ends the server while clients are in their handshake,
// and while one does not read.
func TestEndDuringHandshake(t *testing.T) {
	for name, wrap := range wrappers() {
		for _, graceful := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				b := newTLSBench(t, tls.NoClientCert)
				b.serve("2281", wrap)
				b.dial("2281")
				b.dial("2281").Write([]byte{tlsRecord, 3})
				deaf := b.must(b.session("2281"))
				deaf.do(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: make([]byte, 900<<10), ACL: openACL()})
				if !graceful { // a server that ends in good order would wait for a client that reads
					for range 10 {
						deaf.send(wire.OpGetData, &wire.GetDataRequest{Path: "/big"})
					}
				}
				synctest.Wait()
				began := time.Now()
				if graceful {
					if err := b.srv.Shutdown(t.Context()); err != nil {
						t.Error(err)
					}
				} else {
					b.srv.Close()
				}
				if d := time.Since(began); d > 0 {
					t.Errorf("%s, graceful %v: ended after %v", name, graceful, d)
				}
			})
		}
	}
}

// TestListenerOutsideAServer uses the connections of Unify without Serve.
func TestListenerOutsideAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSBench(t, tls.NoClientCert)
		ln, err := b.network.Listen("tcp", tlsHost+":1")
		if err != nil {
			t.Fatal(err)
		}
		both := Unify(ln, b.config())
		go func() { // ends with the listener
			for {
				nc, err := both.Accept()
				if err != nil {
					return
				}
				go func() { // ends with the connection
					defer nc.Close()
					io.Copy(nc, nc)
				}()
			}
		}()
		for _, nc := range []net.Conn{b.dial("1"), b.over(b.dial("1"))} {
			io.WriteString(nc, "echo")
			got := make([]byte, 4)
			if _, err := io.ReadFull(nc, got); err != nil || string(got) != "echo" {
				t.Errorf("%q, %v", got, err)
			}
			nc.Close()
		}
		both.Close()
		if _, err := both.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept after Close said %v", err)
		}
	})
}

// TestAcceptOptionSeesTheSocket: who looks at a peer's credentials needs the
// socket, not what TLS makes of it.
func TestAcceptOptionSeesTheSocket(t *testing.T) {
	for name, wrap := range wrappers() {
		synctest.Test(t, func(t *testing.T) {
			b := newTLSBench(t, tls.NoClientCert)
			var seen net.Conn
			opts := quiet(t)
			opts.Accept = func(nc net.Conn) error { seen = nc; return nil }
			b.srv = start(t, opts)
			b.serve("2281", wrap)
			b.must(b.session("2281"))
			if _, ok := seen.(*memnet.Conn); !ok {
				t.Errorf("%s: the Accept option was shown a %T", name, seen)
			}
		})
	}
}
