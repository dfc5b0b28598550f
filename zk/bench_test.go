package zk

import (
	"bufio"
	"net"
	"testing"

	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/internal/wire"
)

// benchClient returns a client of a server that answers a few kinds of requests.
func benchClient(tb testing.TB, root string) *Client {
	tb.Helper()
	n := new(memnet.Network)
	ln, err := n.Listen("tcp", "127.0.0.1:2181")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { ln.Close() })
	go acceptAll(ln) // ends when the listener is closed
	c, err := Dial(tb.Context(), "127.0.0.1"+root, &Options{DialContext: n.DialContext})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { c.Close() })
	return c
}

// acceptAll passes each connection to serveQuickly.
func acceptAll(ln net.Listener) {
	for {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		go serveQuickly(conn) // ends with the connection
	}
}

// serveQuickly answers all requests of one read with one write, and does not allocate.
func serveQuickly(conn net.Conn) {
	defer conn.Close()
	br := bufio.NewReader(conn)
	if _, err := wire.ReadFrame(br, nil, 0); err != nil {
		return
	}
	resp := wire.ConnectResponse{Timeout: 20000, SessionID: 7, Password: make([]byte, 16), HasReadOnly: true}
	out := wire.AppendRecord(nil, &resp)
	// Answers use these records, so they do not allocate. The path of a create is the requested
	// one, so the client reuses its string.
	stat, made := &wire.SetDataResponse{}, &wire.Create2Response{Path: "/a/b-"}
	var frame []byte
	for {
		if !buffered(br) {
			if _, err := conn.Write(out); err != nil {
				return
			}
			out = out[:0]
		}
		var err error
		if frame, err = wire.ReadFrame(br, frame, 0); err != nil {
			return
		}
		xid := int32(frame[0])<<24 | int32(frame[1])<<16 | int32(frame[2])<<8 | int32(frame[3])
		var body wire.Record
		switch wire.OpCode(frame[7]) {
		case wire.OpSetData, wire.OpExists:
			body = stat
		case wire.OpCreate2:
			body = made
		}
		out = wire.AppendReply(out, wire.ReplyHeader{Xid: xid, Zxid: 1}, body)
	}
}

func BenchmarkSet(b *testing.B) {
	c := benchClient(b, "")
	data := make([]byte, 100)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Set(b.Context(), "/a", data, -1); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGoPipelined(b *testing.B) {
	c := benchClient(b, "")
	op := SetOp("/a", make([]byte, 100), -1)
	const window = 64
	tokens := make(chan struct{}, window)
	done := func(r Result) {
		if r.Err != nil {
			b.Error(r.Err)
		}
		<-tokens
	}
	b.ReportAllocs()
	for b.Loop() {
		tokens <- struct{}{}
		c.Go(op, done)
	}
}

func BenchmarkGoChroot(b *testing.B) {
	c := benchClient(b, "/app")
	op := SetOp("/a", make([]byte, 100), -1)
	tokens := make(chan struct{}, 64)
	done := func(Result) { <-tokens }
	b.ReportAllocs()
	for b.Loop() {
		tokens <- struct{}{}
		c.Go(op, done)
	}
}

// TestRequestsAllocateNothing counts the allocations of the client and the server. Only new values
// in an answer need an allocation, such as data or the name of a sequential znode.
func TestRequestsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("SKIPPED under the race detector, for which a sync.Pool forgets at random")
	}
	c := benchClient(t, "")
	answered := make(chan error, 1)
	done := func(r Result) { answered <- r.Err }
	data := make([]byte, 100)
	for name, request := range map[string]func() error{
		"go": func() error {
			c.Go(SetOp("/a", data, -1), done)
			return <-answered
		},
		"go batchable": func() error {
			c.Go(BatchableOp(DeleteOp("/a/b-0000000001", -1)), done)
			return <-answered
		},
		"set":    func() error { _, err := c.Set(t.Context(), "/a", data, -1); return err },
		"delete": func() error { return c.Delete(t.Context(), "/a/b-0000000001", -1) },
		"exists": func() error { _, _, err := c.Exists(t.Context(), "/a"); return err },
		"create": func() error {
			_, _, err := c.Create(t.Context(), "/a/b-", data, nil, ModeEphemeralSequential)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := func() {
				if err := request(); err != nil {
					t.Error(err)
				}
			}
			for range 10 {
				run()
			}
			if n := testing.AllocsPerRun(200, run); n >= 1 {
				t.Fatalf("%v allocations a request, on both ends", n)
			}
		})
	}
}
