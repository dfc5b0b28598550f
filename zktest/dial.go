package zktest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/zk"
)

// placeholder is the address of a relay without a TCP port. It names no host, so that
// a test that forgets DialContext fails at once, with these words in the error.
const placeholder = "set-Options-DialContext.zktest.invalid:2181"

// Servers returns a connection string for the relay. The relay of a [Proxy], and any
// relay after ListenTCP, has a TCP port, and Servers returns its address. Clients reach
// other relays only by DialContext, which ignores the address: without DialContext, a
// Dial of package zk or zklock to the address fails at once.
func (r *Relay) Servers() string {
	if addr := r.port.address(); addr != "" {
		return addr
	}
	return placeholder
}

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

// Dial returns a client that is connected through the relay and is closed at the end of
// the test. It fails the test if it cannot connect. Each edit may change the client's
// options, in which DialContext is set to the relay's.
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

// ListenTCP opens a loopback port for the relay and returns its address,
// "127.0.0.1:port", for programs in other processes and languages. The port closes with
// the server. ListenTCP fails in a synctest bubble: the bubble's clock would stand still.
func (r *Relay) ListenTCP(t testing.TB) string {
	t.Helper()
	addr, err := r.Listen()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// Listen is ListenTCP without a test. A second call returns the same address.
func (r *Relay) Listen() (addr string, err error) { return r.port.open(r) }

// Addr returns the same address as Servers.
func (r *Relay) Addr() string { return r.Servers() }

// port is the TCP side of a relay.
type port struct {
	mu   sync.Mutex   // guards what follows
	ln   net.Listener // nil until open
	addr string
	done chan struct{}
	over bool // closed
}

// address returns the port's address, or "" if it is not open.
func (p *port) address() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addr
}

// inBubble reports whether this goroutine is in a synctest bubble. The first line of a
// goroutine's stack says so. The clock of a bubble stands still while one of its goroutines
// waits for the network, so a test that sleeps there would hang.
func inBubble() bool {
	var stack [128]byte
	first, _, _ := strings.Cut(string(stack[:runtime.Stack(stack[:], false)]), "\n")
	return strings.Contains(first, "synctest bubble")
}

// open accepts connections for r on a loopback port. Its goroutine ends at
// close.
func (p *port) open(r *Relay) (string, error) {
	if addr := p.address(); addr != "" {
		return addr, nil
	}
	if inBubble() {
		return "", errors.New("zktest: a synctest bubble cannot have a TCP port: call Listen or NewProxy outside of it, or use DialContext")
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("zktest: no loopback port: %w", err)
	}
	p.mu.Lock()
	if p.over || p.ln != nil { // perhaps another goroutine was faster
		defer ln.Close()
		defer p.mu.Unlock()
		if p.over {
			return "", errors.New("zktest: the relay is closed")
		}
		return p.addr, nil
	}
	done := make(chan struct{})
	p.ln, p.addr, p.done = ln, ln.Addr().String(), done
	p.mu.Unlock()
	go func() {
		defer close(done)
		// The target of a proxy may not answer. No other connection waits for it, and the end
		// of the port cancels the attempt.
		ctx, cancel := context.WithCancel(context.Background())
		var attempts sync.WaitGroup
		defer attempts.Wait()
		defer cancel()
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			// A refused connection shows to its client as a reset.
			attempts.Go(func() { _ = r.connect(ctx, c) })
		}
	}()
	return ln.Addr().String(), nil
}

func (p *port) close() {
	p.mu.Lock()
	ln, done := p.ln, p.done
	p.over = true
	p.mu.Unlock()
	if ln != nil {
		ln.Close()
		<-done
	}
}
