package zk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/zklock/zklock/internal/boottime"
	"github.com/zklock/zklock/internal/netutil"
	"github.com/zklock/zklock/internal/session"
)

// errWrongPeer: the peer is not a ZooKeeper server, or not one without TLS.
var errWrongPeer = errors.New("zk: not a ZooKeeper server")

// link is one connection to a server.
type link struct {
	gen    uint64
	server string   // as the connection string names it
	conn   net.Conn // for reads and writes
	raw    net.Conn // below any TLS: closing it never waits
	sasl   SASLExchange
	// writeErr is the error of the failed write, guarded by the client's mutex. The
	// reader continues until reading fails too, because answers may have arrived.
	writeErr error
	// direct writes without waiting. It is nil if the connection cannot do that.
	direct syscall.RawConn
	// The client's mutex guards what follows.
	writing bool   // a goroutine is writing
	rest    []byte // what a write without waiting has left to the writer
}

// close closes the connection, which unblocks its reader and writer.
func (l *link) close() { l.raw.Close() }

// discard closes the connection and drops what the kernel has not sent. Otherwise, a server that
// was cut off could still get requests that the client has repeated on another connection.
func (l *link) discard() {
	if tcp, ok := l.raw.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // it fails only on a closed connection
	}
	l.close()
}

// errDialExited means that a function of the caller's ended its goroutine.
var errDialExited = errors.New("zk: DialContext, or a function of the TLS or SASL options, ended its goroutine")

// apart calls f, which calls functions of the caller's, on another goroutine. They may end that
// goroutine, as t.FailNow does: then the error is errDialExited.
func apart(f func() error) error {
	err := errDialExited
	done := make(chan struct{})
	go func() { // ends with f
		defer close(done)
		err = f()
	}()
	<-done
	return err
}

// connect makes a connection, including TLS and the start of SASL, within the times of d. After an
// error, the link is closed, or nil if the error is not about one address.
func (c *Client) connect(ctx context.Context, d session.Dial) (l *link, err error) {
	err = apart(func() (err error) {
		l, err = c.makeLink(ctx, d)
		return err
	})
	return l, err
}

// makeLink is connect on the calling goroutine.
func (c *Client) makeLink(ctx context.Context, d session.Dial) (l *link, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.Deadline-boottime.Now())
	defer cancel()
	a := addressOf(d.Server)
	ctx = c.silent.Context(ctx)
	raw, err := c.opts.DialContext(ctx, a.network, a.addr)
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		// The server accepted the connection and closed it before connect(2) returned.
		return nil, errNoAnswer
	}
	if err != nil && a.network == "unix" {
		err = netutil.ExplainUnix(a.addr, err)
	}
	if err != nil {
		return nil, err
	}
	made := false
	defer func() {
		if !made {
			raw.Close()
		}
	}()
	ctx, cancel = context.WithTimeout(ctx, d.Turn)
	defer cancel()
	l = &link{server: d.Server, conn: raw, raw: raw}
	if c.opts.TLS == nil {
		l.direct = directOf(raw)
	} else if l.conn, err = c.handshakeTLS(ctx, a, raw); err != nil {
		c.silent.Add(raw.RemoteAddr())
		return l, err
	}
	if err := c.startSASL(ctx, l, a.host); err != nil {
		c.silent.Add(raw.RemoteAddr())
		return l, err
	}
	made = true
	return l, nil
}

// lengthSize is the size of the length before a frame.
const lengthSize = 4

// errNoAnswer lists the usual reasons why a server closes a connection without an answer.
var errNoAnswer = errors.New("the server closed the connection without an answer: this address may have as many connections as " +
	"the server's maxClientCnxns permits (60 by default), or the server may be starting, have no quorum or a full disk, accept only TLS, " +
	"or have older data than this client has seen")

// checkPeer waits for the first bytes of the answer, and returns an error that names
// the peer if it is not a ZooKeeper server.
func checkPeer(br *bufio.Reader) error {
	head, err := br.Peek(lengthSize)
	if err != nil {
		if closedByPeer(err) {
			return errNoAnswer
		}
		return refusal(err)
	}
	return identifyPeer(head)
}

// identifyPeer returns an error that names the protocol that begins with these bytes,
// at least four, or nil. As the length of a frame, the bytes of each protocol would
// be above 300 MB. So no answer of a ZooKeeper server is mistaken for one of them.
func identifyPeer(head []byte) error {
	switch {
	case bytes.HasPrefix(head, []byte("HTTP")):
		return fmt.Errorf("%w: an HTTP server answered", errWrongPeer)
	case bytes.HasPrefix(head, []byte("SSH-")):
		return fmt.Errorf("%w: an SSH server answered", errWrongPeer)
	case (head[0] == 0x15 || head[0] == 0x16) && head[1] == 3:
		return ErrTLSRequired
	case printable(head):
		return fmt.Errorf("%w: a text protocol answered with %q", errWrongPeer, head)
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

// buffered reports whether br holds a complete frame, which can be read without
// waiting.
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

// askReadWrite reports whether a server has a quorum. It asks over a separate
// connection.
func (c *Client) askReadWrite(ctx context.Context, server string, deadline time.Duration) bool {
	answer, err := c.askWord(ctx, server, "isro", 16, deadline)
	return err == nil && strings.TrimSpace(string(answer)) == "rw"
}
