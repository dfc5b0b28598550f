package zkserver

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/zklock/zklock/internal/tree"
)

// conn is one client's connection. Up to three goroutines meet in it: its reader
// fills the inbox, the server's loop empties that and fills the outbox, its
// writer empties the outbox. Of a polled one the loop does all.
type conn struct {
	srv     *Server
	id      tree.ConnID
	nc      net.Conn   // nil once it is polled
	raw     net.Conn   // below any TLS: closing it never waits; nil once it is polled
	addr    netip.Addr // zero for unix sockets and connections in the process
	subject string     // of the client's certificate; set before the first request is read
	since   time.Duration
	remote  net.Addr
	limited bool       // came from a listener: counts for MaxClientConns
	sock    *socket    // of the loop alone; nil if only the writer can write
	counts  connCounts // touched by the loop alone

	// Touched by the loop alone.
	work    inbox  // taken from in; frames from next on are still to be applied
	next    int    // index into work.frames
	staged  output // of the batch that is being filled
	held    output // of the batch that is being synced
	greeted bool   // the connect request was handled
	ended   bool   // the tree closes the connection after what is staged or held
	touched bool   // staged is part of the batch that is being filled
	aboard  bool   // held is part of the batch that is being synced
	revisit bool   // to be looked at when held, or staged, has left
	again   bool   // in the loop's list for the next round
	gone    bool   // the tree was told of the disconnection

	queued bool // on the server's ready list; guarded by srv.mu

	polled *polled // nil while it has a goroutine that reads; set under mu

	mu       sync.Mutex
	room     sync.Cond // the reader waits here while the inbox is full
	filled   sync.Cond // the writer waits here while the outbox is empty
	in       inbox
	pooled   holding       // what it has in the server's pool
	waiting  int           // requests taken from in and not yet answered
	out      []byte        // frames that the writer has not taken yet
	writing  int           // bytes that the writer, or the loop, has taken and not yet written
	writer   chan struct{} // closed when the writer has ended; nil until one is needed
	word     bool          // asks a four-letter word, which the reader answers itself
	readDone bool          // the reader has ended: nothing more will come
	parked   bool          // the loop waits until the writer has caught up
	finish   bool          // the writer closes the connection after what is in out
	cut      bool          // the connection is closed, out is dropped
	reason   error         // why, for the log; nil for a client that went away
}

// inbox is a run of frames in one buffer, so that a request costs no
// allocation once the buffers have grown.
type inbox struct {
	buf    []byte
	frames []arrival
}

// arrival is one frame of an inbox: where it ends and when it was read.
type arrival struct {
	end int
	at  time.Duration
}

// keepBuffer is the largest buffer that is kept for the next use; one large
// frame must not hold its memory for the life of a connection.
const keepBuffer = 64 << 10

// reset empties b for the next use.
func (b *inbox) reset() {
	if cap(b.buf) > keepBuffer {
		b.buf = nil
	}
	b.buf, b.frames = b.buf[:0], b.frames[:0]
}

// frame returns frame i of b.
func (b *inbox) frame(i int) []byte {
	start := 0
	if i > 0 {
		start = b.frames[i-1].end
	}
	return b.buf[start:b.frames[i].end]
}

func newConn(s *Server, id tree.ConnID, nc net.Conn, limited bool) *conn {
	c := &conn{srv: s, id: id, nc: nc, raw: below(nc), addr: remoteIP(nc), remote: nc.RemoteAddr(), since: s.elapsed(), limited: limited}
	c.counts = newConnCounts()
	c.sock = newSocket(nc)
	c.room.L, c.filled.L = &c.mu, &c.mu
	return c
}

// remoteIP returns the peer's address, or the zero Addr if it has none.
func remoteIP(nc net.Conn) netip.Addr {
	if a, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		return a.AddrPort().Addr().Unmap()
	}
	return netip.Addr{}
}

// abort closes the connection at once, whatever is still to be written. The
// first reason is kept. It may be called from any goroutine, more than once.
func (c *conn) abort(reason error) {
	c.mu.Lock()
	if c.cut {
		c.mu.Unlock()
		return
	}
	c.cut = true
	if c.reason == nil {
		c.reason = reason
	}
	c.out = nil
	// Nothing will be written: a loop that waits for that would wait for ever.
	resume, raw := c.parked || c.polled != nil, c.raw
	c.parked = false
	if p := c.polled; p != nil {
		if raw = nil; p.fd >= 0 {
			cutSocket(p.fd) // the loop closes it
		}
	}
	c.room.Broadcast()
	c.filled.Broadcast()
	c.mu.Unlock()
	c.srv.pool.wake()
	if raw != nil {
		raw.Close()
	}
	if resume {
		c.srv.enqueue(c)
	}
}
