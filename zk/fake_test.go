package zk

import (
	"bufio"
	"context"
	"net"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/internal/wire"
)

// fakeServer is a server whose behavior the test defines, on a network in memory.
type fakeServer struct {
	t     *testing.T
	net   *memnet.Network
	ln    *memnet.Listener
	conns chan *fakeConn
}

// newFakeServer starts a server that accepts connections until the test ends.
func newFakeServer(t *testing.T) *fakeServer {
	t.Helper()
	f := &fakeServer{t: t, net: new(memnet.Network), conns: make(chan *fakeConn, 100)}
	ln, err := f.net.Listen("tcp", "127.0.0.1:2181")
	if err != nil {
		t.Fatal(err)
	}
	f.ln = ln
	t.Cleanup(func() { ln.Close() })
	go func() { // ends when the listener is closed
		defer close(f.conns)
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			f.conns <- newConn(t, c)
		}
	}()
	return f
}

// dial connects a client to the server, and closes the client when the test ends.
func (f *fakeServer) dial(ctx context.Context, opts *Options) (*Client, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	o.DialContext = f.net.DialContext
	c, err := Dial(ctx, "127.0.0.1", &o)
	if err == nil {
		f.t.Cleanup(func() { c.Close() })
	}
	return c, err
}

// client is dial, and fails the test on an error.
func (f *fakeServer) client(opts *Options) *Client {
	f.t.Helper()
	c, err := f.dial(f.t.Context(), opts)
	if err != nil {
		f.t.Fatal(err)
	}
	return c
}

// serve passes each connection to handle, after handle has returned for the previous one.
func (f *fakeServer) serve(handle func(*fakeConn)) {
	go func() { // ends when the listener is closed
		for c := range f.conns {
			handle(c)
			c.Close()
		}
	}()
}

// serveAll passes each connection to handle on its own goroutine.
func (f *fakeServer) serveAll(handle func(*fakeConn)) {
	go func() { // ends when the listener is closed
		for c := range f.conns {
			go func() { // ends when handle does, with the connection
				defer c.Close()
				handle(c)
			}()
		}
	}()
}

// fakeConn is the server end of a connection.
type fakeConn struct {
	net.Conn
	t  *testing.T
	br *bufio.Reader
}

func newConn(t *testing.T, conn net.Conn) *fakeConn {
	return &fakeConn{Conn: conn, t: t, br: bufio.NewReader(conn)}
}

// request is a request that the server has read.
type request struct {
	wire.RequestHeader
	body []byte
}

// acceptSession reads the connect request and answers it with a session.
func (c *fakeConn) acceptSession(id int64) (ok bool) {
	if _, err := wire.ReadFrame(c.br, nil, 0); err != nil {
		return false
	}
	resp := wire.ConnectResponse{Timeout: 20000, SessionID: id, Password: make([]byte, 16), HasReadOnly: true}
	return c.send(wire.AppendRecord(nil, &resp))
}

// read reads a request.
func (c *fakeConn) read() (request, bool) {
	b, err := wire.ReadFrame(c.br, nil, 0)
	if err != nil {
		return request{}, false
	}
	rd := jute.NewReader(b)
	var r request
	r.Decode(rd)
	r.body = b[len(b)-rd.Remaining():]
	return r, true
}

// send writes bytes.
func (c *fakeConn) send(b []byte) bool {
	_, err := c.Write(b)
	return err == nil
}

// reply answers a request.
func (c *fakeConn) reply(r request, code wire.ErrCode, body wire.Record) bool {
	return c.send(wire.AppendReply(nil, wire.ReplyHeader{Xid: r.Xid, Zxid: 1, Err: code}, body))
}

// serveRequests answers all requests.
func (c *fakeConn) serveRequests() {
	for r, ok := c.read(); ok && c.answer(r); r, ok = c.read() {
	}
}

// answer answers a request as a correct server does.
func (c *fakeConn) answer(r request) bool {
	var body wire.Record
	switch r.Op {
	case wire.OpSync:
		body = &wire.SyncResponse{Path: jute.NewReader(r.body).String()}
	case wire.OpSetData:
		body = &wire.SetDataResponse{}
	case wire.OpGetData:
		body = &wire.GetDataResponse{Data: []byte("x")}
	}
	return c.reply(r, 0, body)
}

// within returns a context that ends with the test or after d.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
