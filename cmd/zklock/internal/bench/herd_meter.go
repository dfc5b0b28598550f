package bench

import (
	"context"
	"encoding/binary"
	"net"
	"sync"

	"github.com/zklock/zklock/internal/wire"
)

// Traffic is what was counted; herd_recipes.go says what counts.
type Traffic struct {
	Woken         int64 `json:"woken"`         // other sessions that received watch events
	Notifications int64 `json:"notifications"` // watch events of other sessions
	Own           int64 `json:"own"`           // watch events of the session that acted
	Requests      int64 `json:"requests"`
	Bytes         int64 `json:"bytes"` // of requests, replies and events, in both directions
}

// add adds o to t.
func (t *Traffic) add(o Traffic) {
	t.Woken += o.Woken
	t.Notifications += o.Notifications
	t.Own += o.Own
	t.Requests += o.Requests
	t.Bytes += o.Bytes
}

// minus returns what was counted after o.
func (t Traffic) minus(o Traffic) Traffic {
	return Traffic{t.Woken - o.Woken, t.Notifications - o.Notifications, t.Own - o.Own, t.Requests - o.Requests, t.Bytes - o.Bytes}
}

// meter counts the traffic of one session, on one connection after another if it
// reconnects. It is safe for concurrent use.
type meter struct {
	mu    sync.Mutex // held only for additions, never during I/O
	count Traffic    // Own is not set, because a session does not know which session acted
}

// read returns the count.
func (m *meter) read() Traffic {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// dialer opens connections, like DialContext of net.Dialer.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// over returns a dialer whose connections are metered. A nil dial means that of net.Dialer.
func (m *meter) over(dial dialer) dialer {
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		c := &metered{Conn: conn, meter: m}
		c.out.each, c.in.each = c.request, c.answer
		return c, nil
	}
}

// metered is a metered connection. A request is counted before the servers can receive it,
// and an answer before the client can, so the count never contains an answer without its
// request.
type metered struct {
	net.Conn
	meter *meter
	out   frames // used by the writer
	in    frames // used by the reader

	// upkeep has the xids of requests that do not count, in the order of their answers. The
	// meter's mutex guards it.
	upkeep []int32
}

// Write counts the requests in p and writes it.
func (c *metered) Write(p []byte) (int, error) {
	c.out.feed(p)
	return c.Conn.Write(p)
}

// Read reads into p and counts the answers and events in it.
func (c *metered) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.in.feed(p[:n])
	return n, err
}

// request counts an outgoing frame. The handshake has no header. A frame that is shorter
// than a header is invalid.
func (c *metered) request(body []byte, size int, first bool) {
	if first || len(body) < 8 {
		return
	}
	xid := int32(binary.BigEndian.Uint32(body))
	c.meter.mu.Lock()
	defer c.meter.mu.Unlock()
	if isUpkeep(body) {
		if xid != wire.XidPing {
			c.upkeep = append(c.upkeep, xid)
		}
		return
	}
	c.meter.count.Requests++
	c.meter.count.Bytes += int64(size)
}

// isUpkeep reports whether a request belongs to the heartbeat or to the experiment. A
// heartbeat of zklock is a sync, an exists of the root, or a multi that is empty or begins
// with a check. Its other multis begin with a create or a delete.
func isUpkeep(body []byte) bool {
	switch wire.OpCode(binary.BigEndian.Uint32(body[4:])) {
	case wire.OpPing, wire.OpSync:
		return true
	case wire.OpExists:
		return len(body) == peekSize && binary.BigEndian.Uint32(body[8:]) == 1 && body[12] == '/'
	case wire.OpMulti:
		if len(body) < peekSize {
			return false
		}
		first, none := wire.OpCode(binary.BigEndian.Uint32(body[8:])), body[12] == 1
		return none || first == wire.OpCheck
	}
	return false
}

// answer counts an incoming frame. A session's answers arrive in the order of its requests,
// so the first answer that is still missing for upkeep is the next one. Events and pings
// have special xids.
func (c *metered) answer(body []byte, size int, first bool) {
	if first || len(body) < 4 {
		return
	}
	xid := int32(binary.BigEndian.Uint32(body))
	c.meter.mu.Lock()
	defer c.meter.mu.Unlock()
	switch {
	case xid == wire.XidPing:
		return
	case xid == wire.XidEvent:
		c.meter.count.Notifications++
	case len(c.upkeep) > 0 && c.upkeep[0] == xid:
		c.upkeep = c.upkeep[1:]
		return
	}
	c.meter.count.Bytes += int64(size)
}
