package zkserver

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wire"
)

// conn is one client's connection. Up to three goroutines use it: the reader fills the
// inbox, the server's loop empties the inbox and fills the outbox, and the writer empties
// the outbox. For a polled connection the loop does all three.
//
// There may be a hundred thousand connections, most of them idle. State that only some
// need, or that all need only at times, is behind a pointer.
type conn struct {
	srv        *Server
	id         tree.ConnID
	peer       peer
	acceptedAt time.Duration
	calmSince  time.Duration // since when no turn was charged; used only by the loop
	counts     connCounts    // used only by the loop

	*blockingIO          // nil once the connection is polled; changed by the loop, under mu
	polled      polledIO // zero while a goroutine reads the connection; set under mu
	*exchange            // nil while the connection is idle; used only by the loop

	mu          sync.Mutex
	usage       requestUsage // its part of the server's outstanding requests
	out         pieces       // outbox: frames that the writer has not taken yet
	writing     int          // bytes that the writer or the loop has taken and not yet written
	closeReason error        // why the connection ended, for the log; nil if the client closed it

	unanswered int32 // requests taken from the inbox and not yet answered
	output     outputState
	readDone   bool // the reader has ended: no more input arrives

	// Used only by the loop.
	phase    connPhase
	runnable bool  // on the loop's list for the next round
	nextSize uint8 // see sizeClass; 0 if not determined

	limited     bool  // accepted by a listener: subject to MaxClientConns and MaxConns
	onReadyList bool  // in srv.ready; guarded by srv.mu
	liveIndex   int32 // its index in srv.live; guarded by srv.mu
}

// outputState is the state of a connection's output. Guarded by the connection's mu. A
// connection moves between outputOpen and outputBlocked; otherwise the state only increases.
type outputState uint8

const (
	outputOpen    outputState = iota
	outputBlocked             // the loop applies no requests until the writer has caught up
	outputClosing             // the connection is closed once the outbox is written
	outputAborted             // the connection is closed and its outbox dropped
)

// connPhase is the phase of a connection in the loop. A connection moves between
// connServing and connContinuing; otherwise the phase only increases.
type connPhase uint8

const (
	connNew          connPhase = iota // the connect request was not applied yet
	connServing                       // the next frame is a request
	connContinuing                    // the last request continues in the next turn
	connClosing                       // the tree closes the connection after the output in both batches
	connDisconnected                  // the tree knows of the disconnection
)

// blockingIO is the state of a connection that has its own goroutines.
type blockingIO struct {
	nc         net.Conn
	raw        net.Conn  // below TLS: closing it never blocks
	subject    string    // of the client's certificate; set before the first request is read
	sock       *socket   // used only by the loop, from the first request on; nil if only the writer can write
	notFull    sync.Cond // the reader waits for this while the inbox is full
	notEmpty   sync.Cond // the writer waits for this while the outbox is empty
	halfOpen   halfOpen
	reads      int           // used only by the reader, see Read
	turnBegan  time.Time     // likewise
	yields     chan struct{} // the server's
	clientCert *clientCert   // guarded by the connection's mu; nil unless TLSFiles.CutClients is set

	// Guarded by the connection's mu.
	slotAborted chan struct{} // closed by abort; nil except while the reader may wait for a slot
	in          inbox
	writerDone  chan struct{} // closed when the writer has ended; nil before it starts
	fourLetter  bool          // the client sent a four-letter word, which the reader answers itself
}

// exchange holds a connection's requests and answers, from the moment that the loop takes
// the requests until the answers have left. Connections reuse exchanges, so that there are
// only as many as there are busy connections.
type exchange struct {
	requeueOnDelivery bool          // make the connection runnable when output of it has left
	work              inbox         // the frames from next on are not applied yet
	next              int           // index into work.frames
	lastSize          int           // bytes of the last request, which may continue
	filling           output        // in the batch being filled
	inFlight          output        // in the batch in flight
	notBefore         time.Duration // the next request waits until then, see delayAuth
	buffer            []byte        // for the next answer, see awaitBuffer
	awaitsBuffer      bool          // the next request waits for the buffer
}

// beginExchange ensures that c has an exchange.
func (s *Server) beginExchange(c *conn) {
	if c.exchange != nil {
		return
	}
	if c.exchange, _ = s.exchanges.Get().(*exchange); c.exchange == nil {
		c.exchange = new(exchange)
	}
}

// endExchange takes the exchange back if it is empty and no request continues.
func (s *Server) endExchange(c *conn) {
	if c.exchange == nil || c.inBatch() || c.next < len(c.work.frames) || c.phase == connContinuing {
		return
	}
	t := c.exchange
	c.exchange = nil
	t.work.reset()
	t.next, t.notBefore, t.buffer = 0, 0, nil
	t.filling.reset()
	t.inFlight.reset()
	s.exchanges.Put(t)
}

// inbox is a sequence of frames in one buffer. A request costs no allocation once the
// buffers have grown.
type inbox struct {
	buf    []byte
	frames []arrival
}

// arrival is one frame of an inbox: where it ends, and when the server read it.
type arrival struct {
	end int
	at  time.Duration
}

// keepBuffer is the size of the largest buffer that is kept for the next use. One large
// frame must not occupy memory for the life of a connection.
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

func newConn(s *Server, id tree.ConnID, nc net.Conn, from peer, limited bool) *conn {
	c := &conn{srv: s, id: id, peer: from, acceptedAt: s.elapsed(), limited: limited, counts: newConnCounts()}
	c.calmSince = c.acceptedAt
	c.blockingIO = &blockingIO{nc: nc, raw: rawConn(nc), yields: s.yields}
	c.notFull.L, c.notEmpty.L = &c.mu, &c.mu
	return c
}

