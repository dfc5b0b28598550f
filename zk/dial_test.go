package zk

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/internal/testcert"
	"github.com/zklock/zklock/internal/wire"
)

func TestDialErrorNamesPeer(t *testing.T) {
	for _, row := range []struct {
		name   string
		answer func(*fakeConn)
		want   string
		atOnce bool
	}{
		{"HTTP", func(c *fakeConn) { c.read(); c.send([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, "HTTP server", true},
		{"SSH", func(c *fakeConn) { c.send([]byte("SSH-2.0-OpenSSH_9.2\r\n")); c.read() }, "SSH server", true},
		{"TLS", func(c *fakeConn) { c.read(); c.send([]byte{0x15, 3, 1, 0, 2, 2, 0x46}) }, "speaks TLS", true},
		{"text", func(c *fakeConn) { c.send([]byte("220 mail\r\n")); c.read() }, "text", true},
		{"nothing", func(c *fakeConn) { c.read() }, "closed the connection without an answer", false},
		{"nothing, at once", func(*fakeConn) {}, "maxClientCnxns", false},
		{"silence", func(c *fakeConn) { c.read(); c.read() }, "did not answer the connect request", false},
		{"four bytes", func(c *fakeConn) { c.read(); c.send([]byte{0, 0, 0, 37}); c.read() }, "did not answer", false},
		{"no session", func(c *fakeConn) {
			c.read()
			c.send(wire.AppendRecord(nil, &wire.ConnectResponse{Password: make([]byte, 16)}))
		}, "refused", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeServer(t)
				f.serve(row.answer)
				before := time.Now()
				_, err := f.dial(within(t, 90*time.Second), &Options{SessionTimeout: 10 * time.Second})
				if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "127.0.0.1:2181") {
					t.Fatalf("%v, want %q in it", err, row.want)
				}
				if row.atOnce != (time.Since(before) < time.Second) || row.atOnce == errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("%v after %v", err, time.Since(before))
				}
				if Applied(err) != AppliedNo {
					t.Fatal("a failed dial is reported as applied")
				}
			})
		})
	}
}

// TestDialContextMayEndItsGoroutine checks that an attempt fails if DialContext ends its goroutine,
// as t.FailNow does, and that Dial and Close still return.
func TestDialContextMayEndItsGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.serve(func(c *fakeConn) { c.acceptSession(7); c.read() })
		calls, least := 0, 3
		o := &Options{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if calls++; calls < least {
				runtime.Goexit()
			}
			return f.net.DialContext(ctx, network, address)
		}}
		c, err := Dial(within(t, time.Minute), "127.0.0.1", o)
		if err != nil || calls != least {
			t.Fatalf("%v after %d calls", err, calls)
		}
		_ = c.Close() // the server of this test does not confirm it
		calls, least = 0, 1<<30
		if _, err := Dial(within(t, time.Minute), "127.0.0.1", o); !errors.Is(err, errDialExited) {
			t.Error(err)
		}
	})
}

