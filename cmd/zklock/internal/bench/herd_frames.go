package bench

import "encoding/binary"

// Sizes of what is looked at of a frame.
const (
	lengthSize = 4
	// peekSize is what tells frames apart: xid, operation, and of a multi its
	// first operation and whether there is none.
	peekSize = 4 + 4 + 4 + 1
)

// frames cuts a stream of bytes into frames, of which it keeps the beginning: a
// listing of a thousand names passes through without being kept.
//
// It takes whatever a connection brings: past a length that can't be, it counts
// nothing more, as the connection has lost its place. It allocates nothing, so
// that metering does not slow down what is measured.
type frames struct {
	// each is told of every whole frame: the beginning of its body, and its
	// size in bytes with the length before it. first is the handshake.
	each func(body []byte, size int, first bool)

	// head is the present frame's beginning, its length included, as far as seen.
	head   [lengthSize + peekSize]byte
	seen   int  // bytes of the present frame that have come
	size   int  // its size, once its length has come
	begun  bool // the handshake is over
	broken bool // a length was impossible
}

// feed takes the next bytes of the stream.
func (f *frames) feed(p []byte) {
	for len(p) > 0 && !f.broken {
		end := lengthSize
		if f.seen >= lengthSize {
			end = f.size
		}
		n := min(len(p), end-f.seen)
		if f.seen < len(f.head) {
			copy(f.head[f.seen:], p[:n])
		}
		f.seen += n
		p = p[n:]
		if f.seen == lengthSize {
			length := int32(binary.BigEndian.Uint32(f.head[:]))
			f.broken = length < 0
			f.size = lengthSize + int(length)
		}
		// An empty body makes a frame whole as soon as its length is there.
		if f.seen >= lengthSize && f.seen == f.size && !f.broken {
			f.each(f.head[lengthSize:min(f.size, len(f.head))], f.size, !f.begun)
			f.begun, f.seen, f.size = true, 0, 0
		}
	}
}
