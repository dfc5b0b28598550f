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
	Woken         int64 `json:"woken"`         // sessions but the one that acted that received watch events
	Notifications int64 `json:"notifications"` // watch events, to all sessions but the one that acted
	Own           int64 `json:"own"`           // watch events to the session that acted
	Requests      int64 `json:"requests"`
	Bytes         int64 `json:"bytes"` // of requests, replies and events, both ways
}

// add adds o to t.
func (t *Traffic) add(o Traffic) {
	t.Woken += o.Woken
	t.Notifications += o.Notifications
	t.Own += o.Own
	t.Requests += o.Requests
	t.Bytes += o.Bytes
}

// minus returns what was counted since o.
func (t Traffic) minus(o Traffic) Traffic {
	return Traffic{t.Woken - o.Woken, t.Notifications - o.Notifications, t.Own - o.Own, t.Requests - o.Requests, t.Bytes - o.Bytes}
}

// meter counts what goes over the connections of one session: several, one after
// the other, if it reconnects. Its methods may be called from any goroutine.
type meter struct {
	mu    sync.Mutex // held for a few additions, never while bytes move
	count Traffic    // Own is not filled: a session does not know who acts
}

// read returns the count.
func (m *meter) read() Traffic {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.count
}

// dialer is a function that makes connections, as net.Dialer's DialContext.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// over returns a dialer whose connections are metered. nil means a net.Dialer's.
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

// metered is a connection that is metered. What is written counts before the
// servers can have it, what is read before the client has it: so no answer is
// ever seen whose request is not in the count.
type metered struct {
	net.Conn
	meter *meter
	out   frames // used by the one who writes
	in    frames // used by the one who reads

	// upkeep are the xids of requests that do not count, in their order, which
	// is that of their answers. Guarded by the meter's mutex.
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

// request counts a frame that goes out. The handshake has no header, and what is
// shorter than one is none of the protocol's.
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

// isUpkeep reports whether a request comes by the clock or from the experiment.
// A heartbeat of zklock is a sync, an exists of the root, or a multi that is empty or
// begins with a check. Its other multis begin with a create or a delete.
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

// answer counts a frame that comes in. Answers come in the order of their
// requests (ZooKeeper promises it of a session), so that the next answer to
// upkeep is the first that is owed; events and pings have xids of their own.
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
