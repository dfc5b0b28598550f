package differential

import (
	"bufio"
	"fmt"
	"net"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// conn is a bare connection with a session: no client in between that could
// hide a difference.
type conn struct {
	net.Conn
	in      *bufio.Reader
	xid     int32
	session int64
	events  []string // since they were last taken
	closed  bool
}

const patience = 20 * time.Second

// connect makes a session.
func connect(dial func() (net.Conn, error)) (*conn, error) {
	c, err := dial()
	if err != nil {
		return nil, err
	}
	s := &conn{Conn: c, in: bufio.NewReader(c)}
	c.SetDeadline(time.Now().Add(patience))
	req := wire.ConnectRequest{Timeout: 30000, Password: make([]byte, 16), HasReadOnly: true}
	if _, err := c.Write(wire.AppendRecord(nil, &req)); err != nil {
		return nil, err
	}
	frame, err := wire.ReadFrame(s.in, nil, 1<<24)
	if err != nil {
		return nil, fmt.Errorf("handshake: %w", err)
	}
	var resp wire.ConnectResponse
	r := jute.NewReader(frame)
	resp.Decode(r)
	s.session = resp.SessionID
	return s, r.Finish()
}

// answer is a reply to one request.
type answer struct {
	header wire.ReplyHeader
	body   []byte
	closed bool // instead of a reply
}

// call sends a request and reads until its reply; events that come before are
// kept.
func (c *conn) call(op wire.OpCode, req wire.Record, raw []byte) (answer, error) {
	if c.closed {
		return answer{closed: true}, nil
	}
	c.xid++
	xid := c.xid
	switch op {
	case wire.OpAuth:
		xid = wire.XidAuth
	case wire.OpSetWatches, wire.OpSetWatches2:
		xid = wire.XidSetWatches
	}
	frame := wire.AppendRequest(nil, xid, op, req)
	if raw != nil {
		b, start := wire.BeginFrame(nil)
		h := wire.RequestHeader{Xid: xid, Op: op}
		frame = wire.EndFrame(append(h.Append(b), raw...), start)
	}
	c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(frame); err != nil {
		c.closed = true
		return answer{closed: true}, nil
	}
	for {
		frame, err := wire.ReadFrame(c.in, nil, 1<<24)
		if err != nil {
			if ne, ok := err.(net.Error); ok && ne.Timeout() {
				return answer{}, fmt.Errorf("no answer to %v within %v", op, patience)
			}
			c.closed = true
			return answer{closed: true}, nil
		}
		r := jute.NewReader(frame)
		var h wire.ReplyHeader
		h.Decode(r)
		if r.Err() != nil {
			return answer{}, r.Err()
		}
		if h.Xid == wire.XidEvent {
			var e wire.WatcherEvent
			e.Decode(r)
			if err := r.Finish(); err != nil {
				return answer{}, err
			}
			c.events = append(c.events, fmt.Sprintf("%v %v %s", e.Type, e.State, e.Path))
			continue
		}
		if h.Xid != xid {
			return answer{}, fmt.Errorf("answer to xid %d, asked %d", h.Xid, xid)
		}
		return answer{header: h, body: append([]byte(nil), frame[len(frame)-r.Remaining():]...)}, nil
	}
}
