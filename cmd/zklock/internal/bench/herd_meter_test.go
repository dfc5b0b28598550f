package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
	"github.com/zklock/zklock/zktest"
)

// handshake returns a valid first frame for either direction.
func handshake() []byte {
	return wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 1000, Password: make([]byte, 16)})
}

// conn is a connection that only supports reading.
type conn struct {
	net.Conn
	in   bytes.Reader
	sent int
}

func (c *conn) Read(p []byte) (int, error)  { return c.in.Read(p) }
func (c *conn) Write(p []byte) (int, error) { c.sent += len(p); return len(p), nil }

// meterOf passes out and in through a meter, cut into pieces, and returns its count.
func meterOf(t *testing.T, out, in []byte, cut func() int) Traffic {
	t.Helper()
	var m meter
	c := &conn{}
	c.in.Reset(in)
	metered, err := m.over(func(context.Context, string, string) (net.Conn, error) { return c, nil })(t.Context(), "tcp", "x")
	if err != nil {
		t.Fatal(err)
	}
	for rest := out; len(rest) > 0; {
		n := min(cut(), len(rest))
		if _, err := metered.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	for buf := make([]byte, 1<<16); ; {
		if _, err := metered.Read(buf[:min(cut(), len(buf))]); err != nil {
			break
		}
	}
	if c.sent != len(out) {
		t.Errorf("%d bytes went through, want %d", c.sent, len(out))
	}
	return m.read()
}

// TestMeter checks that the counts do not depend on how the stream is cut into reads and
// writes.
func TestMeter(t *testing.T) {
	check := wire.MultiOp{Op: wire.OpCheck, Req: &wire.CheckVersionRequest{Path: "/a", Version: -1}}
	create := wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: "/b"}}
	request := func(xid int32, op wire.OpCode, rec wire.Record) []byte { return wire.AppendRequest(nil, xid, op, rec) }
	reply := func(xid int32, rec wire.Record) []byte {
		return wire.AppendReply(nil, wire.ReplyHeader{Xid: xid, Zxid: 7}, rec)
	}
	counted := [][]byte{
		request(1, wire.OpDelete, &wire.DeleteRequest{Path: "/a", Version: -1}),
		request(4, wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{create, check}}),
		request(6, wire.OpGetChildren2, &wire.GetChildren2Request{Path: "/a", Watch: true}),
	}
	answers := [][]byte{
		reply(1, nil), reply(4, nil),
		reply(6, &wire.GetChildren2Response{Children: []string{"x", "yy"}}),
	}
	event := wire.AppendEvent(nil, -1, &wire.WatcherEvent{Type: wire.EventNodeDeleted, State: wire.StateSyncConnected, Path: "/a"})
	out := bytes.Join([][]byte{
		handshake(), counted[0], request(wire.XidPing, wire.OpPing, nil), request(2, wire.OpSync, &wire.SyncRequest{Path: "/"}),
		request(3, wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{check, check}}), counted[1],
		request(5, wire.OpMulti, &wire.MultiRequest{}), counted[2],
	}, nil)
	in := bytes.Join([][]byte{
		handshake(), reply(wire.XidPing, nil), answers[0], event, reply(2, &wire.SyncResponse{Path: "/"}), reply(3, nil),
		answers[1], reply(5, nil), answers[2], event,
	}, nil)
	size := 2 * len(event)
	for i := range counted {
		size += len(counted[i]) + len(answers[i])
	}
	want := Traffic{Notifications: 2, Requests: 3, Bytes: int64(size)}
	for name, cut := range map[string]func() int{
		"bytes":  func() int { return 1 },
		"pieces": func() int { return 1 + rand.IntN(9) },
		"all":    func() int { return 1 << 16 },
	} {
		if got := meterOf(t, out, in, cut); got != want {
			t.Errorf("in %s: %+v, want %+v", name, got, want)
		}
	}
}

// TestMeterPassesInvalidFrames checks that invalid frames are passed on and not counted.
func TestMeterPassesInvalidFrames(t *testing.T) {
	all := func() int { return 1 << 16 }
	for name, junk := range map[string][]byte{
		"nothing":         {},
		"a letter word":   []byte("isro"),
		"negative length": {0xff, 0xff, 0xff, 0xff, 1, 2, 3},
		"empty frames":    make([]byte, 40),
		"short frames":    {0, 0, 0, 1, 9, 0, 0, 0, 3, 1, 2, 3, 0, 0, 0, 2, 0, 1},
		"text":            []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
	} {
		if got := meterOf(t, junk, junk, all); got != (Traffic{}) {
			t.Errorf("%s counts as %+v", name, got)
		}
	}
}

// TestMeterReturnsDialError checks that the caller gets the dialer's error.
func TestMeterReturnsDialError(t *testing.T) {
	broken := errors.New("broken")
	var m meter
	if _, err := m.over(func(context.Context, string, string) (net.Conn, error) { return nil, broken })(t.Context(), "tcp", "x"); err != broken {
		t.Errorf("%v, want the dialer's error", err)
	}
}

// TestMeterHasDefaultDialer checks that a meter without a dialer uses that of net.Dialer.
func TestMeterHasDefaultDialer(t *testing.T) {
	address := zktest.Start(t).ListenTCP(t)
	var m meter
	c, err := m.over(nil)(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.RemoteAddr().String(); got != address {
		t.Errorf("connected to %s, want %s", got, address)
	}
}

// TestMeterIgnoresHeartbeats checks that the heartbeats and pings of idle sessions do not
// count.
func TestMeterIgnoresHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		sessions := openSessions(t, srv, 2)
		for _, s := range sessions {
			s.members = []contender{joinOurs(mutex)(s.client, "/lock")}
			s.listen(func(err error) { t.Error(err) })
		}
		before := srv.Server().Stats().Received
		time.Sleep(time.Minute)
		if err := quiet(t.Context(), sessions); err != nil {
			t.Fatal(err)
		}
		if n := srv.Server().Stats().Received - before; n < 2*8 {
			t.Fatalf("the server has heard %d requests in a minute: no heartbeats", n)
		}
		if got := total(sessions); got != (Traffic{}) {
			t.Errorf("%+v was counted of sessions at rest", got)
		}
	})
}

// TestMeterIgnoresSizesOfReads splits random streams of valid, empty, truncated, and invalid
// frames, in one piece and in small pieces.
func TestMeterIgnoresSizesOfReads(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	parts := [][]byte{handshake(), wire.AppendRequest(nil, 1, wire.OpExists, &wire.ExistsRequest{Path: "/a"}),
		{0, 0, 0, 0}, {0, 0, 0, 2, 1, 2}, {0, 0, 0, 13}, {0}, {0xff, 0xff, 0xff, 0xff}, {0x7f, 0xff, 0xff, 0xff, 1}}
	for range 5000 {
		var stream []byte
		for range r.IntN(6) {
			stream = append(stream, parts[r.IntN(len(parts))]...)
		}
		collect := func(step int) (all []string) {
			fr := frames{each: func(body []byte, size int, first bool) { all = append(all, fmt.Sprint(body, size, first)) }}
			for piece := range slices.Chunk(stream, step) {
				fr.feed(piece)
			}
			return all
		}
		if whole, pieces := collect(max(len(stream), 1)), collect(1+r.IntN(16)); !slices.Equal(whole, pieces) {
			t.Fatalf("%x: whole %v, in pieces %v", stream, whole, pieces)
		}
	}
}
