package locktest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// takeOverAndClose resumes a session on conn and closes it, and reports whether the session has
// ended. It has not if the session's client reconnected before the server read the request to
// close. Then the server closes conn or answers that the session has moved.
func takeOverAndClose(conn net.Conn, req wire.ConnectRequest) (over bool, err error) {
	b := wire.AppendRecord(nil, &req)
	if _, err := conn.Write(wire.AppendRequest(b, 1, wire.OpCloseSession, nil)); err != nil {
		return false, err
	}
	in := bufio.NewReader(conn)
	frame, err := wire.ReadFrame(in, nil, wire.DefaultMaxFrame)
	if err != nil {
		return false, err
	}
	var resp wire.ConnectResponse
	r := jute.NewReader(frame)
	if resp.Decode(r); r.Err() != nil || resp.SessionID == 0 {
		return r.Err() == nil, r.Err()
	}
	if frame, err = wire.ReadFrame(in, frame, wire.DefaultMaxFrame); err != nil {
		return false, err
	}
	var h wire.ReplyHeader
	r = jute.NewReader(frame)
	if h.Decode(r); r.Err() != nil {
		return false, r.Err()
	}
	return h.Err == wire.ErrOK, nil
}

// A sniffer opens connections and stores the answer to the last handshake, which has the
// session's password.
type sniffer struct {
	inner func(ctx context.Context, network, address string) (net.Conn, error)

	mu   sync.Mutex // guards last
	last wire.ConnectResponse
}

func (s *sniffer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	dial := s.inner
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &sniffed{Conn: conn, sniffer: s}, nil
}

// sniffed is a connection whose first frame the sniffer reads.
type sniffed struct {
	net.Conn
	sniffer *sniffer
	seen    []byte // the bytes of the first frame until it is complete
	done    bool
}

func (c *sniffed) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.done {
		return n, err
	}
	c.seen = append(c.seen, b[:n]...)
	frame, ferr := wire.ReadFrame(bufio.NewReader(bytes.NewReader(c.seen)), nil, wire.DefaultMaxFrame)
	if ferr == nil {
		c.done, c.seen = true, nil
		c.sniffer.mu.Lock()
		c.sniffer.last.Decode(jute.NewReader(bytes.Clone(frame)))
		c.sniffer.mu.Unlock()
	}
	return n, err
}

// closeElsewhere resumes the session on another connection and closes it, like a process that
// knows its password. It repeats that if the session's client was faster.
func (s *sniffer) closeElsewhere(e *env) error {
	s.mu.Lock()
	last := s.last
	s.mu.Unlock()
	dial := s.inner
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	req := wire.ConnectRequest{Timeout: last.Timeout, SessionID: last.SessionID, Password: last.Password}
	server, _, _ := strings.Cut(e.target.Servers, ",")
	for range 100 {
		conn, err := dial(e.ctx, "tcp", server)
		if err != nil {
			return err
		}
		over, err := takeOverAndClose(conn, req)
		conn.Close()
		if over {
			return nil
		}
		e.Logf("closing session %#x again, because its client reconnected: %v", last.SessionID, err)
	}
	return fmt.Errorf("the client of session %#x reconnected every time", last.SessionID)
}
