package auth

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/sasl"
	"github.com/zklock/zklock/internal/wire"
)

// patience is how long a server may take for one answer.
const patience = 2 * time.Minute

// conn is a bare connection with a session: no client in between that could
// hide a difference.
type conn struct {
	nc     net.Conn
	in     *bufio.Reader
	xid    int32
	events []string
	closed bool
}

// reply is an answer, or that the connection was closed instead.
type reply struct {
	wire.ReplyHeader
	body   []byte
	closed bool
}

// connect makes a session.
func connect(addr string) (*conn, error) {
	nc, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return nil, err
	}
	c := &conn{nc: nc, in: bufio.NewReader(nc)}
	req := wire.ConnectRequest{Timeout: 30000, Password: make([]byte, 16), HasReadOnly: true}
	if err := c.write(wire.AppendRecord(nil, &req)); err != nil {
		return nil, err
	}
	frame, err := wire.ReadFrame(c.in, nil, 1<<20)
	if err != nil {
		return nil, fmt.Errorf("auth: handshake: %w", err)
	}
	var resp wire.ConnectResponse
	r := jute.NewReader(frame)
	resp.Decode(r)
	if err := r.Finish(); err != nil || resp.SessionID == 0 {
		return nil, fmt.Errorf("auth: handshake: session %d, %w", resp.SessionID, err)
	}
	return c, nil
}

func (c *conn) write(b []byte) error {
	if err := c.nc.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := c.nc.Write(b)
	return err
}

// call sends a request and reads until its answer; events before it are kept.
func (c *conn) call(op wire.OpCode, rec wire.Record) (reply, error) {
	if c.closed {
		return reply{closed: true}, nil
	}
	c.xid++
	// A connection that the server has closed shows when it is read.
	_ = c.write(wire.AppendRequest(nil, c.xid, op, rec))
	for {
		got, err := c.next()
		if err != nil || got.closed || got.Xid != wire.XidEvent {
			return got, err
		}
	}
}

// next reads one frame; of an event it returns the header alone.
func (c *conn) next() (reply, error) {
	frame, err := wire.ReadFrame(c.in, nil, 1<<20)
	var ne net.Error
	switch {
	case errors.As(err, &ne) && ne.Timeout():
		return reply{}, fmt.Errorf("auth: no answer within %v", patience)
	case err != nil:
		// However it ends, cut or reset, it is the server that did it.
		c.closed = true
		_ = c.nc.Close()
		return reply{closed: true}, nil
	}
	r := jute.NewReader(frame)
	var got reply
	got.Decode(r)
	if err := r.Err(); err != nil {
		return reply{}, fmt.Errorf("auth: header: %w", err)
	}
	got.body = frame[len(frame)-r.Remaining():]
	if got.Xid == wire.XidEvent {
		var e wire.WatcherEvent
		e.Decode(r)
		c.events = append(c.events, fmt.Sprintf("%d %s", e.Type, e.Path))
		return got, r.Finish()
	}
	return got, nil
}

// ended reports whether the server closes the connection after its last answer:
// the next thing that comes is its end.
func (c *conn) ended() (bool, error) {
	got, err := c.call(wire.OpPing, nil)
	return got.closed, err
}

// sasl runs an exchange and returns the last answer.
func (c *conn) sasl(user, password string, rand io.Reader) (reply, error) {
	m := sasl.NewClient(user, password)
	token := []byte{}
	for {
		got, err := c.call(wire.OpSASL, &wire.GetSASLRequest{Token: token})
		if err != nil || got.closed || got.Err != wire.ErrOK {
			return got, err
		}
		var resp wire.SetSASLResponse
		r := jute.NewReader(got.body)
		resp.Decode(r)
		if err := r.Finish(); err != nil {
			return got, err
		}
		if token, err = m.Step(resp.Token, rand); err != nil || token == nil {
			return got, err
		}
	}
}

// show is what matters of an answer: not its ids and times, which are another
// test's.
func show(op wire.OpCode, got reply) string {
	if got.closed {
		return "closed"
	}
	text := got.Err.Name()
	if got.Err != wire.ErrOK {
		return fmt.Sprintf("%s, %d bytes", text, len(got.body))
	}
	resp := wire.NewResponse(op)
	if resp == nil {
		return fmt.Sprintf("%s, %x", text, got.body)
	}
	r := jute.NewReader(got.body)
	resp.Decode(r)
	if err := r.Finish(); err != nil {
		return fmt.Sprintf("%s, %v in %x", text, err, got.body)
	}
	switch p := resp.(type) {
	case *wire.GetACLResponse:
		return fmt.Sprintf("%s, %q of version %d", text, p.ACL, p.Stat.Aversion)
	case *wire.WhoAmIResponse:
		// Java's order is that of a hash table.
		slices.SortFunc(p.ClientInfo, func(a, b wire.ClientInfo) int {
			return strings.Compare(a.AuthScheme+a.User, b.AuthScheme+b.User)
		})
		return fmt.Sprintf("%s, %q", text, p.ClientInfo)
	case *wire.MultiResponse:
		for _, res := range p.Results {
			text += fmt.Sprintf(", %s", res.Err.Name())
		}
	case *wire.GetAllChildrenNumberResponse:
		text += fmt.Sprintf(", %d", p.TotalNumber)
	case *wire.GetEphemeralsResponse:
		text += fmt.Sprintf(", %q", p.Ephemerals)
	}
	return text
}
