package zktest

import (
	"context"
	"fmt"
	"net"
	"testing"
)

// Proxy is a [Relay] on a loopback TCP port in front of a server elsewhere,
// of any make: a real ZooKeeper as well as a zkserver in another process.
type Proxy struct {
	Relay
	listeners
}

// NewProxy starts a proxy for the server at target, an address for net.Dial.
// It ends with the test.
func NewProxy(t testing.TB, network, target string) *Proxy {
	t.Helper()
	p := &Proxy{}
	p.init(func(ctx context.Context) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, target)
	})
	if err := p.listen(&p.Relay); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// Addr is the address to connect to, as "127.0.0.1:port".
func (p *Proxy) Addr() string { return p.addr }

// Close ends the proxy and its connections. The test's end calls it.
func (p *Proxy) Close() {
	p.listeners.close()
	p.Relay.close()
}

// listeners is the TCP side of a relay.
type listeners struct {
	ln   net.Listener // nil until listen
	addr string
	done chan struct{}
}

// listen accepts connections for r on a loopback port. Its goroutine ends at
// close.
func (s *listeners) listen(r *Relay) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("zktest: no loopback port: %w", err)
	}
	s.ln, s.addr, s.done = ln, ln.Addr().String(), make(chan struct{})
	go func() {
		defer close(s.done)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			// A refused connection shows to its client as a reset.
			_ = r.connect(context.Background(), c)
		}
	}()
	return nil
}

func (s *listeners) close() {
	if s.ln != nil {
		s.ln.Close()
		<-s.done
	}
}
