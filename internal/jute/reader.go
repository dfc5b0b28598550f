package jute

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMalformed is what every decoding error of this package and of the records
// built on it wraps: the bytes are not what the protocol says. The stream they
// came from can't be trusted any more; close the connection.
var ErrMalformed = errors.New("jute: malformed message, close the connection")

// stringMin is the room the smallest string takes, its length; it bounds the
// count of a vector of strings.
const stringMin = 4

// Reader decodes primitives from a byte slice, one after the other. It keeps
// its first error: from then on every method returns the zero value (a vector's
// count: -1) and consumes nothing, so that a caller may read a whole record and
// ask [Reader.Err] or [Reader.Finish] once.
//
// The zero value reads from no bytes. A Reader is for one goroutine at a time.
type Reader struct {
	buf []byte
	off int
	err error
}

// NewReader returns a Reader at the first byte of b. The Reader never writes
// to b, but what [Reader.Buffer] returns aliases it.
func NewReader(b []byte) *Reader {
	return &Reader{buf: b}
}

// Reset makes r read b from its first byte and forgets its error, so that one
// Reader serves all messages of a connection without an allocation each.
func (r *Reader) Reset(b []byte) {
	*r = Reader{buf: b}
}

// Remaining returns how many bytes have not been read. After an error that is
// the number of bytes behind the place where decoding stopped.
func (r *Reader) Remaining() int {
	return len(r.buf) - r.off
}

// Err returns the first error, which wraps [ErrMalformed], or nil.
func (r *Reader) Err() error {
	return r.err
}

// Finish returns the first error. If there is none but bytes are left, that is
// an error too: a message that is longer than its record hides something.
func (r *Reader) Finish() error {
	if r.err == nil && r.Remaining() > 0 {
		r.Failf("%d bytes trail the record", r.Remaining())
	}
	return r.err
}

// Failf makes the Reader fail at its place for a reason that only the record
// knows, such as an operation that must not stand inside a multi. A Reader
// that already failed keeps its first error.
func (r *Reader) Failf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: at byte %d: %s", ErrMalformed, r.off, fmt.Sprintf(format, args...))
	}
}

// take consumes n bytes, which must not be negative. It returns nil once the
// Reader has failed, and fails it when fewer than n bytes remain.
func (r *Reader) take(n int, what string) []byte {
	if r.err != nil {
		return nil
	}
	if n > r.Remaining() {
		r.Failf("%s of %d bytes, but %d remain", what, n, r.Remaining())
		return nil
	}
	// The capacity ends with the value: an append by whoever holds it must not
	// write over the fields behind.
	b := r.buf[r.off : r.off+n : r.off+n]
	r.off += n
	return b
}

// Bool reads one byte that must be 0 or 1.
func (r *Reader) Bool() bool {
	b := r.take(1, "boolean")
	if b == nil {
		return false
	}
	if b[0] > 1 {
		// Java takes any other byte for true; then what was read could not be
		// written again unchanged.
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

// Buffer reads a length and as many bytes. The length -1 is Java's null and
// gives nil; the length 0 gives an empty slice that is not nil. The result
// aliases the Reader's input: copy it to keep it longer than that.
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

// String reads a length and as many bytes. A negative length is an error; the
// bytes are not checked to be UTF-8.
func (r *Reader) String() string {
	n := r.Int32()
	if n < 0 {
		r.Failf("string length is %d", n)
		return ""
	}
	return string(r.take(int(n), "string"))
}

// StringOrNull is String that takes Java's null, the length -1, for an empty
// string.
func (r *Reader) StringOrNull() string {
	n := r.Int32()
	if n < null {
		r.Failf("string length is %d", n)
	}
	return string(r.take(max(0, int(n)), "string"))
}

// Strings reads a vector of strings; the count -1 is Java's null and gives nil.
func (r *Reader) Strings() []string {
	n := r.VectorLen(stringMin)
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

// VectorLen reads the count of a vector: -1 for Java's null and after an error,
// otherwise a number of elements that the remaining bytes can hold if each
// takes at least minElemSize bytes (below 1 means 1). The caller may therefore
// allocate room for them all.
func (r *Reader) VectorLen(minElemSize int) int {
	n := r.Int32()
	if r.err != nil || n == null {
		return null
	}
	if n < 0 {
		r.Failf("vector count is %d", n)
		return null
	}
	if room := r.Remaining() / max(minElemSize, 1); int(n) > room {
		r.Failf("vector of %d elements, but %d bytes remain", n, r.Remaining())
		return null
	}
	return int(n)
}
