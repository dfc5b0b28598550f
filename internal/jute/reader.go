package jute

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrMalformed is wrapped by every decoding error of this package and of the records
// built on it: the bytes violate the protocol. The stream cannot be trusted after
// that; close the connection.
var ErrMalformed = errors.New("jute: malformed message, close the connection")

// lengthSize is the size of the length before a string, in bytes.
const lengthSize = 4

// minStringSize is the size of the smallest string, its length. It bounds the count
// of a vector of strings.
const minStringSize = lengthSize

// Reader decodes primitives from a byte slice or a stream, one after the other. It keeps its
// first error. After an error every method returns the zero value (VectorLen: -1) and
// consumes nothing, so a caller may read a whole record and call [Reader.Err] or
// [Reader.Finish] once.
//
// The zero value reads from no bytes. A Reader is not safe for concurrent use.
type Reader struct {
	buf []byte
	off int
	err error
	src *source // of the bytes after buf; nil for none
}

// source is the stream of a Reader.
type source struct {
	r      io.Reader
	left   int64 // bytes that have not been read from r
	before int64 // bytes before the Reader's buf
}

// NewReader returns a Reader at the first byte of b. The Reader never writes to b,
// but the result of [Reader.Buffer] aliases it.
func NewReader(b []byte) *Reader {
	return &Reader{buf: b}
}

// NewStreamReader returns a Reader of the next size bytes of src. It reads them into buf, as many
// at a time as fit into its capacity, and allocates a larger buffer only for a longer value. The
// result of [Reader.Buffer] is valid until the next call, and [Reader.Names] must not be called.
// An error of src is the Reader's error, and does not wrap [ErrMalformed].
func NewStreamReader(src io.Reader, size int64, buf []byte) *Reader {
	return &Reader{buf: buf[:0], src: &source{r: src, left: size}}
}

// Reset makes r read b from its first byte and clears its error. So one Reader serves
// all messages of a connection without allocating.
func (r *Reader) Reset(b []byte) {
	*r = Reader{buf: b}
}

// Remaining returns how many bytes have not been read. After an error, these are the
// bytes after the position where decoding stopped.
func (r *Reader) Remaining() int {
	n := len(r.buf) - r.off
	if r.src != nil {
		n += int(r.src.left)
	}
	return n
}

// Err returns the first error, which wraps [ErrMalformed] unless it is that of a stream, or nil.
func (r *Reader) Err() error {
	return r.err
}

// Finish returns the first error. If there is none but bytes remain, it returns an
// error for them.
func (r *Reader) Finish() error {
	if r.err == nil && r.Remaining() > 0 {
		r.Failf("%d bytes after the record", r.Remaining())
	}
	return r.err
}

// Failf makes the Reader fail at its position for a reason that only the record
// knows, such as an operation that is not permitted inside a multi. A Reader that has
// already failed keeps its first error.
func (r *Reader) Failf(format string, args ...any) {
	if r.err != nil {
		return
	}
	at := int64(r.off)
	if r.src != nil {
		at += r.src.before
	}
	r.err = fmt.Errorf("%w: at byte %d: %s", ErrMalformed, at, fmt.Sprintf(format, args...))
}

// take consumes n bytes; n must not be negative. It returns nil if the Reader has
// failed, and fails it if fewer than n bytes remain.
func (r *Reader) take(n int, what string) []byte {
	if r.err != nil {
		return nil
	}
	if n > len(r.buf)-r.off && !r.fill(n, what) {
		return nil
	}
	// The capacity ends with the value, so that an append to it cannot overwrite the
	// fields after it.
	b := r.buf[r.off : r.off+n : r.off+n]
	r.off += n
	return b
}

// fill reads from the stream until buf has at least n bytes after off. It reports whether it
// has; if not, it fails the Reader.
func (r *Reader) fill(n int, what string) bool {
	if n > r.Remaining() {
		r.Failf("%s of %d bytes, but %d remain", what, n, r.Remaining())
		return false
	}
	rest := r.buf[r.off:]
	size := min(max(n, cap(r.buf)), r.Remaining())
	if size > cap(r.buf) {
		r.buf = make([]byte, size)
	}
	r.buf = r.buf[:size]
	more := r.buf[copy(r.buf, rest):]
	r.src.before += int64(r.off)
	r.src.left -= int64(len(more))
	r.off = 0
	if _, err := io.ReadFull(r.src.r, more); err != nil {
		r.err = err
		return false
	}
	return true
}

