package zk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/zklock/zklock/internal/boottime"
)

// errWrongPeer: what answered is no ZooKeeper server, or not in plain text.
var errWrongPeer = errors.New("zk: not a ZooKeeper server")

// link is one connection to a server.
type link struct {
	gen  uint64
	conn net.Conn // what is read and written
	raw  net.Conn // below any TLS: closing it never waits
	// writeErr is why writing failed, guarded by the client's mutex. The link
	// is read on until it fails as well: answers may have arrived.
	writeErr error
}

// close ends the connection and wakes those who use it.
func (l *link) close() { l.raw.Close() }

// connect makes a connection within the deadline, TLS included.
func (c *Client) connect(ctx context.Context, server string, deadline time.Duration) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, deadline-boottime.Now())
	defer cancel()
	a := c.servers[server]
	raw, err := c.opts.DialContext(ctx, a.network, a.addr)
	if err != nil {
		return nil, err
	}
	l := &link{conn: raw, raw: raw}
	if c.opts.TLS == nil {
		return l, nil
	}
	if l.conn, err = c.shake(ctx, a, raw); err != nil {
		return nil, err
	}
	return l, nil
}

// lengthSize is what stands before a frame.
const lengthSize = 4

// greet waits for the first bytes of a server's answer and finds out whether it
// is one, to name what else is there.
func greet(br *bufio.Reader) error {
	head, err := br.Peek(lengthSize)
	if err != nil {
		if errors.Is(err, io.EOF) {
			return errors.New("the server closed the connection without an answer: it may be starting, without " +
				"a quorum, full for this address, for TLS alone, or its data are older than what this client has seen")
		}
		return refusal(err)
	}
	return stranger(head)
}

// stranger names what begins to speak with these bytes, at least four, or
// returns nil. A frame's length in the bytes of each would be above 300 MB: no
// answer of a ZooKeeper server can be mistaken for one.
func stranger(head []byte) error {
	switch {
	case bytes.HasPrefix(head, []byte("HTTP")):
		return fmt.Errorf("%w: an HTTP server answered", errWrongPeer)
	case bytes.HasPrefix(head, []byte("SSH-")):
		return fmt.Errorf("%w: an SSH server answered", errWrongPeer)
	case (head[0] == 0x15 || head[0] == 0x16) && head[1] == 3:
		return ErrTLSRequired
	case printable(head):
		return fmt.Errorf("%w: something that speaks text answered, with %q", errWrongPeer, head)
	}
	return nil
}

// printable reports whether b is plain text.
func printable(b []byte) bool {
	for _, ch := range b {
		if (ch < ' ' || ch > '~') && ch != '\r' && ch != '\n' {
			return false
		}
	}
	return true
}

// buffered reports whether br holds a whole frame, so that it can be read
// without waiting.
func buffered(br *bufio.Reader) bool {
	n := br.Buffered()
	if n < lengthSize {
		return false
	}
	head, err := br.Peek(lengthSize)
	if err != nil {
		return false
	}
	length := int32(binary.BigEndian.Uint32(head))
	return length >= 0 && n-lengthSize >= int(length)
}

// askReadWrite asks a server, over a connection of its own, whether it has a
// quorum.
func (c *Client) askReadWrite(ctx context.Context, server string, deadline time.Duration) bool {
	l, err := c.connect(ctx, server, deadline)
	if err != nil {
		return false
	}
	defer l.close()
	stop := context.AfterFunc(ctx, l.close)
	defer stop()
	// The deadline of the connection itself is package time's.
	if err := l.conn.SetDeadline(time.Now().Add(deadline - boottime.Now())); err != nil {
		return false
	}
	if _, err := io.WriteString(l.conn, "isro"); err != nil {
		return false
	}
	answer, err := io.ReadAll(io.LimitReader(l.conn, 16))
	return err == nil && strings.TrimSpace(string(answer)) == "rw"
}
