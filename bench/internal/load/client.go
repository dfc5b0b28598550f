package load

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// callTimeout bounds every exchange outside a measurement.
const callTimeout = 30 * time.Second

// sessionTimeout is the requested session timeout. Clients send no pings, so it must be
// longer than a round.
const sessionTimeout = 40 * time.Second

// ErrAnswer is wrapped by errors about an answer that cannot be right, which makes the
// measurement invalid.
var ErrAnswer = errors.New("load: wrong answer")

// A Client is one session on its own connection. Its methods wait for each answer; they are
// for the setup and the checks around a measurement. It must be used by one goroutine only.
type Client struct {
	nc      net.Conn
	br      *bufio.Reader
	timeout time.Duration
	buf     []byte
	xid     int32
	zxid    int64 // of the last answer
}

// Dial opens a session with the server at addr, host:port.
func Dial(addr string) (*Client, error) { return DialTimeout(addr, callTimeout) }

// DialTimeout is like Dial, with a limit on the time of each exchange.
func DialTimeout(addr string, timeout time.Duration) (*Client, error) {
	nc, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	c := &Client{nc: nc, br: bufio.NewReader(nc), timeout: timeout}
	if err := c.handshake(); err != nil {
		nc.Close()
		return nil, err
	}
	return c, nil
}

// handshake creates a new session.
func (c *Client) handshake() error {
	req := wire.ConnectRequest{Timeout: int32(sessionTimeout.Milliseconds()), Password: make([]byte, 16), HasReadOnly: true}
	frame, start := wire.BeginFrame(nil)
	frame = wire.EndFrame(req.Append(frame), start)
	body, err := c.exchange(frame)
	if err != nil {
		return err
	}
	var resp wire.ConnectResponse
	r := jute.NewReader(body)
	if resp.Decode(r); r.Err() != nil || resp.SessionID == 0 {
		return fmt.Errorf("%w: to a connect request", ErrAnswer)
	}
	return nil
}

// exchange writes a frame and reads one.
func (c *Client) exchange(frame []byte) ([]byte, error) {
	c.nc.SetDeadline(time.Now().Add(c.timeout))
	if _, err := c.nc.Write(frame); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	return c.read()
}

// read reads one frame, which is valid until the next call.
func (c *Client) read() ([]byte, error) {
	body, err := wire.ReadFrame(c.br, c.buf, wire.DefaultMaxFrame)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	c.buf = body[:0]
	return body, nil
}

// Call sends one request and decodes its answer into resp, unless resp is nil. If the
// server answers with an error code, the error is a wire.ErrCode.
func (c *Client) Call(op wire.OpCode, req, resp wire.Record) error {
	c.xid++
	body, err := c.exchange(wire.AppendRequest(nil, c.xid, op, req))
	if err != nil {
		return err
	}
	h, r, err := header(body)
	if err != nil {
		return err
	}
	c.zxid = h.Zxid
	switch {
	case h.Xid != c.xid:
		return fmt.Errorf("%w: to request %d, not %d", ErrAnswer, h.Xid, c.xid)
	case h.Err != wire.ErrOK:
		return h.Err
	case resp != nil:
		if resp.Decode(r); r.Err() != nil {
			return fmt.Errorf("%w: %w", ErrAnswer, r.Err())
		}
	}
	return nil
}

// header parses the header of a frame.
func header(body []byte) (wire.ReplyHeader, *jute.Reader, error) {
	var h wire.ReplyHeader
	r := jute.NewReader(body)
	if h.Decode(r); r.Err() != nil {
		return h, r, fmt.Errorf("%w: a frame without a header", ErrAnswer)
	}
	return h, r, nil
}

// Create creates a node that every client may use.
func (c *Client) Create(path string, data []byte) error {
	if err := c.Call(wire.OpCreate, createRequest(path, data), nil); err != nil {
		return fmt.Errorf("load: create %s: %w", path, err)
	}
	return nil
}

// createRequest returns the request for a persistent node that every client may use.
func createRequest(path string, data []byte) *wire.CreateRequest {
	return &wire.CreateRequest{
		Path: path, Data: data, Flags: wire.ModePersistent,
		ACL: []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}},
	}
}

// Children returns the number of a node's children according to its Stat.
func (c *Client) Children(path string) (int, error) {
	var resp wire.ExistsResponse
	if err := c.Call(wire.OpExists, &wire.ExistsRequest{Path: path}, &resp); err != nil {
		return 0, fmt.Errorf("load: exists %s: %w", path, err)
	}
	return int(resp.Stat.NumChildren), nil
}

// LastZxid returns the id of the server's last transaction. Its increase is the number of
// writes.
func (c *Client) LastZxid() (int64, error) {
	if _, err := c.Children("/"); err != nil {
		return 0, err
	}
	return c.zxid, nil
}

// Close ends the session, which deletes its ephemeral nodes, and the connection.
func (c *Client) Close() error {
	err := c.Call(wire.OpCloseSession, &wire.Empty{}, nil)
	c.nc.Close()
	if err != nil {
		return fmt.Errorf("load: close a session: %w", err)
	}
	return nil
}
