package serve

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/zklock/zklock/zkserver"
)

// peerConn is a connection from an address.
type peerConn struct {
	net.Conn
	from net.TCPAddr
}

func (c *peerConn) RemoteAddr() net.Addr { return &c.from }

// arrivals is a listener whose connections a test makes.
type arrivals struct {
	net.Listener
	conns chan net.Conn
}

func (a arrivals) Accept() (net.Conn, error) {
	nc, ok := <-a.conns
	if !ok {
		return nil, net.ErrClosed
	}
	return nc, nil
}

// TestMetricsConnectionServesOneRequest checks that a flood of requests on open connections
// cannot keep the processor from the server's clients.
func TestMetricsConnectionServesOneRequest(t *testing.T) {
	server, err := zkserver.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	page := metricsServer(server, slog.New(slog.DiscardHandler))
	defer page.Close()
	go page.Serve(few(ln, maxPageConns)) // ends with the page
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := io.WriteString(nc, strings.Repeat("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 2)); err != nil {
		t.Fatal(err)
	}
	all, err := io.ReadAll(nc)
	if n := strings.Count(string(all), "HTTP/1.1 200 OK"); n != 1 {
		t.Errorf("%d answers, %v", n, err)
	}
}

// TestAddressWithMostConnectionsLosesOldest checks that an address that opens all connections
// does not keep out other addresses: its oldest connection is closed.
func TestAddressWithMostConnectionsLosesOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := arrivals{conns: make(chan net.Conn)}
		ln := few(inner, 3)
		// arrive returns a channel that is closed when the listener closes the connection, and
		// the connection.
		arrive := func(ip string) (gone <-chan struct{}, nc net.Conn) {
			client, server := net.Pipe()
			t.Cleanup(func() { client.Close() })
			ended := make(chan struct{})
			go func() { // ends with the connection
				_, _ = client.Read(make([]byte, 1))
				close(ended)
			}()
			go func() { inner.conns <- &peerConn{Conn: server, from: net.TCPAddr{IP: net.ParseIP(ip), Port: 1}} }()
			accepted := make(chan net.Conn, 1)
			go func() {
				if nc, err := ln.Accept(); err == nil {
					accepted <- nc
				}
			}()
			synctest.Wait()
			select {
			case nc = <-accepted:
			default:
				t.Fatalf("the connection of %s waits", ip)
			}
			return ended, nc
		}
		closed := func(gone <-chan struct{}) bool {
			synctest.Wait()
			select {
			case <-gone:
				return true
			default:
				return false
			}
		}
		alone, one := arrive("10.0.0.1")
		first, _ := arrive("10.0.0.2")
		second, two := arrive("10.0.0.2")
		third, _ := arrive("10.0.0.2")
		if closed(alone) || !closed(first) || closed(second) || closed(third) {
			t.Errorf("closed: alone %v, first %v, second %v, third %v", closed(alone), closed(first), closed(second), closed(third))
		}
		for range 2 {
			_ = two.Close() // a second Close has no effect
		}
		fourth, _ := arrive("10.0.0.3")
		if closed(alone) || closed(third) || closed(fourth) {
			t.Error("a connection was closed although there was room")
		}
		fifth, _ := arrive("10.0.0.3")
		if closed(alone) || closed(third) || !closed(fourth) || closed(fifth) {
			t.Error("the oldest connection of the address with the most was not closed")
		}
		_ = one.Close()
	})
}
