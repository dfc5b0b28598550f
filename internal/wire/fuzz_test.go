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

// checkRecode checks the rule of the codec: whatever decodes encodes to the same
// bytes, and everything else is malformed.
func checkRecode(t *testing.T, direction string, op wire.OpCode, body []byte) {
	out, err := recode(direction, op, body)
	if err == nil && !sameButNulls(out, body) {
		t.Fatalf("%s: read\n%x, wrote\n%x", direction, body, out)
	}
}

// sameButNulls reports whether out equals body except for lengths of -1 in body that
// are 0 in out: the nulls of an ACL, which have two encodings.
func sameButNulls(out, body []byte) bool {
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

// addGolden seeds a target with the captured messages of one direction.
func addGolden(f *testing.F, direction string, add func(m goldenMessage)) {
	for _, m := range readGolden(f) {
		if m.direction == direction {
			add(m)
		}
	}
}

// FuzzRequest decodes what a client may send to a server.
func FuzzRequest(f *testing.F) {
	for _, op := range operations() {
		for _, row := range layouts() {
			if typeName(row.rec) == typeName(wire.NewRequest(op)) {
				f.Add(wire.AppendRequest(nil, 1, op, row.rec)[4:])
			}
		}
	}
	addGolden(f, dirRequest, func(m goldenMessage) { f.Add(m.body) })
	f.Fuzz(func(t *testing.T, body []byte) {
		checkRecode(t, dirRequest, 0, body)
	})
}

// FuzzReply decodes what a server may answer to each operation.
func FuzzReply(f *testing.F) {
	for _, op := range operations() {
		for _, row := range layouts() {
			if typeName(row.rec) == typeName(wire.NewResponse(op)) {
				f.Add(int32(op), wire.AppendReply(nil, wire.ReplyHeader{Xid: 1, Zxid: 2}, row.rec)[4:])
			}
		}
		f.Add(int32(op), wire.AppendReply(nil, wire.ReplyHeader{Xid: 1, Err: wire.ErrNoAuth}, nil)[4:])
	}
	addGolden(f, dirReply, func(m goldenMessage) { f.Add(int32(m.op), m.body) })
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		checkRecode(t, dirReply, wire.OpCode(op), body)
	})
}

// FuzzEvent decodes watch events.
func FuzzEvent(f *testing.F) {
	for _, row := range watchLayouts() {
		if e, ok := row.rec.(*wire.WatcherEvent); ok {
			f.Add(wire.AppendEvent(nil, -1, e)[4:])
		}
	}
	addGolden(f, dirEvent, func(m goldenMessage) { f.Add(m.body) })
	f.Fuzz(func(t *testing.T, body []byte) {
		checkRecode(t, dirEvent, 0, body)
	})
}

// FuzzConnectRequest decodes the first message of a client.
func FuzzConnectRequest(f *testing.F) {
	for _, row := range connectLayouts() {
		f.Add(unhex(f, row.bytes))
	}
	addGolden(f, dirConnectRequest, func(m goldenMessage) { f.Add(m.body) })
	f.Fuzz(func(t *testing.T, body []byte) {
		checkRecode(t, dirConnectRequest, 0, body)
	})
}

// FuzzConnectResponse decodes the first message of a server.
func FuzzConnectResponse(f *testing.F) {
	for _, row := range connectLayouts() {
		f.Add(unhex(f, row.bytes))
	}
	addGolden(f, dirConnectResponse, func(m goldenMessage) { f.Add(m.body) })
	f.Fuzz(func(t *testing.T, body []byte) {
		checkRecode(t, dirConnectResponse, 0, body)
	})
}

// FuzzMulti decodes the three bodies that nest records, without a header.
func FuzzMulti(f *testing.F) {
	for _, row := range multiLayouts() {
		f.Add(unhex(f, row.bytes))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, rec := range []wire.Record{new(wire.MultiRequest), new(wire.MultiReadRequest), new(wire.MultiResponse)} {
			err := decode(rec, body)
			if err != nil {
				if !errors.Is(err, jute.ErrMalformed) {
					t.Fatalf("%s: error %v does not wrap ErrMalformed", typeName(rec), err)
				}
				continue
			}
			if out := rec.Append(nil); !sameButNulls(out, body) {
				t.Fatalf("%s: read\n%x, wrote\n%x", typeName(rec), body, out)
			}
		}
	})
}

// FuzzFrame reads a stream of frames. Returned frames must be the stream's bytes, the
// first error must name its kind, and no buffer may exceed what was sent.
func FuzzFrame(f *testing.F) {
	for _, seed := range []string{
		"", "00000000", "00000003 010203", "ffffffff", "7fffffff 00", "fffffff0", "000000",
		"00000001 01 00000002 0203 00000009 04", "0000ffff 00",
	} {
		f.Add(unhex(f, seed), uint8(0))
	}
	f.Fuzz(func(t *testing.T, stream []byte, room uint8) {
		const max = 1 << 16
		r := bufio.NewReader(bytes.NewReader(stream))
		buf := make([]byte, 0, room)
		var out []byte
		for {
			body, err := wire.ReadFrame(r, buf, max)
			if err != nil {
				if err != io.EOF && !errors.Is(err, wire.ErrFrame) {
					t.Fatalf("error %v is neither io.EOF nor ErrFrame", err)
				}
				if err == io.EOF && len(out) != len(stream) {
					t.Fatalf("orderly end after %d of %d bytes", len(out), len(stream))
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
	})
}
