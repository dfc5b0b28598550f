package differential

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/sasl"
	"github.com/zklock/zklock/internal/wire"
)

// authConn is a connection with a session, without a client.
type authConn struct {
	*conn
	xid    int32
	events []string
	closed bool
}

// connect opens a session on the server at addr.
func connect(addr string) (*authConn, error) {
	c, err := dialConn(dialer(addr))
	if err != nil {
		return nil, err
	}
	req := wire.ConnectRequest{Timeout: 30000, Password: make([]byte, 16), HasReadOnly: true}
	if err := c.write(wire.AppendRecord(nil, &req)); err != nil {
		return nil, err
	}
	b, err := c.raw()
	if err != nil || b == nil {
		return nil, fmt.Errorf("differential: handshake: %w", err)
	}
	var resp wire.ConnectResponse
	r := jute.NewReader(b)
	resp.Decode(r)
	if err := r.Finish(); err != nil || resp.SessionID == 0 {
		return nil, fmt.Errorf("differential: handshake: session %d, %w", resp.SessionID, err)
	}
	return &authConn{conn: c}, nil
}

// call sends a request, reads its reply, and keeps the events before it.
func (c *authConn) call(op wire.OpCode, rec wire.Record) (frame, error) {
	if c.closed {
		return frame{closed: true}, nil
	}
	c.xid++
	// The read below detects a closed connection.
	_ = c.write(wire.AppendRequest(nil, c.xid, op, rec))
	for {
		got, err := c.next()
		c.closed = got.closed
		if err != nil || got.event == nil {
			return got, err
		}
		c.events = append(c.events, fmt.Sprintf("%d %s", got.event.Type, got.event.Path))
	}
}

// ended reports whether the server has closed the connection after its last reply.
func (c *authConn) ended() (bool, error) {
	got, err := c.call(wire.OpPing, nil)
	return got.closed, err
}

// sasl runs a SASL exchange and returns the last reply.
func (c *authConn) sasl(user, password string, rand io.Reader) (frame, error) {
	m := sasl.NewClient(user, password)
	token := []byte{}
	for {
		got, err := c.call(wire.OpSASL, &wire.GetSASLRequest{Token: token})
		if err != nil || got.closed || got.header.Err != wire.ErrOK {
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

// showReply describes a reply without ids and times, which other tests compare.
func showReply(op wire.OpCode, got frame) string {
	if got.closed {
		return "closed"
	}
	text := got.header.Err.Name()
	if got.header.Err != wire.ErrOK {
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
		// Java has the order of a hash table.
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
