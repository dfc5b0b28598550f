package security

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
)

// dialer connects to a server.
type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// A frameReplacer opens connections and replaces one of the server's frames. It counts frames
// over all connections, including replies to handshakes.
type frameReplacer struct {
	dial   dialer
	at     int                              // the number of the frame, from 0
	change func(frame []byte) (wire []byte) // returns the replacement, with lengths
	look   func(frame []byte)               // receives every frame; may be nil

	mu   sync.Mutex
	seen int
	done bool // the frame was replaced
}

func (m *frameReplacer) dialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := m.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &replacingConn{Conn: c, frameReplacer: m}, nil
}

func (m *frameReplacer) replaced() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done
}

// pass returns the bytes that the client reads for a frame.
func (m *frameReplacer) pass(frame []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.seen++
	if m.look != nil {
		m.look(frame)
	}
	if m.seen != m.at+1 {
		return framed(frame)
	}
	m.done = true
	return m.change(frame)
}

// framed prepends the length.
func framed(frame []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

// replacingConn is a connection of a frameReplacer.
type replacingConn struct {
	net.Conn
	frameReplacer *frameReplacer
	left          []byte // not yet read
}

// maxFrame is larger than any frame in these tests.
const maxFrame = 1 << 24

// Read reads whole frames from the server, and returns as much as fits into b. It is for one
// goroutine.
func (c *replacingConn) Read(b []byte) (int, error) {
	for len(c.left) == 0 {
		var head [4]byte
		if _, err := io.ReadFull(c.Conn, head[:]); err != nil {
			return 0, err
		}
		size := binary.BigEndian.Uint32(head[:])
		if size > maxFrame {
			c.left = head[:] // the answer to a four-letter word, which has no frames
			break
		}
		frame := make([]byte, size)
		if _, err := io.ReadFull(c.Conn, frame); err != nil {
			return 0, err
		}
		c.left = c.frameReplacer.pass(frame)
	}
	n := copy(b, c.left)
	c.left = c.left[n:]
	return n, nil
}
