package differential

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// conn is a connection without a client, which could hide a difference.
type conn struct {
	net.Conn
	in *bufio.Reader
}

// patience limits each wait for a server.
const patience = 2 * time.Minute

// errSilent reports that a server neither answered nor closed the connection.
var errSilent = errors.New("differential: no answer")

func dialConn(dial func() (net.Conn, error)) (*conn, error) {
	c, err := dial()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, in: bufio.NewReader(c)}, nil
}

// write sends bytes. The next read detects a closed connection.
func (c *conn) write(b []byte) error {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, _ = c.Write(b)
	return nil
}

// frame is an event, a reply, or the end of the connection.
type frame struct {
	header wire.ReplyHeader
	body   []byte
	event  *wire.WatcherEvent
	closed bool
}

// raw reads the body of a frame. It returns nil if the connection is closed.
func (c *conn) raw() ([]byte, error) {
	b, err := wire.ReadFrame(c.in, nil, 1<<24)
	var ne net.Error
	switch {
	case err == nil:
		return b, nil
	case errors.As(err, &ne) && ne.Timeout():
		return nil, fmt.Errorf("%w within %v", errSilent, patience)
	}
	_ = c.Close()
	return nil, nil
}

// next reads a frame.
func (c *conn) next() (frame, error) {
	b, err := c.raw()
	if err != nil || b == nil {
		return frame{closed: true}, err
	}
	r := jute.NewReader(b)
	var f frame
	f.header.Decode(r)
	if err := r.Err(); err != nil {
		return frame{}, fmt.Errorf("differential: reply of %d bytes: %w", len(b), err)
	}
	f.body = b[len(b)-r.Remaining():]
	if f.header.Xid != wire.XidEvent || len(f.body) == 0 {
		return f, nil
	}
	f.event = new(wire.WatcherEvent)
	f.event.Decode(r)
	if err := r.Finish(); err != nil {
		return frame{}, fmt.Errorf("differential: event: %w", err)
	}
	return f, nil
}

// request encodes a request with any body.
func request(xid int32, op wire.OpCode, body []byte) []byte {
	b, start := wire.BeginFrame(nil)
	h := wire.RequestHeader{Xid: xid, Op: op}
	return wire.EndFrame(append(h.Append(b), body...), start)
}

// ask sends a request outside the comparison and waits for its reply. It drops events.
func (c *conn) ask(op wire.OpCode, rec wire.Record) (frame, error) {
	if err := c.write(wire.AppendRequest(nil, 1, op, rec)); err != nil {
		return frame{}, err
	}
	for {
		f, err := c.next()
		if err != nil || f.event == nil {
			return f, err
		}
	}
}
