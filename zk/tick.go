package zk

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"github.com/zklock/zklock/internal/boottime"
	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// leastTick is the smallest tick that ServerTick infers from a session timeout. A
// configuration may have a minSessionTimeout below two ticks, such as tickTime=2000
// with minSessionTimeout=2000, which ZooKeeper accepts.
const leastTick = 2 * time.Second

// ServerTick returns an upper bound of the tickTime of the server that the client is
// connected to, over a separate connection. It asks with the four-letter word conf.
// If the server does not permit conf, it opens a session with the shortest timeout,
// which costs two transactions, and takes half of the timeout that the server
// grants, but at least two seconds. That is a bound if the smallest session timeout
// is two ticks, as it is by default.
//
// It fails if the client is not connected, or if the server refuses the connection,
// as with maxClientCnxns.
func (c *Client) ServerTick(ctx context.Context) (time.Duration, error) {
	c.mu.Lock()
	server := ""
	if c.lastState.State == Connected && c.link != nil {
		server = c.link.server
	}
	c.mu.Unlock()
	if server == "" {
		return 0, &Error{Op: "server tick", Err: ErrConnectionLost, applied: AppliedNo}
	}
	deadline := boottime.Now() + c.SessionTimeout()/4
	if at, ok := ctx.Deadline(); ok {
		deadline = min(deadline, boottime.Now()+time.Until(at))
	}
	if conf, err := c.askWord(ctx, server, "conf", 1<<16, deadline); err == nil {
		if tick := tickOf(conf); tick > 0 {
			return tick, nil
		}
	}
	tick, err := c.tickBySession(ctx, server, deadline)
	if err != nil {
		return 0, &Error{Op: "server tick", Err: err, applied: AppliedNo}
	}
	return tick, nil
}

// tickOf returns the tickTime in the answer to conf, 0 if there is none.
func tickOf(conf []byte) time.Duration {
	for s := bufio.NewScanner(bytes.NewReader(conf)); s.Scan(); {
		if value, ok := bytes.CutPrefix(s.Bytes(), []byte("tickTime=")); ok {
			ms, err := strconv.ParseUint(string(value), 10, 31)
			if err != nil {
				return 0
			}
			return time.Duration(ms) * time.Millisecond
		}
	}
	return 0
}

// tickBySession infers the tick from the shortest session timeout that the server
// grants. It makes one attempt, because each one makes a session.
func (c *Client) tickBySession(ctx context.Context, server string, deadline time.Duration) (time.Duration, error) {
	l, stop, err := c.connectOnce(ctx, server, deadline)
	if err != nil {
		return 0, err
	}
	defer stop()
	connect := wire.ConnectRequest{Timeout: 1, Password: make([]byte, 16)}
	if _, err := l.conn.Write(frame(connect.Append)); err != nil {
		return 0, err
	}
	answers := bufio.NewReader(l.conn)
	if err := checkPeer(answers); err != nil {
		return 0, err
	}
	body, err := wire.ReadFrame(answers, nil, 0)
	if err != nil {
		return 0, err
	}
	r := jute.NewReader(body)
	var granted wire.ConnectResponse
	if granted.Decode(r); r.Err() != nil {
		return 0, r.Err()
	}
	if granted.Timeout <= 0 {
		return 0, errors.New("the server granted no session")
	}
	// If the close fails, the session ends by its timeout.
	goodbye := wire.RequestHeader{Xid: 1, Op: wire.OpCloseSession}
	if _, err := l.conn.Write(frame(goodbye.Append)); err == nil {
		_, _ = io.Copy(io.Discard, answers) // until the server has closed the connection
	}
	return max(time.Duration(granted.Timeout)*time.Millisecond/2, leastTick), nil
}

// frame returns a frame with the body that is appended.
func frame(body func([]byte) []byte) []byte {
	b, start := wire.BeginFrame(nil)
	b = body(b)
	wire.EndFrame(b, start)
	return b
}

// connectOnce makes a separate connection to a server, which must be stopped. Its reads
// and writes end at the deadline, and with ctx.
func (c *Client) connectOnce(ctx context.Context, server string, deadline time.Duration) (l *link, stop func(), err error) {
	l, err = c.connect(ctx, session.Dial{Server: server, Deadline: deadline, Turn: deadline - boottime.Now()})
	if err != nil {
		return nil, nil, err
	}
	// The deadline of a net.Conn uses the clock of package time.
	if err := l.conn.SetDeadline(time.Now().Add(deadline - boottime.Now())); err != nil {
		l.close()
		return nil, nil, err
	}
	after := context.AfterFunc(ctx, l.close)
	return l, func() { after(); l.close() }, nil
}

// askWord sends a four-letter word to a server over a separate connection, and
// returns up to limit bytes of the answer.
func (c *Client) askWord(ctx context.Context, server, word string, limit int64, deadline time.Duration) ([]byte, error) {
	l, stop, err := c.connectOnce(ctx, server, deadline)
	if err != nil {
		return nil, err
	}
	defer stop()
	if _, err := io.WriteString(l.conn, word); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(l.conn, limit))
}
