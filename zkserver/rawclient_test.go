package zkserver

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// rawClient is a client that sends and receives single frames.
type rawClient struct {
	t        testing.TB
	nc       net.Conn
	br       *bufio.Reader
	xid      int32
	session  wire.ConnectResponse
	events   []wire.WatcherEvent
	lastZxid int64
}

// testOptions returns options for a server that logs to the test's output.
func testOptions(t testing.TB) Options {
	return Options{
		Logger:            slog.New(slog.NewTextHandler(t.Output(), nil)),
		MinSessionTimeout: 10 * time.Millisecond,
		MaxSessionTimeout: time.Hour,
		ExtendedTypes:     true,
	}
}

// must fails the test if err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts a server, and closes it at the end of the test. Without a logger, the server logs
// nothing.
func start(t testing.TB, opts Options) *Server {
	t.Helper()
	opts.Logger = cmp.Or(opts.Logger, discard())
	s, err := New(&opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// waitFor waits until ok returns true.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(3 * time.Minute)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("timed out while waiting until %s", what)
		}
		<-time.After(time.Millisecond) // polling faster would slow down the server
	}
}

// listenTCP makes s serve on a loopback port, and returns the address.
func listenTCP(t testing.TB, s *Server) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(ln)
	return ln.Addr().String()
}

// dialTCP opens a session over TCP.
func dialTCP(t testing.TB, addr string) *rawClient {
	t.Helper()
	return dialSocket(t, "tcp", addr)
}

// dialSocket is dialTCP for a network such as unix.
func dialSocket(t testing.TB, network, addr string) *rawClient {
	t.Helper()
	nc, err := net.Dial(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	nc.SetDeadline(time.Now().Add(3 * time.Minute))
	c := newRawClient(t, nc)
	c.handshake(wire.ConnectRequest{Timeout: 30_000})
	return c
}

// open connects without a handshake.
func open(t testing.TB, s *Server) *rawClient {
	t.Helper()
	nc, err := s.DialContext(context.Background(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	return newRawClient(t, nc)
}

// newRawClient returns a client that uses nc.
func newRawClient(t testing.TB, nc net.Conn) *rawClient {
	t.Cleanup(func() { nc.Close() })
	return &rawClient{t: t, nc: nc, br: bufio.NewReader(nc)}
}

// login opens a connection with a new session.
func login(t testing.TB, s *Server, timeout time.Duration) *rawClient {
	t.Helper()
	c := open(t, s)
	c.handshake(wire.ConnectRequest{Timeout: int32(timeout.Milliseconds())})
	if c.session.SessionID == 0 {
		t.Fatal("the server granted no session")
	}
	return c
}

// resume opens a connection and resumes the session of old.
func resume(t testing.TB, s *Server, old *rawClient) *rawClient {
	t.Helper()
	c := open(t, s)
	c.handshake(old.resumption())
	return c
}

func (c *rawClient) resumption() wire.ConnectRequest {
	return wire.ConnectRequest{Timeout: c.session.Timeout, SessionID: c.session.SessionID,
		Password: c.session.Password, LastZxidSeen: c.lastZxid}
}

// connect sends a connect request and reads the answer.
func (c *rawClient) connect(req wire.ConnectRequest) error {
	req.HasReadOnly = true
	if _, err := c.nc.Write(wire.AppendRecord(nil, &req)); err != nil {
		return err
	}
	frame, err := c.frame()
	if err != nil {
		return err
	}
	r := jute.NewReader(frame)
	c.session.Decode(r)
	return r.Finish()
}

// handshake is like connect, and fails the test without an answer.
func (c *rawClient) handshake(req wire.ConnectRequest) {
	c.t.Helper()
	if err := c.connect(req); err != nil {
		c.t.Fatalf("handshake: %v", err)
	}
}

func (c *rawClient) write(b []byte) {
	c.t.Helper()
	if _, err := c.nc.Write(b); err != nil {
		c.t.Fatalf("write: %v", err)
	}
}

func (c *rawClient) frame() ([]byte, error) { return wire.ReadFrame(c.br, nil, 64<<20) }

// send writes one request.
func (c *rawClient) send(op wire.OpCode, rec wire.Record) {
	c.t.Helper()
	c.xid++
	xid := c.xid
	if op == wire.OpPing {
		xid = wire.XidPing
	}
	c.write(wire.AppendRequest(nil, xid, op, rec))
}

// next reads a reply and keeps the events before it.
func (c *rawClient) next() (wire.ReplyHeader, *jute.Reader, error) {
	for {
		frame, err := c.frame()
		if err != nil {
			return wire.ReplyHeader{}, nil, err
		}
		r := jute.NewReader(frame)
		var h wire.ReplyHeader
		h.Decode(r)
		if h.Xid != wire.XidEvent {
			c.lastZxid = max(c.lastZxid, h.Zxid)
			return h, r, nil
		}
		var e wire.WatcherEvent
		e.Decode(r)
		c.events = append(c.events, e)
	}
}

// try sends a request and returns its reply.
func (c *rawClient) try(op wire.OpCode, rec wire.Record) (wire.Record, error) {
	c.t.Helper()
	c.send(op, rec)
	h, r, err := c.next()
	if err != nil {
		return nil, err
	}
	if h.Err != 0 {
		return nil, h.Err
	}
	resp := wire.NewResponse(op)
	resp.Decode(r)
	return resp, r.Finish()
}

// do is like try, and fails the test for any error that is not allowed.
func (c *rawClient) do(op wire.OpCode, rec wire.Record, allowed ...wire.ErrCode) wire.Record {
	c.t.Helper()
	resp, err := c.try(op, rec)
	var code wire.ErrCode
	if errors.As(err, &code) && slices.Contains(allowed, code) {
		return nil
	}
	if err != nil {
		c.t.Fatalf("%v: %v", op, err)
	}
	return resp
}

func openACL() []wire.ACL {
	return []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
}

func (c *rawClient) create(path string, mode wire.CreateMode) string {
	c.t.Helper()
	return c.do(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: openACL(), Flags: mode}).(*wire.CreateResponse).Path
}

// exists reports whether a node exists.
func (c *rawClient) exists(path string) bool {
	c.t.Helper()
	_, err := c.try(wire.OpExists, &wire.ExistsRequest{Path: path})
	if err != nil && !errors.Is(err, wire.ErrNoNode) {
		c.t.Fatalf("exists %s: %v", path, err)
	}
	return err == nil
}

// wantClosed fails unless the server closes the connection within three minutes.
func (c *rawClient) wantClosed() {
	c.t.Helper()
	c.nc.SetReadDeadline(time.Now().Add(3 * time.Minute))
	for {
		_, err := c.frame()
		if err == nil {
			continue
		}
		if !closedError(err) {
			c.t.Fatalf("the connection was not closed: %v", err)
		}
		return
	}
}

func closedError(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
