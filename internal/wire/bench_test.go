package wire_test

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// lockCycle returns operations that release a lock and acquire it again.
func lockCycle() []wire.MultiOp {
	return []wire.MultiOp{
		{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: "/locks/a/lock-0000000041", Version: -1}},
		{Op: wire.OpCreate, Req: &wire.CreateRequest{
			Path: "/locks/a/lock-", Data: []byte("host/1234"), ACL: worldACL(), Flags: wire.ModeEphemeralSequential,
		}},
	}
}

// TestEncodeAllocatesNothing encodes every record, framed, into a large enough
// buffer.
func TestEncodeAllocatesNothing(t *testing.T) {
	buf := make([]byte, 0, 4096)
	for _, row := range layouts() {
		allocs := testing.AllocsPerRun(50, func() {
			b := wire.AppendRequest(buf, 1, wire.OpMulti, row.rec)
			b = wire.AppendReply(b, wire.ReplyHeader{Xid: 1}, row.rec)
			wire.AppendRecord(b, row.rec)
		})
		if allocs != 0 {
			t.Errorf("%s/%s: %v allocations, want 0", typeName(row.rec), row.name, allocs)
		}
	}
	event := &wire.WatcherEvent{Type: wire.EventNodeDeleted, Path: "/a"}
	if allocs := testing.AllocsPerRun(50, func() { wire.AppendEvent(buf, -1, event) }); allocs != 0 {
		t.Errorf("event: %v allocations, want 0", allocs)
	}
}

// TestReadAllocatesNothing reads and decodes answers without strings, with one
// Reader, one buffer, and one record for all of them.
func TestReadAllocatesNothing(t *testing.T) {
	frame := wire.AppendReply(nil, wire.ReplyHeader{Xid: 1}, &wire.GetDataResponse{Data: []byte("data")})
	in := bytes.NewReader(nil)
	br, r, buf := bufio.NewReader(in), new(jute.Reader), make([]byte, 0, 256)
	var h wire.ReplyHeader
	var resp wire.GetDataResponse
	allocs := testing.AllocsPerRun(100, func() {
		in.Reset(frame)
		br.Reset(in)
		body, err := wire.ReadFrame(br, buf, 0)
		if err != nil {
			t.Fatal(err)
		}
		r.Reset(body)
		h.Decode(r)
		resp.Decode(r)
		if err := r.Finish(); err != nil || string(resp.Data) != "data" {
			t.Fatalf("%v, data %q", err, resp.Data)
		}
	})
	if allocs != 0 {
		t.Errorf("%v allocations, want 0", allocs)
	}
}

// BenchmarkAppendRequest encodes a create into a reused buffer.
func BenchmarkAppendRequest(b *testing.B) {
	b.ReportAllocs()
	buf := make([]byte, 0, 1024)
	req := lockCycle()[1].Req
	for b.Loop() {
		buf = wire.AppendRequest(buf[:0], 1, wire.OpCreate, req)
	}
	b.SetBytes(int64(len(buf)))
}

// BenchmarkAppendMulti encodes a delete and a create in one multi.
func BenchmarkAppendMulti(b *testing.B) {
	b.ReportAllocs()
	buf := make([]byte, 0, 1024)
	req := &wire.MultiRequest{Ops: lockCycle()}
	for b.Loop() {
		buf = wire.AppendRequest(buf[:0], 1, wire.OpMulti, req)
	}
	b.SetBytes(int64(len(buf)))
}

// BenchmarkAppendReply encodes an answer with a Stat.
func BenchmarkAppendReply(b *testing.B) {
	b.ReportAllocs()
	buf := make([]byte, 0, 1024)
	resp := &wire.Create2Response{Path: "/locks/a/lock-0000000042", Stat: sampleStat()}
	for b.Loop() {
		buf = wire.AppendReply(buf[:0], wire.ReplyHeader{Xid: 1, Zxid: 2}, resp)
	}
	b.SetBytes(int64(len(buf)))
}

// BenchmarkAppendEvent encodes a watch event.
func BenchmarkAppendEvent(b *testing.B) {
	b.ReportAllocs()
	buf := make([]byte, 0, 1024)
	event := &wire.WatcherEvent{Type: wire.EventNodeDeleted, State: wire.StateSyncConnected, Path: "/locks/a/lock-0000000042"}
	for b.Loop() {
		buf = wire.AppendEvent(buf[:0], -1, event)
	}
	b.SetBytes(int64(len(buf)))
}

// BenchmarkDecodeReply decodes an answer with a Stat. Only the path needs an allocation.
func BenchmarkDecodeReply(b *testing.B) {
	b.ReportAllocs()
	body := wire.AppendReply(nil, wire.ReplyHeader{Xid: 1, Zxid: 2},
		&wire.Create2Response{Path: "/locks/a/lock-0000000042", Stat: sampleStat()})[4:]
	b.SetBytes(int64(len(body)))
	var r jute.Reader
	var h wire.ReplyHeader
	var resp wire.Create2Response
	for b.Loop() {
		r.Reset(body)
		h.Decode(&r)
		resp.Decode(&r)
	}
	if err := r.Finish(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkReadFrame reads frames of 100 bytes.
func BenchmarkReadFrame(b *testing.B) {
	b.ReportAllocs()
	frame := append([]byte{0, 0, 0, 100}, make([]byte, 100)...)
	b.SetBytes(int64(len(frame)))
	in := bytes.NewReader(frame)
	br, buf := bufio.NewReader(in), make([]byte, 0, 128)
	for b.Loop() {
		in.Reset(frame)
		br.Reset(in)
		if _, err := wire.ReadFrame(br, buf, 0); err != nil {
			b.Fatal(err)
		}
	}
}
