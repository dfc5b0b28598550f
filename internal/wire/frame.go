package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// DefaultMaxFrame is the longest frame body ZooKeeper takes unless told
// otherwise (jute.maxbuffer), in bytes.
const DefaultMaxFrame = 0xfffff

// ErrFrame is what ReadFrame's errors wrap once a part of a frame was read: a
// length out of bounds, or a stream that ended in the middle. The connection
// has lost its place and must be closed.
var ErrFrame = errors.New("wire: bad frame, close the connection")

const (
	lengthSize = 4
	// firstRead is how much room is made for a frame of which nothing has
	// arrived yet.
	firstRead = 4 << 10
)

// ReadFrame reads one frame and returns its body, without the length. It uses
// buf's room and allocates only when that is too small; the caller passes the
// result as buf of the next call. max is the longest body to take, in bytes;
// below 1 means [DefaultMaxFrame].
//
// A length is a claim: room is made as bytes arrive, so that a peer can't make
// the reader allocate a lot by sending a little.
//
// If the stream fails before a frame's first byte, the stream's own error is
// returned, io.EOF for an orderly end. All other errors wrap [ErrFrame] and,
// where there is one, the stream's; an end in the middle is
// io.ErrUnexpectedEOF. r must not be used by others meanwhile.
func ReadFrame(r *bufio.Reader, buf []byte, max int) ([]byte, error) {
	if max < 1 {
		max = DefaultMaxFrame
	}
	head, err := r.Peek(lengthSize)
	if err != nil {
		if len(head) == 0 {
			return nil, err
		}
		return nil, truncated(err)
	}
	length := int32(binary.BigEndian.Uint32(head))
	if length < 0 || int64(length) > int64(max) {
		return nil, fmt.Errorf("%w: length %d, want 0 to %d", ErrFrame, length, max)
	}
	_, _ = r.Discard(lengthSize) // can't fail: Peek has shown these bytes
	return readBody(r, buf[:0], int(length))
}

// readBody appends n bytes from r to the empty buf, making room for at most as
// many again as have arrived.
func readBody(r *bufio.Reader, buf []byte, n int) ([]byte, error) {
	for len(buf) < n {
		have := len(buf)
		room := min(n, max(2*have, firstRead, cap(buf)))
		if room > cap(buf) {
			buf = slices.Grow(buf, room-have)
		}
		buf = buf[:room]
		if _, err := io.ReadFull(r, buf[have:]); err != nil {
			return nil, truncated(err)
		}
	}
	return buf, nil
}

// truncated is the error of a frame whose rest did not come.
func truncated(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: cut short: %w", ErrFrame, err)
}

// BeginFrame appends room for a frame's length to b. The body is appended to
// the result by the caller, and [EndFrame] fills the length in with start.
func BeginFrame(b []byte) (frame []byte, start int) {
	return append(b, 0, 0, 0, 0), len(b)
}

// EndFrame writes the length of the frame that began at start of b, as
// [BeginFrame] returned it, and returns b.
func EndFrame(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-lengthSize))
	return b
}

// AppendRecord appends rec as a frame of its own: the two messages of the
// handshake, which have no header.
func AppendRecord(b []byte, rec Record) []byte {
	b, start := BeginFrame(b)
	return EndFrame(rec.Append(b), start)
}

// AppendRequest appends a framed request. A nil rec is an empty body.
func AppendRequest(b []byte, xid int32, op OpCode, rec Record) []byte {
	b, start := BeginFrame(b)
	h := RequestHeader{Xid: xid, Op: op}
	b = h.Append(b)
	if rec != nil {
		b = rec.Append(b)
	}
	return EndFrame(b, start)
}

// AppendReply appends a framed answer. A nil rec is an empty body; an answer
// with an error in its header has none.
func AppendReply(b []byte, h ReplyHeader, rec Record) []byte {
	b, start := BeginFrame(b)
	b = h.Append(b)
	if rec != nil {
		b = rec.Append(b)
	}
	return EndFrame(b, start)
}

// AppendEvent appends a framed watch event. zxid is -1 with servers before
// 3.9, the transaction of the change with later ones.
func AppendEvent(b []byte, zxid int64, e *WatcherEvent) []byte {
	return AppendReply(b, ReplyHeader{Xid: XidEvent, Zxid: zxid}, e)
}
