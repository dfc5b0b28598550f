package zkserver

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"runtime"
	"time"
)

// A client can make a TLS handshake compute before it has proved anything. Therefore only
// a few handshakes compute at a time, and the others wait for their turn: the loop and the
// connections with sessions need the processors. A handshake computes whenever it does not
// read or write.

// computeSlots returns how many handshakes compute at a time. As many four-letter words
// compute, and as many busy connections yield, with slots of their own.
func computeSlots() int { return max(1, runtime.GOMAXPROCS(0)/2) }

// maxHandshakeBytes is how many bytes a client may send before the end of its handshake:
// its hello, its certificates, and proofs.
const maxHandshakeBytes = maxClientCertBytes + 16<<10

// errLongHandshake ends a handshake in which the client sent too much.
var errLongHandshake = fmt.Errorf("%w: the client sent more than %d bytes", errTLS, maxHandshakeBytes)

// handshakeContext connects a handshake to the server and the connection that it belongs
// to: a configuration or a listener is created without a server, and several servers may
// use it.
type handshakeContext struct {
	log    *slog.Logger
	counts *counters
	// reloader, unless nil, is set to the reloader of the handshake. recheck is called when
	// the files have changed.
	reloader **tlsReloader
	recheck  func(*tlsReloader)

	slots    chan struct{}   // has an element for each handshake that computes; nil without a Server
	aborted  <-chan struct{} // closed when the connection ends
	deadline time.Time       // of the handshake
}

// handshakeContextKey is the key of the handshakeContext in the context of a handshake.
type handshakeContextKey struct{}

// handshakeContextOf returns the server's context of a handshake, or a default one if the
// handshake belongs to no Server.
func handshakeContextOf(ctx context.Context) handshakeContext {
	if w, ok := ctx.Value(handshakeContextKey{}).(handshakeContext); ok {
		return w
	}
	return handshakeContext{log: slog.Default(), counts: &counters{}}
}

// beginHandshake returns the context of the connection's handshake. It fails if the
// connection has ended.
func (c *conn) beginHandshake(files **tlsReloader) (context.Context, error) {
	s, aborted := c.srv, c.watchAbort()
	if aborted == nil {
		return nil, net.ErrClosed
	}
	// The context carries a value and never ends. The deadline is enough, and a context
	// that can end would cost a goroutine.
	return context.WithValue(context.Background(), handshakeContextKey{}, handshakeContext{
		log: s.log, counts: &s.count, reloader: files, recheck: s.recheck,
		slots: s.handshakes, aborted: aborted, deadline: time.Now().Add(s.opts.HandshakeTimeout),
	}), nil
}

// endHandshake forgets what only the handshake needed.
func (c *conn) endHandshake() {
	c.mu.Lock()
	c.slotAborted = nil
	c.mu.Unlock()
}

// watchAbort returns a channel that is closed when the connection ends, or nil if it has
// ended.
func (c *conn) watchAbort() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.output == outputAborted {
		return nil
	}
	c.slotAborted = make(chan struct{})
	return c.slotAborted
}

// handshakeConn is the connection below a TLS connection. Its Read first returns prefix.
// Until over is set, it belongs to the handshake: it bounds what is read, and takes a slot
// of the server except while it reads or writes.
type handshakeConn struct {
	net.Conn
	prefix []byte
	over   bool
	left   int // how many more bytes the handshake may read
	in     handshakeContext
	slot   bool // the handshake has a slot
}

// Read implements net.Conn.
func (c *handshakeConn) Read(b []byte) (int, error) {
	if len(c.prefix) > 0 {
		n := copy(b, c.prefix)
		c.prefix = c.prefix[n:]
		return n, nil
	}
	if c.over {
		return c.Conn.Read(b)
	}
	if c.left == 0 {
		return 0, errLongHandshake
	}
	c.pause()
	n, err := c.Conn.Read(b[:min(len(b), c.left)])
	c.left -= n
	if err == nil {
		err = c.resume()
	}
	return n, err
}

// Write implements net.Conn.
func (c *handshakeConn) Write(b []byte) (int, error) {
	if c.over {
		return c.Conn.Write(b)
	}
	c.pause()
	n, err := c.Conn.Write(b)
	if err == nil {
		err = c.resume()
	}
	return n, err
}

// finish ends the handshake.
func (c *handshakeConn) finish() {
	c.pause()
	c.over, c.in = true, handshakeContext{}
}

// pause gives the slot back.
func (c *handshakeConn) pause() {
	if c.slot {
		c.slot = false
		<-c.in.slots
	}
}

// resume waits for a slot. It fails if the connection has ended or it is too late.
func (c *handshakeConn) resume() error {
	if c.in.slots == nil {
		return nil
	}
	select {
	case c.in.slots <- struct{}{}:
		c.slot = true
		// With one processor, handshakes that take turns would not let others run.
		runtime.Gosched()
	case <-c.in.aborted:
		return net.ErrClosed
	}
	switch {
	case isClosed(c.in.aborted):
		return net.ErrClosed
	case time.Now().After(c.in.deadline):
		return os.ErrDeadlineExceeded
	}
	return nil
}