// abort closes the connection at once and drops unwritten output. The first reason is kept.
// Any goroutine may call it, more than once.
func (c *conn) abort(reason error) {
	c.mu.Lock()
	before := c.output
	if before == outputAborted {
		c.mu.Unlock()
		return
	}
	c.output = outputAborted
	if c.closeReason == nil {
		c.closeReason = reason
	}
	c.out = pieces{}
	// Nothing more is written. Let the loop continue if it waits for the writer.
	resume := before != outputOpen || c.polled.active
	var raw net.Conn
	if p := &c.polled; !p.active {
		raw = c.raw
		if c.slotAborted != nil {
			close(c.slotAborted)
		}
		c.notFull.Broadcast()
		c.notEmpty.Broadcast()
	} else if p.fd >= 0 {
		cutSocket(int(p.fd)) // the loop closes the descriptor
	}
	c.mu.Unlock()
	c.srv.requestLimit.wake()
	if raw != nil {
		raw.Close()
	}
	if resume {
		c.srv.markReady(c)
	}
}

// The loop's side of a connection. Everything below runs on the loop's goroutine.

// takeInput exchanges the inbox for the work list, which is empty.
func (c *conn) takeInput() {
	c.work.reset()
	c.next = 0
	c.mu.Lock()
	c.work, c.in = c.in, c.work
	c.unanswered += int32(len(c.work.frames))
	c.notFull.Signal()
	c.mu.Unlock()
}

// deliver passes the output in flight to the writer, or with later to flushWritable, and lets
// the reader read as many requests as were answered.
func (c *conn) deliver(later bool) {
	o := &c.inFlight
	sent := o.frames.len() > 0
	if sent && later {
		c.postpone(o.frames)
	} else if sent || o.end {
		c.send(o.frames, o.end)
	}
	if sent {
		c.srv.noteSlowReader(c, c.kept())
	}
	if o.answered > 0 {
		c.mu.Lock()
		requests, bytes := c.usage.take(o.answered, o.answeredBytes)
		c.unanswered -= int32(o.answered)
		if c.blockingIO != nil {
			c.notFull.Signal()
		}
		c.mu.Unlock()
		c.srv.requestLimit.sub(requests, bytes)
	}
	o.reset()
}

// outputFull reports whether so much output of c waits for a sync that no more of its
// requests are applied.
func (c *conn) outputFull() bool {
	return c.exchange != nil && c.filling.frames.len()+c.inFlight.frames.len() >= maxPending
}

// waitsForDelivery reports whether c waits for its answers to leave. If all answers have
// left, it does not wait: nothing would make it runnable again.
func (c *conn) waitsForDelivery() bool {
	return c.inBatch() && (c.outputFull() || c.polled.throttled)
}

// inBatch reports whether a batch has output for c.
func (c *conn) inBatch() bool {
	return c.exchange != nil && (c.filling.listed || c.inFlight.listed)
}

// inputState reports whether c has input to apply now, and whether c has come to its end.
// If neither, another goroutine calls markReady later: the reader when input arrives, or
// the writer when a slow client has caught up.
func (c *conn) inputState() (more, end bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p := &c.polled; p.active && (c.output == outputAborted || c.phase >= connClosing) {
		// Input after the close is ignored. Reading it to its end, beyond any limit, would
		// only keep the connection.
		p.readable, c.readDone = false, true
	}
	left := c.hasInputLocked()
	if !left || c.phase >= connClosing {
		return false, c.readDone
	}
	if c.output <= outputBlocked {
		c.output = outputOpen
		if c.out.len()+c.writing >= maxPending {
			c.output = outputBlocked
		}
	}
	return c.output != outputBlocked && !c.inputDelayed(), false
}

// hasInput reports whether c has requests that are not applied yet.
func (c *conn) hasInput() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.hasInputLocked()
}

// hasInputLocked is hasInput for a caller that holds c.mu.
func (c *conn) hasInputLocked() bool {
	if c.phase == connContinuing || c.exchange != nil && c.next < len(c.work.frames) || c.blockingIO != nil && len(c.in.frames) > 0 {
		return true
	}
	p := &c.polled
	return p.active && (p.readable || c.srv.hasWholeFrame(p.partial))
}

// mustWait reports whether the loop must not apply more input of c yet: c waits for its
// writer or for a buffer, or its address guesses passwords. Only the loop calls it.
func (c *conn) mustWait() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output == outputBlocked || c.inputDelayed()
}

// inputDelayed reports whether c waits for a buffer, or its address guesses passwords.
func (c *conn) inputDelayed() bool {
	return c.authDelayed(c.srv.elapsed()) || c.exchange != nil && c.awaitsBuffer
}

// connect applies the first frame of a connection, which has no header.
func (s *Server) connect(c *conn, frame []byte, now tree.Now) {
	c.phase = connServing
	var req wire.ConnectRequest
	r := jute.NewReader(frame)
	req.Decode(r)
	// As in Java, bytes after the record are ignored.
	if err := r.Err(); err != nil {
		c.phase, c.filling.end = connClosing, true
		c.fail(fmt.Errorf("zkserver: bad connect request: %w", err))
		return
	}
	peer := tree.Peer{Addr: c.peer.addr(), Share: shareKey(c.limitAddr())}
	if c.blockingIO != nil {
		peer.X509 = c.subject
	}
	s.loop.tree.Connect(c.id, peer, &req, now, &s.loop.out)
}

// fail records why a connection ends, for the log. The first reason is kept.
func (c *conn) fail(reason error) {
	c.mu.Lock()
	if c.closeReason == nil {
		c.closeReason = reason
	}
	c.mu.Unlock()
}
