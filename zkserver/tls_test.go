package zkserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/internal/testcert"
	"github.com/zklock/zklock/internal/wire"
)

// wrappers returns the ways to serve TLS.
func wrappers() map[string]func(net.Listener, *tls.Config) net.Listener {
	return map[string]func(net.Listener, *tls.Config) net.Listener{
		"Secure": Secure, "Unify": Unify, "tls.NewListener": tls.NewListener,
	}
}

func TestTLSListenersReportClientSubjects(t *testing.T) {
	for name, wrap := range wrappers() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTLSFixture(t, tls.VerifyClientCertIfGiven)
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
				for _, c := range []*rawClient{nobody, plain} {
					if !c.exists("/x") {
						t.Error("the listeners serve different trees")
					}
				}
				if st := b.srv.Stats(); st.TLSHandshakeFailures != 0 || st.Connections != 3 {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// TestServerSendsCloseNotify checks that a TLS client can tell that an answer is complete.
// Otherwise it would have to treat the end as an attack.
func TestServerSendsCloseNotify(t *testing.T) {
	for name, wrap := range wrappers() {
		synctest.Test(t, func(t *testing.T) {
			b := newTLSFixture(t, tls.NoClientCert)
			b.serve("2281", wrap)
			word := b.tlsClient(b.dial("2281"))
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
		b := newTLSFixture(t, tls.RequireAndVerifyClientCert)
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

// TestWrongPortIsReported: a client connects to the port of the other protocol. The server
// disconnects it immediately, and logs why.
func TestWrongPortIsReported(t *testing.T) {
	connect := wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 1000})
	var hello bytes.Buffer
	tls.Client(newRecordingConn(&hello), &tls.Config{ServerName: "x"}).Handshake()
	for _, row := range []struct {
		name  string
		wrap  func(net.Listener, *tls.Config) net.Listener
		send  []byte
		want  string // in the log
		alert bool   // the answer is a TLS alert
		fails int64
	}{
		{"plain at Secure", Secure, connect, errNotTLS.Error(), true, 1},
		{"a word at Secure", Secure, []byte("ruok"), errNotTLS.Error(), true, 1},
		{"HTTP at Secure", Secure, []byte("GET / HTTP/1.1\r\n\r\n"), errNotTLS.Error(), true, 1},
		{"plain at tls.NewListener", tls.NewListener, connect, errNotTLS.Error(), false, 1},
		{"TLS at plain", nil, hello.Bytes(), errUnexpectedTLS.Error(), false, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newTLSFixture(t, tls.NoClientCert)
			b.serve("2181", row.wrap)
			nc := b.dial("2181")
			if _, err := nc.Write(row.send); err != nil {
				t.Fatal(err)
			}
			answer := readUntilClosed(t, nc, 0)
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

// newRecordingConn returns a connection that writes to w, and from which a read ends at once.
func newRecordingConn(w io.Writer) net.Conn {
	a, b := net.Pipe()
	b.Close()
	return &recordingConn{Conn: a, w: w}
}

type recordingConn struct {
	net.Conn
	w io.Writer
}

func (r *recordingConn) Write(p []byte) (int, error) { return r.w.Write(p) }

// TestTLSHandshakeTimeout: clients never finish their handshake. The server closes their
// connections, and serves other clients meanwhile.
func TestTLSHandshakeTimeout(t *testing.T) {
	for name, wrap := range wrappers() {
		for begun, first := range map[string][]byte{
			"silent": nil, "one byte": {tlsRecord}, "half a hello": {tlsRecord, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3},
		} {
			synctest.Test(t, func(t *testing.T) {
				b := newTLSFixture(t, tls.NoClientCert)
				b.serve("2281", wrap)
				slow := b.dial("2281")
				slow.Write(first)
				synctest.Wait()
				b.must(b.session("2281"))
				readUntilClosed(t, slow, 10*time.Second)
				synctest.Wait()
				if !strings.Contains(b.log.String(), errHandshake.Error()) {
					t.Errorf("%s, %s: the log does not say why:\n%s", name, begun, b.log)
				}
			})
		}
	}
}

// TestClientCertificateDecidesIdentity checks which certificates the server accepts, and which
// identity they give.
func TestClientCertificateDecidesIdentity(t *testing.T) {
	for _, row := range []struct {
		name    string
		cert    func(*testcert.Authority) []testcert.Pair
		want    bool // with VerifyClientCertIfGiven
		need    bool // with RequireAndVerifyClientCert
		subject string
	}{
		{"none", func(*testcert.Authority) []testcert.Pair { return nil }, true, false, ""},
		{"good", func(ca *testcert.Authority) []testcert.Pair { return []testcert.Pair{ca.Client("ann")} }, true, true, "CN=ann"},
		{"for any usage", func(ca *testcert.Authority) []testcert.Pair {
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
				b := newTLSFixture(t, auth)
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

// TestUnknownAuthorityIsRefused: a client sends a certificate of an unknown authority, although
// the server named the ones that it accepts.
func TestUnknownAuthorityIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSFixture(t, tls.VerifyClientCertIfGiven)
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

// TestUnverifiedCertificateIsNoIdentity uses a configuration that requests any certificate and
// verifies none.
func TestUnverifiedCertificateIsNoIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSFixture(t, tls.NoClientCert)
		pair := b.ca.Server(tlsHost)
		b.serve("2281", func(ln net.Listener, _ *tls.Config) net.Listener {
			return tls.NewListener(ln, &tls.Config{Certificates: []tls.Certificate{pair.TLS}, ClientAuth: tls.RequireAnyClientCert})
		})
		b.must(b.session("2281", testcert.New(t, "other").Client("super")))
		if got := b.subjects(); len(got) != 1 || got[0] != "" {
			t.Errorf("subjects %q of an unverified certificate", got)
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
			b := newTLSFixture(t, tls.NoClientCert)
			b.files.MinVersion = row.least
			b.serve("2281", Secure)
			cfg := &tls.Config{RootCAs: b.ca.Pool(), ServerName: tlsHost, MinVersion: tls.VersionTLS10, MaxVersion: row.client}
			if _, err := b.login(tls.Client(b.dial("2281"), cfg)); (err == nil) != row.served {
				t.Errorf("%s where the least is %#x: %v", tls.VersionName(row.client), row.least, err)
			}
		})
	}
}

// TestSuitesWithCBCAreRefused: a client uses TLS 1.2. By default, the server accepts only cipher
// suites with authenticated encryption. It accepts others if TLSFiles names them.
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
			b := newTLSFixture(t, tls.NoClientCert)
			b.files.CipherSuites = row.server
			b.serve("2281", Secure)
			cfg := &tls.Config{RootCAs: b.ca.Pool(), ServerName: tlsHost, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{row.client}}
			if _, err := b.login(tls.Client(b.dial("2281"), cfg)); (err == nil) != row.served {
				t.Errorf("%s where the server has %v: %v", tls.CipherSuiteName(row.client), row.server, err)
			}
		})
	}
}

// TestMonitoringConnectionIsNotLogged: a client closes its connection before the first byte.
func TestMonitoringConnectionIsNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSFixture(t, tls.NoClientCert)
		b.serve("2281", Secure)
		b.dial("2281").Close()
		synctest.Wait()
		if st := b.srv.Stats(); st.TLSHandshakeFailures != 0 || st.Connections != 0 || b.log.String() != "" {
			t.Errorf("%d failures, %d connections, log %q", st.TLSHandshakeFailures, st.Connections, b.log)
		}
	})
}

// TestEndDoesNotWaitForTLSHandshakes ends the server while clients are in their handshake. With
// Close, another client does not read.
func TestEndDoesNotWaitForTLSHandshakes(t *testing.T) {
	for name, wrap := range wrappers() {
		for _, graceful := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				b := newTLSFixture(t, tls.NoClientCert)
				b.serve("2281", wrap)
				b.dial("2281")
				b.dial("2281").Write([]byte{tlsRecord, 3})
				nonReader := b.must(b.session("2281"))
				nonReader.do(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: make([]byte, 900<<10), ACL: openACL()})
				if !graceful { // Shutdown would wait for the client to read
					for range 10 {
						nonReader.send(wire.OpGetData, &wire.GetDataRequest{Path: "/big"})
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

// TestUnifyWorksWithoutServer uses the connections of Unify without Serve.
func TestUnifyWorksWithoutServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTLSFixture(t, tls.NoClientCert)
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
		for _, nc := range []net.Conn{b.dial("1"), b.tlsClient(b.dial("1"))} {
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

// TestAcceptOptionSeesTheSocket: to check a peer's credentials, the Accept option needs the
// socket, not the TLS connection.
func TestAcceptOptionSeesTheSocket(t *testing.T) {
	for name, wrap := range wrappers() {
		synctest.Test(t, func(t *testing.T) {
			b := newTLSFixture(t, tls.NoClientCert)
			var seen net.Conn
			opts := testOptions(t)
			opts.Accept = func(nc net.Conn) error { seen = nc; return nil }
			b.srv = start(t, opts)
			b.serve("2281", wrap)
			b.must(b.session("2281"))
			if _, ok := seen.(*memnet.Conn); !ok {
				t.Errorf("%s: the Accept option got a %T", name, seen)
			}
		})
	}
}

// tlsHost is the address of the servers of TLS tests.
const tlsHost = "10.0.0.1"

// logBuffer is a log that a test can read while the server writes it.
type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// tlsFixture is a server with TLS on a network in memory.
type tlsFixture struct {
	t       testing.TB
	ca      *testcert.Authority
	files   TLSFiles
	srv     *Server
	log     *logBuffer
	network memnet.Network
}

// newTLSFixture creates files and a server that does not listen yet.
func newTLSFixture(t testing.TB, auth tls.ClientAuthType) *tlsFixture {
	t.Helper()
	b := &tlsFixture{t: t, ca: testcert.New(t, "ca"), log: &logBuffer{}}
	pair := b.ca.Server(tlsHost)
	paths := testcert.Write(t, t.TempDir(), "cert.pem", pair.Cert, "key.pem", pair.Key, "ca.pem", b.ca.PEM)
	b.files = TLSFiles{Cert: paths[0], Key: paths[1], CA: paths[2], ClientAuth: auth}
	opts := testOptions(t)
	opts.Logger = logTo(b.log)
	opts.FourLetterWords = []string{"*"}
	b.srv = start(t, opts)
	return b
}

// config returns the configuration of the files.
func (b *tlsFixture) config() *tls.Config {
	b.t.Helper()
	c, err := b.files.Config()
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// serve listens on a port and serves what wrap returns.
func (b *tlsFixture) serve(port string, wrap func(net.Listener, *tls.Config) net.Listener) {
	b.t.Helper()
	ln, err := b.network.Listen("tcp", tlsHost+":"+port)
	if err != nil {
		b.t.Fatal(err)
	}
	if wrap != nil {
		ln2 := wrap(ln, b.config())
		go b.srv.Serve(ln2) // ends with the server
		return
	}
	go b.srv.Serve(ln) // ends with the server
}

// dial connects to a port.
func (b *tlsFixture) dial(port string) net.Conn {
	b.t.Helper()
	nc, err := b.network.DialContext(context.Background(), "tcp", tlsHost+":"+port)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { nc.Close() })
	return nc
}

// tlsClient returns the client side of a TLS connection over nc.
func (b *tlsFixture) tlsClient(nc net.Conn, certs ...testcert.Pair) *tls.Conn {
	cfg := &tls.Config{RootCAs: b.ca.Pool(), ServerName: tlsHost}
	for _, c := range certs {
		cfg.Certificates = append(cfg.Certificates, c.TLS)
	}
	return tls.Client(nc, cfg)
}

// session opens a TLS connection and a session.
func (b *tlsFixture) session(port string, certs ...testcert.Pair) (*rawClient, error) {
	b.t.Helper()
	return b.login(b.tlsClient(b.dial(port), certs...))
}

// login opens a session on nc.
func (b *tlsFixture) login(nc net.Conn) (*rawClient, error) {
	c := newRawClient(b.t, nc)
	return c, c.connect(wire.ConnectRequest{Timeout: 3_600_000})
}

// must returns c, or fails the test if err is not nil.
func (b *tlsFixture) must(c *rawClient, err error) *rawClient {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("no session: %v; the log:\n%s", err, b.log)
	}
	return c
}

// subjects returns the certificate subjects of the connections with a session.
func (b *tlsFixture) subjects() (names []string) {
	b.srv.runOnLoop(func() {
		for _, c := range b.srv.loop.conns {
			names = append(names, c.subject)
		}
	})
	return names
}

// TestLongEventsReachOtherClients: clients of one address watch a znode with a path of a megabyte,
// and do not read their events. Another client gets all events, and the memory of the events is
// used once for all clients.
func TestLongEventsReachOtherClients(t *testing.T) {
	// In the last rounds, the strangers have more than MaxUnread to read.
	const strangers, rounds, most = 50, 12, 100 << 20
	path := "/" + strings.Repeat("x", 1_040_000)
	for name, wrap := range map[string]func(net.Listener, *tls.Config) net.Listener{"plain": nil, "TLS": Secure} {
		synctest.Test(t, func(t *testing.T) {
			b := newTLSFixture(t, tls.NoClientCert)
			b.serve("2281", wrap)
			session := func() *rawClient {
				if wrap == nil {
					return b.must(b.login(b.dial("2281")))
				}
				return b.must(b.session("2281"))
			}
			for range strangers {
				session().do(wire.OpAddWatch, &wire.AddWatchRequest{Path: path, Mode: wire.AddWatchPersistent})
			}
			victim, writer := session(), login(t, b.srv, time.Hour)
			victim.do(wire.OpAddWatch, &wire.AddWatchRequest{Path: "/", Mode: wire.AddWatchPersistentRecursive})
			before := heap()
			for i := range rounds {
				writer.create(path, wire.ModePersistent)
				writer.do(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: -1})
				victim.do(wire.OpPing, nil)
				if used := int64(heap() - before); i < rounds/2 && used > most {
					t.Errorf("%s: the events use %d MB, want at most %d", name, used>>20, most>>20)
				}
			}
			if n := len(victim.events); n != 2*rounds {
				t.Errorf("%s: %d events, want %d", name, n, 2*rounds)
			}
			if n := b.srv.Stats().ConnectionsCut.SlowReaders; n != strangers {
				t.Errorf("%s: %d slow readers were cut, want %d", name, n, strangers)
			}
		})
	}
}

// readUntilClosed reads until the server closes the connection, which it must do within the
// given time.
func readUntilClosed(t testing.TB, nc net.Conn, within time.Duration) []byte {
	t.Helper()
	began := time.Now()
	nc.SetReadDeadline(began.Add(within + time.Hour))
	got, _ := io.ReadAll(nc)
	if d := time.Since(began); d > within {
		t.Errorf("closed after %v, want %v", d, within)
	}
	return got
}