// TestDialRefusesInvalidDomain checks that names that end in .invalid fail before any lookup,
// unless Options has a DialContext, which may resolve them.
func TestDialRefusesInvalidDomain(t *testing.T) {
	for _, servers := range []string{"zk.example.invalid:2181", "zk1.INVALID.", "127.0.0.1,x.invalid:2181/apps"} {
		_, err := Dial(t.Context(), servers, nil)
		if !errors.Is(err, ErrInvalidServers) || !strings.Contains(err.Error(), "no host has a name that ends in .invalid") {
			t.Errorf("%s: %v", servers, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	called := make(chan string, 1)
	_, err := Dial(ctx, "zk.example.invalid:2181", &Options{DialContext: func(_ context.Context, _, address string) (net.Conn, error) {
		select {
		case called <- address:
		default: // Dial may try again before it sees that ctx has ended
		}
		cancel()
		return nil, ctx.Err()
	}})
	if errors.Is(err, ErrInvalidServers) || len(called) != 1 || <-called != "zk.example.invalid:2181" {
		t.Errorf("with a DialContext: %v", err)
	}
}

func TestDialErrorNamesCause(t *testing.T) {
	refused := func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
	unknown := func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.DNSError{Err: "no such host", Name: "nowhere", IsNotFound: true}
	}
	blackHole := func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }
	// If a server accepts a connection and closes it at once, connect(2) can fail on Linux.
	closed := func(errno syscall.Errno) func(context.Context, string, string) (net.Conn, error) {
		return func(_ context.Context, network, _ string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", errno)}
		}
	}
	for name, dial := range map[string]func(context.Context, string, string) (net.Conn, error){
		"maxClientCnxns": closed(syscall.EPIPE), "the server's maxClientCnxns": closed(syscall.ECONNRESET),
		"connection refused": refused, "no such host": unknown, "deadline exceeded": blackHole,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				before := time.Now()
				_, err := Dial(t.Context(), "a,b:99", &Options{DialContext: dial, SessionTimeout: 4 * time.Second})
				if err == nil || !strings.Contains(err.Error(), name) || !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("%v", err)
				}
				// Without a deadline in the context, the session timeout is the limit.
				if d := time.Since(before); d != 4*time.Second {
					t.Fatalf("after %v", d)
				}
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				if _, err := Dial(ctx, "a,b:99", &Options{DialContext: dial}); !errors.Is(err, context.Canceled) {
					t.Fatalf("%v", err)
				}
			})
		})
	}
}

// TestDialErrorMayWrapAnyError checks that errors.Is works for an error of Dial that wraps an
// error of DialContext that is not comparable, or that unwraps to an empty list.
func TestDialErrorMayWrapAnyError(t *testing.T) {
	for _, refusal := range []error{errorList{"closed"}, errorList{}} {
		synctest.Test(t, func(t *testing.T) {
			dial := func(context.Context, string, string) (net.Conn, error) { return nil, refusal }
			_, err := Dial(within(t, 2*time.Second), "a:1", &Options{DialContext: dial})
			var found errorList
			if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &found) {
				t.Errorf("%#v: %v", refusal, err)
			}
			for _, target := range []error{ErrAuthFailed, ErrClosed, errorList{"closed"}} {
				if errors.Is(err, target) {
					t.Errorf("%#v: %v matches %v", refusal, err, target)
				}
			}
		})
	}
}

// An errorList is an error that is not comparable, and that unwraps to an empty list.
type errorList []string

func (e errorList) Error() string { return "dial: " + strings.Join(e, ", ") }

func (errorList) Unwrap() []error { return nil }

