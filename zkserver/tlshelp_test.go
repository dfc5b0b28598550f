package zkserver

import (
	"context"
	"crypto/tls"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/internal/testcert"
	"github.com/zklock/zklock/internal/wire"
)

// tlsHost is the address of the servers of TLS tests.
const tlsHost = "10.0.0.1"

// lines is a log that tests read while it is written.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// tlsBench is a server with TLS on a network in memory.
type tlsBench struct {
	t       testing.TB
	ca      *testcert.Authority
	files   TLSFiles
	srv     *Server
	log     *lines
	network memnet.Network
}

// newTLSBench makes files and a server that listens nowhere yet.
func newTLSBench(t testing.TB, auth tls.ClientAuthType) *tlsBench {
	t.Helper()
	b := &tlsBench{t: t, ca: testcert.New(t, "ca"), log: &lines{}}
	pair := b.ca.Server(tlsHost)
	paths := testcert.Write(t, t.TempDir(), "cert.pem", pair.Cert, "key.pem", pair.Key, "ca.pem", b.ca.PEM)
	b.files = TLSFiles{Cert: paths[0], Key: paths[1], CA: paths[2], ClientAuth: auth}
	opts := quiet(t)
	opts.Logger = logTo(b.log)
	opts.FourLetterWords = []string{"*"}
	b.srv = start(t, opts)
	return b
}

// config is that of the files.
func (b *tlsBench) config() *tls.Config {
	b.t.Helper()
	c, err := b.files.Config()
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

// serve serves at a port, over what wrap makes of the listener.
func (b *tlsBench) serve(port string, wrap func(net.Listener, *tls.Config) net.Listener) {
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
func (b *tlsBench) dial(port string) net.Conn {
	b.t.Helper()
	nc, err := b.network.DialContext(context.Background(), "tcp", tlsHost+":"+port)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { nc.Close() })
	return nc
}

// over does a client's handshake, with a certificate if there is one.
func (b *tlsBench) over(nc net.Conn, certs ...testcert.Pair) *tls.Conn {
	cfg := &tls.Config{RootCAs: b.ca.Pool(), ServerName: tlsHost}
	for _, c := range certs {
		cfg.Certificates = append(cfg.Certificates, c.TLS)
	}
	return tls.Client(nc, cfg)
}

// session opens a connection with TLS and a session, or says why it could not.
func (b *tlsBench) session(port string, certs ...testcert.Pair) (*raw, error) {
	b.t.Helper()
	return b.login(b.over(b.dial(port), certs...))
}

// login asks for a session over a connection.
func (b *tlsBench) login(nc net.Conn) (*raw, error) {
	c := over(b.t, nc)
	if _, err := c.nc.Write(wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 3_600_000})); err != nil {
		return nil, err
	}
	if _, err := c.frame(); err != nil {
		return nil, err
	}
	return c, nil
}

// must is a session that there has to be.
func (b *tlsBench) must(c *raw, err error) *raw {
	b.t.Helper()
	if err != nil {
		b.t.Fatalf("no session: %v; the log:\n%s", err, b.log)
	}
	return c
}

// subjects are those of the connections with a session.
func (b *tlsBench) subjects() (names []string) {
	b.srv.ask(func() {
		for _, c := range b.srv.loop.conns {
			names = append(names, c.subject)
		}
	})
	return names
}

// wantEnd reads until the server closes, which it must do within a time.
func wantEnd(t testing.TB, nc net.Conn, within time.Duration) []byte {
	t.Helper()
	began := time.Now()
	nc.SetReadDeadline(began.Add(within + time.Hour))
	var got []byte
	buf := make([]byte, 100)
	for {
		n, err := nc.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			break
		}
	}
	if d := time.Since(began); d > within {
		t.Errorf("closed after %v, want %v", d, within)
	}
	return got
}
