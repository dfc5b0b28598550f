package wire_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/zklock/zklock/internal/wire"
)

func TestReadFrame(t *testing.T) {
	tests := []struct {
		name string
		in   string
		max  int
		want string
		err  error
		says string
	}{
		{"empty", "00000000", 0, "", nil, ""},
		{"3 bytes", "00000003 010203", 0, "010203", nil, ""},
		{"maximum length", "00000004 01020304", 4, "01020304", nil, ""},
		{"first of two frames", "00000001 01 00000001 02", 0, "01", nil, ""},
		{"one too long", "00000005 0102030405", 4, "", wire.ErrFrame, "length 5, want 0 to 4"},
		{"length -1", "ffffffff 00", 0, "", wire.ErrFrame, "length -1, want 0 to 1048575"},
		{"length 2^31-1", "7fffffff 00", 0, "", wire.ErrFrame, "length 2147483647"},
		{"length 0xfffffff0", "fffffff0 00", 0, "", wire.ErrFrame, "length -16"},
		{"above the default maximum", "00100000 00", 0, "", wire.ErrFrame, "length 1048576"},
		{"a text protocol", "48545450 2f312e31", 0, "", wire.ErrFrame, "length 1213486160"},
		{"truncated length", "0000", 0, "", wire.ErrFrame, "frame ended early: unexpected EOF"},
		{"truncated body", "00000003 0102", 0, "", wire.ErrFrame, "frame ended early: unexpected EOF"},
		{"no body", "00000003", 0, "", wire.ErrFrame, "frame ended early: unexpected EOF"},
		{"end of stream", "", 0, "", io.EOF, "EOF"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			// The result must not depend on the sizes of the reads.
			r := bufio.NewReader(iotest.OneByteReader(bytes.NewReader(unhex(t, test.in))))
			got, err := wire.ReadFrame(r, nil, test.max)
			if !errors.Is(err, test.err) {
				t.Fatalf("error %v, want %v", err, test.err)
			}
			if err != nil {
				if got != nil || !strings.Contains(err.Error(), test.says) {
					t.Errorf("got %x and %q, want nothing and %q", got, err, test.says)
				}
				return
			}
			if !bytes.Equal(got, unhex(t, test.want)) {
				t.Errorf("body %x, want %s", got, test.want)
			}
		})
	}
}

// TestReadFrameReturnsErrorsOfStream checks that ReadFrame returns an error of the stream between
// two frames unchanged, and wraps it within a frame.
func TestReadFrameReturnsErrorsOfStream(t *testing.T) {
	broken := errors.New("cable cut")
	read := func(in string) error {
		r := io.MultiReader(bytes.NewReader(unhex(t, in)), iotest.ErrReader(broken))
		_, err := wire.ReadFrame(bufio.NewReader(r), nil, 0)
		return err
	}
	if err := read(""); err != broken {
		t.Errorf("between frames: %v, want the stream's error unchanged", err)
	}
	for _, in := range []string{"00", "00000002", "00000002 01"} {
		if err := read(in); !errors.Is(err, broken) || !errors.Is(err, wire.ErrFrame) {
			t.Errorf("after %q: %v, want ErrFrame and the stream's error", in, err)
		}
	}
	_, err := wire.ReadFrame(bufio.NewReader(bytes.NewReader(unhex(t, "00000002 01"))), nil, 0)
	if errors.Is(err, io.EOF) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v looks like the end of the stream", err)
	}
}

// TestReadFrameReusesBuffer reads frames of all sizes into one buffer.
func TestReadFrameReusesBuffer(t *testing.T) {
	var stream, buf []byte
	sizes := []int{0, 1, 4095, 4096, 4097, 10000, 3, 300000, 70000, 0}
	for i, n := range sizes {
		var start int
		stream, start = wire.BeginFrame(stream)
		stream = append(stream, bytes.Repeat([]byte{byte(i)}, n)...)
		stream = wire.EndFrame(stream, start)
	}
	r := bufio.NewReader(bytes.NewReader(stream))
	for i, n := range sizes {
		before := cap(buf)
		var err error
		if buf, err = wire.ReadFrame(r, buf, 0); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(buf, bytes.Repeat([]byte{byte(i)}, n)) {
			t.Fatalf("frame %d of %d bytes differs", i, n)
		}
		if n <= before && cap(buf) != before {
			t.Errorf("frame %d of %d bytes: the capacity changed from %d to %d", i, n, before, cap(buf))
		}
	}
	if _, err := wire.ReadFrame(r, buf, 0); err != io.EOF {
		t.Errorf("at the end: %v, want io.EOF", err)
	}
}