// TestDialNamesEachServerOnce checks the texts of errors with one server and with several.
func TestDialNamesEachServerOnce(t *testing.T) {
	refuse := func(_ context.Context, network, addr string) (net.Conn, error) {
		ip := strings.Replace(addr, "db", "10.0.0.1", 1)
		to, err := net.ResolveTCPAddr(network, ip)
		if err != nil {
			return nil, err
		}
		return nil, &net.OpError{Op: "dial", Net: network, Addr: to, Err: syscall.ECONNREFUSED}
	}
	for servers, want := range map[string]string{
		"127.0.0.1:7":      "zk: dial 127.0.0.1:7: context deadline exceeded; connection refused",
		"db:7":             "zk: dial db:7: context deadline exceeded; dial tcp 10.0.0.1:7: connection refused",
		"127.0.0.1:7,db:8": "zk: dial 127.0.0.1:7,db:8: context deadline exceeded; 127.0.0.1:7: connection refused; db:8: dial tcp 10.0.0.1:8: connection refused",
	} {
		synctest.Test(t, func(t *testing.T) {
			_, err := Dial(t.Context(), servers, &Options{DialContext: refuse, KeepOrder: true, SessionTimeout: 4 * time.Second})
			if err == nil || err.Error() != want || !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

// TestDialNamesSilentServer checks that an error after the context ended names the server that Dial
// waited for, and the step.
func TestDialNamesSilentServer(t *testing.T) {
	silent := func(c *fakeConn) { c.read(); c.read() }
	refused := func(ctx context.Context, network, addr string, n *memnet.Network) (net.Conn, error) {
		if addr == "down:1" {
			return nil, syscall.ECONNREFUSED
		}
		return n.DialContext(ctx, network, "127.0.0.1:2181")
	}
	blackHole := func(ctx context.Context, _, _ string, _ *memnet.Network) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	for _, row := range []struct {
		servers, want string
		answer        func(*fakeConn)
		dial          func(context.Context, string, string, *memnet.Network) (net.Conn, error)
	}{
		{"zk1:1", "zk: dial zk1:1: context deadline exceeded; the server did not answer the connect request", silent, refused},
		{"down:1,zk1:1", "zk: dial down:1,zk1:1: context deadline exceeded; down:1: connection refused; zk1:1: the server did not answer the connect request", silent, refused},
		{"zk1:1,zk2:1", "zk: dial zk1:1,zk2:1: context deadline exceeded; zk1:1: the server did not accept the connection", silent, blackHole},
		{"zk1:1", "zk: dial zk1:1: context deadline exceeded; the server did not answer the credentials", func(c *fakeConn) { c.acceptSession(7); c.read(); c.read() }, refused},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeServer(t)
			f.serve(row.answer)
			dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
				return row.dial(ctx, network, addr, f.net)
			}
			_, err := Dial(within(t, 900*time.Millisecond), row.servers, &Options{DialContext: dial, KeepOrder: true, Auth: []Auth{{"digest", []byte("a:b")}}})
			if err == nil || err.Error() != row.want || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want %s", err, row.want)
			}
		})
	}
}

// TestDialReturnsWhenContextEnds checks that Dial does not wait for a server that opened a session
// and does not answer the credentials.
func TestDialReturnsWhenContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.serve(func(c *fakeConn) {
			c.acceptSession(7)
			for _, ok := c.read(); ok; _, ok = c.read() {
			}
		})
		begin := time.Now()
		_, err := f.dial(within(t, 200*time.Millisecond), &Options{Auth: []Auth{{"digest", []byte("a:b")}}})
		if d := time.Since(begin); !errors.Is(err, context.DeadlineExceeded) || d != 200*time.Millisecond {
			t.Errorf("with a context of 200 ms, Dial returned after %v: %v", d, err)
		}
	})
}

func TestDialTriesServersInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		f.serve(func(c *fakeConn) { c.acceptSession(7); c.serveRequests() })
		var asked []string
		dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
			asked = append(asked, network+" "+addr)
			if addr == "good:2181" {
				return f.net.DialContext(ctx, network, "127.0.0.1:2181")
			}
			return nil, syscall.ECONNREFUSED
		}
		var log bytes.Buffer
		c, err := Dial(t.Context(), "bad:1,[::1]:2,good", &Options{DialContext: dial, KeepOrder: true,
			Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(asked, ","); got != "tcp bad:1,tcp [::1]:2,tcp good:2181" {
			t.Fatal(got)
		}
		if c.State() != Connected || c.SessionID() != 7 || c.SessionTimeout() != 20*time.Second {
			t.Fatalf("%v %d %v", c.State(), c.SessionID(), c.SessionTimeout())
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), "state=connected") || !strings.Contains(log.String(), "state=closed") {
			t.Fatal(log.String())
		}
	})
}

