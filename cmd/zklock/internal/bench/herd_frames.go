package bench

import "encoding/binary"

// The number of bytes of a frame that the meter reads.
const (
	lengthSize = 4
	// peekSize is enough to classify a frame: xid, operation, and for a multi its first
	// operation and whether it is empty.
	peekSize = 4 + 4 + 4 + 1
)

// frames splits a stream of bytes into frames. It keeps only the beginning of each, so a
// listing of a thousand names needs no memory.
//
// It accepts any input: after an invalid length, it counts nothing more, because it cannot
// find the next frame. It allocates nothing, so that metering does not slow down the
// measured client.
type frames struct {
	// each is called with every complete frame: the beginning of its body, and its size in
	// bytes including the length. first marks the handshake.
	each func(body []byte, size int, first bool)

	// head is the beginning of the current frame, including its length, as far as received.
	head   [lengthSize + peekSize]byte
	seen   int  // received bytes of the current frame
	size   int  // its size, once its length is known
	begun  bool // the handshake is over
	broken bool // a length was invalid
}

// feed processes the next bytes of the stream.
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
		// A frame with an empty body is complete when its length is known.
		if f.seen >= lengthSize && f.seen == f.size && !f.broken {
			f.each(f.head[lengthSize:min(f.size, len(f.head))], f.size, !f.begun)
			f.begun, f.seen, f.size = true, 0, 0
		}
	}
}
