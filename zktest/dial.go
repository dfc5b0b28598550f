package zktest

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/zk"
)

// placeholder is what Servers returns: an address reserved for documentation,
// so that a test that forgets DialContext reaches nobody.
const placeholder = "192.0.2.1:2181"

// Servers is a connection string to go with DialContext. It leads nowhere
// without that.
func (r *Relay) Servers() string { return placeholder }

// DialContext connects through the relay within the process, without a port,
// also in a testing/synctest bubble if the server is there too. It has the
// signature of the DialContext options of packages zk and zklock, and ignores
// network and addr.
func (r *Relay) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	client, relay := memnet.Pipe()
	if err := r.connect(ctx, relay); err != nil {
		client.Close()
		return nil, err
	}
	return client, nil
}

// Dial makes a client that is closed with the test. Each edit may change its
// options, which begin with this relay's DialContext.
func (r *Relay) Dial(t testing.TB, edit ...func(*zk.Options)) *zk.Client {
	t.Helper()
	opts := &zk.Options{DialContext: r.DialContext}
	for _, e := range edit {
		e(opts)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := zk.Dial(ctx, r.Servers(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ListenTCP makes the relay reachable on a loopback port too, for programs in
// other processes and languages, and returns its address, "127.0.0.1:port". The
// port closes with the server. It is not for synctest bubbles.
func (r *Relay) ListenTCP(t testing.TB) string {
	t.Helper()
	addr, err := r.Listen()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// Listen is ListenTCP where there is no test. A second call returns the same
// address.
func (r *Relay) Listen() (addr string, err error) { return r.port.open(r) }

// Addr is the address of ListenTCP, and what Servers returns before.
func (r *Relay) Addr() string {
	if r.port.addr == "" {
		return placeholder
	}
	return r.port.addr
}

// port is the TCP side of a relay.
type port struct {
	ln   net.Listener // nil until open
	addr string
	done chan struct{}
}

// open accepts connections for r on a loopback port. Its goroutine ends at
// close.
func (p *port) open(r *Relay) (string, error) {
	if p.ln != nil {
		return p.addr, nil
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("zktest: no loopback port: %w", err)
	}
	p.ln, p.addr, p.done = ln, ln.Addr().String(), make(chan struct{})
	go func() {
		defer close(p.done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			// A refused connection shows to its client as a reset.
			_ = r.connect(context.Background(), c)
		}
	}()
	return p.addr, nil
}

func (p *port) close() {
	if p.ln != nil {
		p.ln.Close()
		<-p.done
	}
}
