package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/zklock/zklock/internal/jute"
)

// DefaultMaxFrame is the longest frame body, in bytes, that ZooKeeper accepts by
// default (jute.maxbuffer).
const DefaultMaxFrame = 0xfffff

// ErrFrame is wrapped by ReadFrame's errors after a part of a frame was read: a
// length out of range, or a stream that ended inside a frame. The position in the
// stream is lost, so the connection must be closed.
var ErrFrame = errors.New("wire: bad frame, close the connection")

// ErrFrameTooLong is wrapped by the error of ReadFrame for a frame that is longer than the
// maximum. It wraps [ErrFrame]. Nothing of the frame was read, so [SkipFrame] can skip it.
var ErrFrameTooLong = fmt.Errorf("%w: frame too long", ErrFrame)

const (
	lengthSize = 4
	// firstRead is the initial buffer size for a frame of which nothing has arrived
	// yet.
	firstRead = 4 << 10
)

// ReadFrame reads one frame and returns its body without the length. It reuses buf
// and allocates only if buf is too small; the caller passes the result as buf of the
// next call. max is the longest body to accept, in bytes; below 1 means
// [DefaultMaxFrame].
//
// The buffer grows only as bytes arrive. So a peer cannot cause a large allocation by
// sending a large length.
//
// If the stream fails before the first byte of a frame, ReadFrame returns the
// stream's own error: io.EOF for an orderly end. All other errors wrap [ErrFrame]
// and, if there is one, the stream's error. The end of the stream inside a frame is
// io.ErrUnexpectedEOF. No other goroutine may use r during the call.
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
	if length < 0 {
		return nil, fmt.Errorf("%w: length %d, want 0 to %d", ErrFrame, length, max)
	}
	if int64(length) > int64(max) {
		return nil, fmt.Errorf("%w: length %d, want 0 to %d", ErrFrameTooLong, length, max)
	}
	_, _ = r.Discard(lengthSize) // cannot fail: Peek has returned these bytes
	return readBody(r, buf[:0], int(length))
}

// PeekReply returns the header of the reply in the frame for which ReadFrame returned
// [ErrFrameTooLong]. Its errors wrap ErrFrame.
func PeekReply(r *bufio.Reader) (h ReplyHeader, err error) {
	const size = 16 // of the header
	head, err := r.Peek(lengthSize + size)
	if err != nil {
		return h, truncated(err)
	}
	if length := binary.BigEndian.Uint32(head); length < size {
		return h, fmt.Errorf("%w: length %d of a reply, want at least %d", ErrFrame, length, size)
	}
	h.Decode(jute.NewReader(head[lengthSize:]))
	return h, nil
}

// SkipFrame skips the frame for which ReadFrame returned [ErrFrameTooLong], and keeps nothing of
// it. Its errors wrap ErrFrame.
func SkipFrame(r *bufio.Reader) error {
	head, err := r.Peek(lengthSize)
	if err != nil {
		return truncated(err)
	}
	length := int(binary.BigEndian.Uint32(head))
	_, _ = r.Discard(lengthSize) // cannot fail: Peek has returned these bytes
	if _, err := r.Discard(length); err != nil {
		return truncated(err)
	}
	return nil
}

// readBody appends n bytes from r to the empty buf. It grows buf to at most twice the
// bytes that have arrived.
func readBody(r *bufio.Reader, buf []byte, n int) ([]byte, error) {
	for len(buf) < n {
		have := len(buf)
		size := min(n, max(2*have, firstRead, cap(buf)))
		if size > cap(buf) {
			buf = slices.Grow(buf, size-have)
		}
		buf = buf[:size]
		if _, err := io.ReadFull(r, buf[have:]); err != nil {
			return nil, truncated(err)
		}
	}
	return buf, nil
}

// truncated returns the error for a frame that ended early.
func truncated(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%w: frame ended early: %w", ErrFrame, err)
}

// BeginFrame appends a placeholder for a frame's length to b. The caller appends the
// body to the result, and [EndFrame] sets the length at start.
func BeginFrame(b []byte) (frame []byte, start int) {
	return append(b, 0, 0, 0, 0), len(b)
}

// EndFrame sets the length of the frame that begins at start of b, as [BeginFrame]
// returned it, and returns b.
func EndFrame(b []byte, start int) []byte {
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-lengthSize))
	return b
}

// AppendRecord appends a frame that contains only rec. It is for the two messages of
// the handshake, which have no header.
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

// AppendReply appends a framed answer. A nil rec is an empty body. An answer with an
// error in its header has an empty body.
func AppendReply(b []byte, h ReplyHeader, rec Record) []byte {
	b, start := BeginFrame(b)
	b = h.Append(b)
	if rec != nil {
		b = rec.Append(b)
	}
	return EndFrame(b, start)
}

// AppendEvent appends a framed watch event. zxid is -1 for servers before 3.9, and
// the zxid of the change for later ones.
func AppendEvent(b []byte, zxid int64, e *WatcherEvent) []byte {
	return AppendReply(b, ReplyHeader{Xid: XidEvent, Zxid: zxid}, e)
}