// TestDialTriesNextServerAfterSilentOne checks that Dial has time to try another server after one
// that accepts the connection but does not answer.
func TestDialTriesNextServerAfterSilentOne(t *testing.T) {
	for _, limit := range []time.Duration{3 * time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			good, silent := newFakeServer(t), newFakeServer(t)
			good.serve(func(c *fakeConn) { c.acceptSession(7); c.serveRequests() })
			silent.serve(func(c *fakeConn) { c.read(); c.read() })
			dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
				f := silent
				if addr == "good:1" {
					f = good
				}
				return f.net.DialContext(ctx, network, "127.0.0.1:2181")
			}
			c, err := Dial(within(t, limit), "silent:1,good:1", &Options{DialContext: dial, KeepOrder: true})
			if err != nil {
				t.Fatalf("within %v: %v", limit, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestDialWaitsForSlowServers checks that Dial waits long enough if all servers are slow, as with
// TLS and a round trip of 400 ms, or after a restart of all servers.
func TestDialWaitsForSlowServers(t *testing.T) {
	for _, row := range []struct {
		servers             string
		limit, dial, answer time.Duration
	}{
		{"a:1,b:1,c:1,d:1,e:1", 3 * time.Second, 1200 * time.Millisecond, 400 * time.Millisecond},
		{"a:1,b:1,c:1,d:1,e:1", 3 * time.Second, 0, 1200 * time.Millisecond},
		{"a:1,b:1,c:1", 5 * time.Second, 1200 * time.Millisecond, 2400 * time.Millisecond},
		{"a:1,b:1,c:1", 10 * time.Second, 1200 * time.Millisecond, 4 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFakeServer(t)
			f.serveAll(func(c *fakeConn) { time.Sleep(row.answer); c.acceptSession(7); c.serveRequests() })
			dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
				select {
				case <-time.After(row.dial):
					return f.net.DialContext(ctx, network, "127.0.0.1:2181")
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			c, err := Dial(within(t, row.limit), row.servers, &Options{DialContext: dial, KeepOrder: true})
			if err != nil {
				time.Sleep(row.answer) // until the servers have answered
				t.Fatalf("%+v: %v", row, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDialUnixSocket(t *testing.T) {
	path := t.TempDir() + "/zk.sock"
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Skipf("no unix sockets: %v", err)
	}
	defer ln.Close()
	go func() { // ends with the client's connection
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		c := newConn(t, conn)
		c.acceptSession(7)
		c.serveRequests()
	}()
	c, err := Dial(within(t, time.Minute), "unix:"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Sync(t.Context(), "/"); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestClientLeavesReadOnlyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeServer(t)
		var writable atomic.Bool
		f.serveAll(func(c *fakeConn) {
			if head, err := c.br.Peek(4); err == nil && string(head) == "isro" {
				answer := "ro"
				if writable.Load() {
					answer = "rw"
				}
				c.send([]byte(answer))
				return
			}
			req, err := wire.ReadFrame(c.br, nil, 0)
			if err != nil || req[len(req)-1] != 1 {
				t.Errorf("the client does not accept read-only servers: %v", err)
			}
			resp := wire.ConnectResponse{Timeout: 20000, SessionID: 7, Password: make([]byte, 16), HasReadOnly: true, ReadOnly: true}
			if writable.Load() {
				resp.SessionID, resp.ReadOnly = 8, false
			}
			c.send(wire.AppendRecord(nil, &resp))
			c.serveRequests()
		})
		dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
			return f.net.DialContext(ctx, network, "127.0.0.1:2181")
		}
		c, err := Dial(t.Context(), "a,b", &Options{DialContext: dial, ReadOnly: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		states := make(chan StateChange, 10)
		c.Listen(Listener{State: func(s StateChange) { states <- s }})
		time.Sleep(time.Minute) // in the bubble
		writable.Store(true)
		for _, want := range []State{ConnectedReadOnly, Disconnected, Expired, Connected} {
			if s := <-states; s.State != want {
				t.Fatalf("%+v, want %v", s, want)
			}
		}
		if c.SessionID() != 8 {
			t.Fatalf("session %d", c.SessionID())
		}
	})
}

// TestDialLeavesSilentAddress checks that a client tries the other addresses of a host if servers
// at the first ones accept connections but never answer. When only the first address is left, the
// client connects to it.
func TestDialLeavesSilentAddress(t *testing.T) {
	resolve(t, [4]byte{127, 0, 0, 1}, [4]byte{127, 0, 0, 2}, [4]byte{127, 0, 0, 3})
	answering := make(chan string, 1)
	answering <- "127.0.0.3"
	var listeners []net.Listener
	serve := func(ip, port string) string {
		ln, port := listenAt(t, ip, port, func(conn net.Conn) {
			which := <-answering
			answering <- which
			if which != ip {
				return
			}
			c := newConn(t, conn)
			if c.acceptSession(7) {
				c.serveRequests()
			}
		})
		listeners = append(listeners, ln)
		return port
	}
	port := serve("127.0.0.1", "0")
	serve("127.0.0.2", port)
	serve("127.0.0.3", port)

	dial := func(o *Options) *Client {
		c, err := Dial(within(t, 30*time.Second), "zk.example:"+port, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	c := dial(&Options{SessionTimeout: 200 * time.Millisecond})
	lost, connected := make(chan bool, 100), make(chan bool, 100)
	c.Listen(Listener{State: func(s StateChange) {
		switch s.State {
		case Connected:
			connected <- true
		case Disconnected:
			lost <- true
		}
	}})
	<-connected
	<-answering
	answering <- "127.0.0.1"
	listeners[1].Close()
	listeners[2].Close()
	c.mu.Lock()
	at := c.link.raw.RemoteAddr().String()
	c.link.raw.Close()
	c.mu.Unlock()
	if want := net.JoinHostPort("127.0.0.3", port); at != want {
		t.Errorf("connected to %s, want %s", at, want)
	}
	<-lost
	<-connected
}

// TestReconnectLeavesAddressThatBecameSilent checks that a client whose server stops answering does
// not try the same address again: the session may not survive a second wait.
func TestReconnectLeavesAddressThatBecameSilent(t *testing.T) {
	resolve(t, [4]byte{127, 0, 0, 1}, [4]byte{127, 0, 0, 2})
	var accepted [2]atomic.Int64
	port := "0"
	for i, ip := range []string{"127.0.0.1", "127.0.0.2"} {
		_, port = listenAt(t, ip, port, func(conn net.Conn) {
			if n := accepted[i].Add(1); i == 0 && n > 1 {
				return // silent
			}
			c := newConn(t, conn)
			if _, err := wire.ReadFrame(c.br, nil, 0); err != nil {
				return
			}
			granted := wire.ConnectResponse{Timeout: 1000, SessionID: 7, Password: make([]byte, 16), HasReadOnly: true}
			if c.send(wire.AppendRecord(nil, &granted)) && i == 1 {
				c.serveRequests()
			}
		})
	}
	c, err := Dial(within(t, 30*time.Second), "zk.example:"+port, &Options{SessionTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	for c.Sync(within(t, 30*time.Second), "/") != nil {
	}
	if first, second := accepted[0].Load(), accepted[1].Load(); first != 1 || second == 0 {
		t.Errorf("%d connections to the silent address, %d to the other one, want 1 and at least 1", first, second)
	}
}

// TestDialTriesOtherAddressesOfHost checks that Dial tries the other address of a host if the
// server at the first one cannot be used, and does not try the first one again.
func TestDialTriesOtherAddressesOfHost(t *testing.T) {
	ca := testcert.New(t, "ca")
	good, expired := presenting(ca.Server("zk.example")), presenting(ca.Issue(testcert.Request{Hosts: []string{"zk.example"}, Expired: true}))
	answer := func(b []byte) func(net.Conn) {
		return func(conn net.Conn) {
			if c := newConn(t, conn); c.send(b) {
				c.br.WriteTo(io.Discard)
			}
		}
	}
	serve := func(conn net.Conn) {
		if c := newConn(t, conn); c.acceptSession(7) {
			c.serveRequests()
		}
	}
	secret := errors.New("no key for this address")
	for name, row := range map[string]struct {
		opts          Options
		first, second func(net.Conn)
	}{
		"expired certificate": {Options{TLS: &tls.Config{RootCAs: ca.Pool()}},
			func(conn net.Conn) { tls.Server(conn, expired).Handshake() }, func(conn net.Conn) { serve(tls.Server(conn, good)) }},
		"another protocol":        {Options{}, answer([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")), serve},
		"no session":              {Options{}, answer(wire.AppendRecord(nil, &wire.ConnectResponse{Password: make([]byte, 16)})), serve},
		"no password":             {Options{}, answer(wire.AppendRecord(nil, &wire.ConnectResponse{Timeout: 20000, SessionID: 7})), serve},
		"SASL failure":            {Options{SASL: addressMechanism{start: secret}}, serve, serve},
		"SASL options":            {Options{SASL: addressMechanism{start: fmt.Errorf("%w: %w", ErrInvalidOptions, secret)}}, serve, serve},
		"failure of a SASL step":  {Options{SASL: addressMechanism{step: secret}}, serve, serve},
		"options of a SASL step":  {Options{SASL: addressMechanism{step: fmt.Errorf("%w: %w", ErrInvalidOptions, secret)}}, serve, serve},
		"closes the connection":   {Options{}, func(net.Conn) {}, serve},
		"alert of a TLS 1.3 peer": {Options{TLS: &tls.Config{RootCAs: ca.Pool()}}, func(conn net.Conn) { requireCertificate(conn, good) }, func(conn net.Conn) { serve(tls.Server(conn, good)) }},
	} {
		t.Run(name, func(t *testing.T) {
			resolve(t, [4]byte{127, 0, 0, 1}, [4]byte{127, 0, 0, 2})
			var firsts atomic.Int64
			_, port := listenAt(t, "127.0.0.1", "0", func(conn net.Conn) {
				firsts.Add(1)
				row.first(conn)
				conn.Close()
			})
			listenAt(t, "127.0.0.2", port, row.second)
			c, err := Dial(within(t, time.Minute), "zk.example:"+port, &row.opts)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
			if n := firsts.Load(); n != 1 {
				t.Errorf("%d connections to the first address, want 1", n)
			}
		})
	}
}

// addressMechanism needs no token of SASL, and fails at the address 127.0.0.1.
type addressMechanism struct{ start, step error }

func (m addressMechanism) Start(_ context.Context, _ string, addr net.Addr) (SASLExchange, error) {
	if addr.(*net.TCPAddr).IP.Equal(net.IPv4(127, 0, 0, 1)) {
		return m, m.start
	}
	return addressMechanism{}, nil
}

func (m addressMechanism) Step([]byte) ([]byte, bool, error) { return nil, true, m.step }

// requireCertificate refuses a client without a certificate.
func requireCertificate(conn net.Conn, cfg *tls.Config) {
	cfg = cfg.Clone()
	cfg.ClientAuth = tls.RequireAnyClientCert
	tls.Server(conn, cfg).Handshake()
}

// TestDialGivesUpHostAfterAllAddresses checks that Dial returns before its context ends if no server
// of a host can ever work, and not if one of them may work later.
func TestDialGivesUpHostAfterAllAddresses(t *testing.T) {
	for name, failures := range map[string]int64{"never": math.MaxInt64, "later": 2} {
		t.Run(name, func(t *testing.T) {
			resolve(t, [4]byte{127, 0, 0, 1}, [4]byte{127, 0, 0, 2})
			otherProtocol := func(conn net.Conn) {
				conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
				conn.Close()
			}
			_, port := listenAt(t, "127.0.0.1", "0", otherProtocol)
			var seconds atomic.Int64
			listenAt(t, "127.0.0.2", port, func(conn net.Conn) {
				switch n := seconds.Add(1); {
				case failures == math.MaxInt64:
					otherProtocol(conn)
				case n <= failures:
					conn.Close() // as a server does that starts
				default:
					if c := newConn(t, conn); c.acceptSession(7) {
						c.serveRequests()
					}
				}
			})
			c, err := Dial(within(t, 10*time.Minute), "zk.example:"+port, nil)
			if err == nil {
				c.Close()
			}
			if later := failures < math.MaxInt64; later != (err == nil) || !later && !errors.Is(err, errWrongPeer) || errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if seconds.Load() == 0 {
				t.Error("the second address was not tried")
			}
		})
	}
}

// TestExpiryKeepsAddress checks that a client whose session has expired connects to the same address
// again: its server has answered.
func TestExpiryKeepsAddress(t *testing.T) {
	resolve(t, [4]byte{127, 0, 0, 1}, [4]byte{127, 0, 0, 2})
	var sessions, others atomic.Int64
	conns := make(chan net.Conn, 10)
	_, port := listenAt(t, "127.0.0.1", "0", func(conn net.Conn) {
		c := newConn(t, conn)
		frame, err := wire.ReadFrame(c.br, nil, 0)
		var r wire.ConnectRequest
		r.Decode(jute.NewReader(frame))
		if err != nil || r.SessionID != 0 {
			c.send(wire.AppendRecord(nil, &wire.ConnectResponse{Password: make([]byte, 16)}))
			conn.Close()
			return
		}
		conns <- conn
		granted := wire.ConnectResponse{Timeout: 20000, SessionID: sessions.Add(1), Password: make([]byte, 16), HasReadOnly: true}
		if c.send(wire.AppendRecord(nil, &granted)) {
			c.serveRequests()
		}
	})
	listenAt(t, "127.0.0.2", port, func(net.Conn) { others.Add(1) })
	c, err := Dial(within(t, time.Minute), "zk.example:"+port, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	connected := make(chan int64, 10)
	c.Listen(Listener{State: func(s StateChange) {
		if s.State == Connected {
			connected <- s.SessionID
		}
	}})
	<-connected
	(<-conns).Close()
	if id := <-connected; id != 2 || others.Load() > 0 {
		t.Errorf("session %d after %d connections to the other address, want session 2 after none", id, others.Load())
	}
}

// listenAt accepts connections at ip until the test ends, and calls handle for each on another
// goroutine. It returns the port.
func listenAt(t *testing.T, ip, port string, handle func(net.Conn)) (net.Listener, string) {
	ln, err := net.Listen("tcp", net.JoinHostPort(ip, port))
	if err != nil {
		t.Skip("this system has no address ", ip, ": ", err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() { // ends when the listener is closed
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
			go handle(conn) // ends with the connection
		}
	}()
	_, port, _ = net.SplitHostPort(ln.Addr().String())
	return ln, port
}

// resolve makes all host names resolve to these addresses until the test ends.
func resolve(t *testing.T, addrs ...[4]byte) {
	old := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = old })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe() // as with TCP, a length precedes each message
		go func() {                  // ends when the resolver closes the pipe
			defer server.Close()
			for {
				var head [2]byte
				if _, err := io.ReadFull(server, head[:]); err != nil {
					return
				}
				q := make([]byte, binary.BigEndian.Uint16(head[:]))
				if _, err := io.ReadFull(server, q); err != nil {
					return
				}
				end := 12 + bytes.IndexByte(q[12:], 0) + 5 // of the question
				a := bytes.Clone(q[:end])
				copy(a[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}) // an answer, with one question
				if binary.BigEndian.Uint16(q[end-4:]) == 1 {            // type A
					a[7] = byte(len(addrs))
					for _, ip := range addrs {
						a = append(a, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4)
						a = append(a, ip[:]...)
					}
				}
				if _, err := server.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(a))), a...)); err != nil {
					return
				}
			}
		}()
		return client, nil
	}}
}