// Bool reads one byte that must be 0 or 1.
func (r *Reader) Bool() bool {
	b := r.take(1, "boolean")
	if b == nil {
		return false
	}
	if b[0] > 1 {
		// Java accepts any other byte as true. Then the decoded value would not
		// encode to the same bytes.
		r.off--
		r.Failf("boolean byte is %d, want 0 or 1", b[0])
		return false
	}
	return b[0] == 1
}

// Int32 reads four bytes, most significant first.
func (r *Reader) Int32() int32 {
	b := r.take(4, "int")
	if b == nil {
		return 0
	}
	return int32(binary.BigEndian.Uint32(b))
}

// Int64 reads eight bytes, most significant first.
func (r *Reader) Int64() int64 {
	b := r.take(8, "long")
	if b == nil {
		return 0
	}
	return int64(binary.BigEndian.Uint64(b))
}

// Buffer reads a length and that many bytes. The length -1, Java's null, gives nil.
// The length 0 gives an empty slice that is not nil. The result aliases the Reader's
// input: copy it to keep it longer.
func (r *Reader) Buffer() []byte {
	n := r.Int32()
	if r.err != nil || n == null {
		return nil
	}
	if n < 0 {
		r.Failf("buffer length is %d", n)
		return nil
	}
	return r.take(int(n), "buffer")
}

// String reads a length and that many bytes. A negative length is an error. String
// does not check that the bytes are UTF-8.
func (r *Reader) String() string { return string(r.stringBytes()) }

// stringBytes is String without the copy.
func (r *Reader) stringBytes() []byte {
	n := r.Int32()
	if n < 0 {
		r.Failf("string length is %d", n)
		return nil
	}
	return r.take(int(n), "string")
}

// StringOrNull is like String, but returns "" for Java's null, the length -1.
func (r *Reader) StringOrNull() string {
	n := r.Int32()
	if n < null {
		r.Failf("string length is %d", n)
	}
	return string(r.take(max(0, int(n)), "string"))
}

// Strings reads a vector of strings. The count -1, Java's null, gives nil.
func (r *Reader) Strings() []string {
	n := r.VectorLen(minStringSize)
	if n < 0 {
		return nil
	}
	v := make([]string, n)
	for i := range v {
		v[i] = r.String()
		if r.err != nil {
			return nil
		}
	}
	return v
}

// namesBlock is the size of the blocks of [Reader.Names], in bytes.
const namesBlock = 4 << 10

// Names is like Strings, but refuses empty strings: no znode has an empty name, and a string in
// memory is four times as large as an empty one in a message. It makes one allocation for many
// strings. A string that is kept keeps its block: up to namesBlock bytes and one string more.
func (r *Reader) Names() []string {
	n := r.VectorLen(minStringSize + 1)
	if n < 0 {
		return nil
	}
	v := make([]string, 0, n)
	for len(v) < n {
		start, count := r.off, 0
		for r.err == nil && len(v)+count < n && r.off-start < namesBlock {
			if len(r.stringBytes()) == 0 {
				r.Failf("empty name")
			}
			count++
		}
		if r.err != nil {
			return nil
		}
		block := string(r.buf[start:r.off])
		for range count {
			size := int(binary.BigEndian.Uint32(r.buf[r.off-len(block):]))
			v = append(v, block[lengthSize:lengthSize+size])
			block = block[lengthSize+size:]
		}
	}
	return v
}

// VectorLen reads the count of a vector. It returns -1 for Java's null and after an
// error. Otherwise the remaining bytes can hold that many elements of at least
// minElemSize bytes each (below 1 means 1). So the caller may allocate memory for all
// of them.
func (r *Reader) VectorLen(minElemSize int) int {
	n := r.Int32()
	if r.err != nil || n == null {
		return null
	}
	if n < 0 {
		r.Failf("vector count is %d", n)
		return null
	}
	if limit := r.Remaining() / max(minElemSize, 1); int(n) > limit {
		r.Failf("vector of %d elements, but %d bytes remain", n, r.Remaining())
		return null
	}
	return int(n)
}
