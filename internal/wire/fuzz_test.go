package wire_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// equalExceptNulls reports whether out equals body, except for lengths of -1 in body that are 0 in
// out: a null in an ACL has two encodings.
func equalExceptNulls(out, body []byte) bool {
	if len(out) != len(body) {
		return false
	}
	for i := 0; i < len(body); i++ {
		if out[i] == body[i] {
			continue
		}
		if !bytes.HasPrefix(body[i:], []byte{0xff, 0xff, 0xff, 0xff}) || !bytes.HasPrefix(out[i:], make([]byte, 4)) {
			return false
		}
		i += 3
	}
	return true
}

// FuzzDecode passes bytes to the decoders of all messages and to the reader of frames. op is the
// operation that a reply answers, and the size of the reader's buffer.
func FuzzDecode(f *testing.F) {
	for _, op := range operations() {
		for _, row := range layouts() {
			if typeName(row.rec) == typeName(wire.NewRequest(op)) {
				f.Add(int32(0), wire.AppendRequest(nil, 1, op, row.rec)[4:])
			}
			if typeName(row.rec) == typeName(wire.NewResponse(op)) {
				f.Add(int32(op), wire.AppendReply(nil, wire.ReplyHeader{Xid: 1, Zxid: 2}, row.rec)[4:])
			}
		}
		f.Add(int32(op), wire.AppendReply(nil, wire.ReplyHeader{Xid: 1, Err: wire.ErrNoAuth}, nil)[4:])
	}
	for _, row := range watchLayouts() {
		if e, ok := row.rec.(*wire.WatcherEvent); ok {
			f.Add(int32(0), wire.AppendEvent(nil, -1, e)[4:])
		}
	}
	for _, row := range append(connectLayouts(), multiLayouts()...) {
		f.Add(int32(0), unhex(f, row.bytes))
	}
	for _, m := range readGolden(f) {
		f.Add(int32(m.op), m.body)
	}
	for _, stream := range []string{
		"", "00000000", "00000003 010203", "ffffffff", "7fffffff 00", "fffffff0", "000000",
		"00000001 01 00000002 0203 00000009 04", "0000ffff 00",
	} {
		f.Add(int32(0), unhex(f, stream))
	}
	f.Fuzz(func(t *testing.T, op int32, b []byte) {
		for _, direction := range []string{dirRequest, dirReply, dirEvent, dirConnectRequest, dirConnectResponse} {
			want := wire.OpCode(op)
			if direction == dirRequest {
				want = 0 // any operation
			}
			out, err := recode(direction, want, b)
			if err == nil && !equalExceptNulls(out, b) {
				t.Fatalf("%s: read\n%x, wrote\n%x", direction, b, out)
			}
		}
		// These bodies nest records. They are decoded without a header.
		for _, rec := range []wire.Record{new(wire.MultiRequest), new(wire.MultiReadRequest), new(wire.MultiResponse)} {
			if err := decode(rec, b); err != nil {
				if !errors.Is(err, jute.ErrMalformed) {
					t.Fatalf("%s: error %v does not wrap ErrMalformed", typeName(rec), err)
				}
			} else if out := rec.Append(nil); !equalExceptNulls(out, b) {
				t.Fatalf("%s: read\n%x, wrote\n%x", typeName(rec), b, out)
			}
		}
		checkFrames(t, b, make([]byte, 0, uint8(op)))
	})
}

// checkFrames reads a stream of frames into buf. It checks the bytes of the frames, the first
// error, and that buffers are not much larger than the stream.
func checkFrames(t *testing.T, stream, buf []byte) {
	r := bufio.NewReader(bytes.NewReader(stream))
	var out []byte
	for {
		body, err := wire.ReadFrame(r, buf, 1<<16)
		if err != nil {
			if err != io.EOF && !errors.Is(err, wire.ErrFrame) {
				t.Fatalf("error %v is neither io.EOF nor ErrFrame", err)
			}
			if err == io.EOF && len(out) != len(stream) {
				t.Fatalf("end of the stream after %d of %d bytes", len(out), len(stream))
			}
			break
		}
		var start int
		out, start = wire.BeginFrame(out)
		out = wire.EndFrame(append(out, body...), start)
		if cap(body) > 3*len(stream)+8192 {
			t.Fatalf("a buffer of %d bytes for a stream of %d", cap(body), len(stream))
		}
		buf = body
	}
	if !bytes.HasPrefix(stream, out) {
		t.Fatalf("read\n%x, wrote\n%x", stream, out)
	}
}