// TestTooLongReplyIsSkipped checks that the next frame can be read.
func TestTooLongReplyIsSkipped(t *testing.T) {
	for in, want := range map[string]error{
		"00000012 00000007 0000000000000009 ffffff9b 0102 00000001 03": nil,
		"00000012 00000007 0000000000000009 ffffff9b 01":               io.ErrUnexpectedEOF,
		"00000012 00000007":                            io.ErrUnexpectedEOF,
		"00000005 0102030405 000000000000000000000000": wire.ErrFrame,
	} {
		r := bufio.NewReader(iotest.OneByteReader(bytes.NewReader(unhex(t, in))))
		if _, err := wire.ReadFrame(r, nil, 4); !errors.Is(err, wire.ErrFrameTooLong) {
			t.Fatalf("%s: %v", in, err)
		}
		h, err := wire.PeekReply(r)
		if err == nil {
			err = wire.SkipFrame(r)
		}
		if !errors.Is(err, want) || err != nil && !errors.Is(err, wire.ErrFrame) {
			t.Errorf("%s: error %v, want %v", in, err, want)
		}
		if err != nil {
			continue
		}
		if want := (wire.ReplyHeader{Xid: 7, Zxid: 9, Err: wire.ErrNoNode}); h != want {
			t.Errorf("header %+v, want %+v", h, want)
		}
		if next, err := wire.ReadFrame(r, nil, 4); err != nil || !bytes.Equal(next, []byte{3}) {
			t.Errorf("the next frame is %x: %v", next, err)
		}
	}
}

func TestReadFrameAllocatesLittleForFalseLengths(t *testing.T) {
	const sent = 100 << 10
	in := append([]byte{0x40, 0, 0, 0}, make([]byte, sent)...)
	r := bufio.NewReader(bytes.NewReader(in))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := wire.ReadFrame(r, nil, 1<<30)
	runtime.ReadMemStats(&after)
	if !errors.Is(err, wire.ErrFrame) {
		t.Fatalf("error %v, want ErrFrame", err)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 8*sent {
		t.Errorf("%d bytes allocated for %d sent", got, sent)
	}
}

// TestAppendedFramesAreEncoded checks the bytes of several frames in one buffer.
func TestAppendedFramesAreEncoded(t *testing.T) {
	var b []byte
	b = wire.AppendRecord(b, &wire.ConnectRequest{Timeout: 1, HasReadOnly: true})
	b = wire.AppendRequest(b, 1, wire.OpSync, &wire.SyncRequest{Path: "/"})
	b = wire.AppendRequest(b, wire.XidPing, wire.OpPing, nil)
	b = wire.AppendReply(b, wire.ReplyHeader{Xid: 1, Zxid: 2}, &wire.SyncResponse{Path: "/"})
	b = wire.AppendReply(b, wire.ReplyHeader{Xid: 2, Zxid: 3, Err: wire.ErrNoNode}, nil)
	b = wire.AppendEvent(b, -1, &wire.WatcherEvent{Type: wire.EventNodeDeleted, State: wire.StateSyncConnected, Path: "/"})
	want := unhex(t, `
		0000001d 00000000 0000000000000000 00000001 0000000000000000 ffffffff 00
		0000000d 00000001 00000009 00000001 2f
		00000008 fffffffe 0000000b
		00000015 00000001 0000000000000002 00000000 00000001 2f
		00000010 00000002 0000000000000003 ffffff9b
		0000001d ffffffff ffffffffffffffff 00000000 00000002 00000003 00000001 2f`)
	if !bytes.Equal(b, want) {
		t.Errorf("got\n%x, want\n%x", b, want)
	}
}
