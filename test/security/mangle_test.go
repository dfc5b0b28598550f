package security

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"sync"
)

// dialer is how clients reach a server.
type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// A mangler makes connections on which one of the frames that come from the server
// is replaced by others. Frames are counted over all connections, the answers to
// handshakes among them.
type mangler struct {
	dial   dialer
	at     int                              // which frame, from 0
	change func(frame []byte) (wire []byte) // what is read instead, with lengths
	look   func(frame []byte)               // sees every frame; may be nil

	mu   sync.Mutex
	seen int
	done bool // it was replaced
}

func (m *mangler) dialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := m.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &mangled{Conn: c, mangler: m}, nil
}

// happened reports whether the frame was replaced.
func (m *mangler) happened() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done
}

// pass returns what is to be read in place of a frame.
func (m *mangler) pass(frame []byte) []byte {
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

// framed puts the length in front.
func framed(frame []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(frame))), frame...)
}

// mangled is a connection of a mangler.
type mangled struct {
	net.Conn
	mangler *mangler
	left    []byte // to be read
}

// maxMangled is more than any frame that a mangler meets has.
const maxMangled = 1 << 24

// Read gives whole frames on, as far as b has room. One goroutine reads.
func (c *mangled) Read(b []byte) (int, error) {
	for len(c.left) == 0 {
		var head [4]byte
		if _, err := io.ReadFull(c.Conn, head[:]); err != nil {
			return 0, err
		}
		size := binary.BigEndian.Uint32(head[:])
		if size > maxMangled {
			c.left = head[:] // a four-letter word is answered by text, not by frames
			break
		}
		frame := make([]byte, size)
		if _, err := io.ReadFull(c.Conn, frame); err != nil {
			return 0, err
		}
		c.left = c.mangler.pass(frame)
	}
	n := copy(b, c.left)
	c.left = c.left[n:]
	return n, nil
}
