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
//
// There may be a hundred thousand, most of them idle: what only some need, or all
// only at times, stands behind a pointer.
type conn struct {
	srv    *Server
	id     tree.ConnID
	peer   peer
	since  time.Duration
	counts connCounts // touched by the loop alone

	*driven        // nil once it is polled; changed by the loop, under mu
	polled  polled // zero while it has a goroutine that reads; set under mu
	*turn          // nil while there is nothing to do for it; of the loop alone

	mu      sync.Mutex
	pooled  holding // what it has in the server's pool
	waiting int     // requests taken from in and not yet answered
	out     []byte  // frames that the writer has not taken yet
	writing int     // bytes that the writer, or the loop, has taken and not yet written
	reason  error   // why it is cut, for the log; nil for a client that went away

	readDone bool // the reader has ended: nothing more will come
	parked   bool // the loop waits until the writer has caught up
	finish   bool // the writer closes the connection after what is in out
	cut      bool // the connection is closed, out is dropped

	// Touched by the loop alone.
	greeted    bool // the connect request was handled
	ended      bool // the tree closes the connection after what is staged or held
	touched    bool // staged is part of the batch that is being filled
	aboard     bool // held is part of the batch that is being synced
	revisit    bool // to be looked at when held, or staged, has left
	again      bool // in the loop's list for the next round
	gone       bool // the tree was told of the disconnection
	unfinished bool // its last request goes on in the next turn

	limited bool  // came from a listener: counts for MaxClientConns
	counted bool  // has a place of MaxClientConns and MaxConns; guarded by srv.mu
	queued  bool  // on the server's ready list; guarded by srv.mu
	place   int32 // in the server's list of all; guarded by srv.mu
}

// driven is what a connection needs that has goroutines.
type driven struct {
	nc      net.Conn
	raw     net.Conn  // below any TLS: closing it never waits
	subject string    // of the client's certificate; set before the first request is read
	sock    *socket   // of the loop alone, once a request came; nil if only the writer can write
	room    sync.Cond // the reader waits here while the inbox is full
	filled  sync.Cond // the writer waits here while the outbox is empty
	opening opening
	proven  *proven // guarded by the connection's mu; nil unless TLSFiles.CutClients is set

	// Guarded by the connection's mu.
	in     inbox
	writer chan struct{} // closed when the writer has ended; nil until one is needed
	word   bool          // asks a four-letter word, which the reader answers itself
}

// turn is what a connection needs from the moment that the loop takes its requests
// until the answers have left. It goes from one connection to the next, so that
// there are as many as have something to do at a time.
type turn struct {
	work   inbox         // frames from next on are still to be applied
	next   int           // index into work.frames
	staged output        // of the batch that is being filled
	held   output        // of the batch that is being synced
	until  time.Duration // the next request waits, see holdBack
}

// beginTurn makes sure that c has a turn.
func (s *Server) beginTurn(c *conn) {
	if c.turn != nil {
		return
	}
	if c.turn, _ = s.turns.Get().(*turn); c.turn == nil {
		c.turn = new(turn)
	}
}

// endTurn takes the turn back if there is nothing left in it.
func (s *Server) endTurn(c *conn) {
	if c.turn == nil || c.touched || c.aboard || c.next < len(c.work.frames) {
		return
	}
	t := c.turn
	c.turn = nil
	t.work.reset()
	t.next, t.until = 0, 0
	t.staged.reset()
	t.held.reset()
	s.turns.Put(t)
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
	c := &conn{srv: s, id: id, peer: peerOf(nc), since: s.elapsed(), limited: limited, counts: newConnCounts()}
	c.driven = &driven{nc: nc, raw: below(nc)}
	c.room.L, c.filled.L = &c.mu, &c.mu
	return c
}

// peer is who is at the other end. It implements net.Addr as what the connection
// said, in less memory.
type peer struct {
	tcp   netip.AddrPort // zero for unix sockets and connections in the process
	other net.Addr       // nil if tcp is valid
}

func peerOf(nc net.Conn) peer {
	remote := nc.RemoteAddr()
	if a, ok := remote.(*net.TCPAddr); ok {
		if ap := a.AddrPort(); ap.IsValid() {
			return peer{tcp: netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())}
		}
	}
	return peer{other: remote}
}

// addr is the peer's address, or the zero Addr if it has none.
func (p peer) addr() netip.Addr { return p.tcp.Addr() }

// Network implements net.Addr.
func (p peer) Network() string {
	if p.other != nil {
		return p.other.Network()
	}
	return "tcp"
}

// String implements net.Addr.
func (p peer) String() string {
	if p.other != nil {
		return p.other.String()
	}
	return p.tcp.String()
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
	resume := c.parked || c.polled.on
	c.parked = false
	var raw net.Conn
	if p := &c.polled; !p.on {
		raw = c.raw
		c.room.Broadcast()
		c.filled.Broadcast()
	} else if p.fd >= 0 {
		cutSocket(int(p.fd)) // the loop closes it
	}
	c.mu.Unlock()
	c.srv.pool.wake()
	if raw != nil {
		raw.Close()
	}
	if resume {
		c.srv.enqueue(c)
	}
}
