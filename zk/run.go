package zk

import (
	"bufio"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/boottime"
	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// Sizes of the buffers that a client keeps, in bytes.
const (
	readBufferSize = 8 << 10
	maxKeptFrame   = 64 << 10
	maxKeptWrite   = 256 << 10
	minKept        = 4 << 10
)

// unlock ends a step of the core. It arranges what the core now wants, releases the
// mutex, and then does what must not be done under the mutex. If deliverNotices is set and
// notices are pending, it starts a goroutine that delivers them, unless one is
// delivering already.
func (c *Client) unlock(now time.Duration, deliverNotices bool) {
	// The link that the core no longer wants is taken here and closed below, because
	// closing may block and wakes up other goroutines.
	live := c.core.Live()
	var old *link
	if c.link != nil && c.link.gen != live {
		old, c.link = c.link, nil
	}
	var stopDial context.CancelFunc
	if c.dialGen != live {
		stopDial, c.stopDial = c.stopDial, nil
	}
	if c.writerMayWrite() || c.core.Ended() {
		c.writable.Signal()
	}
	if !c.dialReturned || c.core.Ended() {
		c.changed.Broadcast() // Dial or Close waits
	}
	c.arm(now)
	spawn := deliverNotices && c.core.HasNotices() && !c.delivering
	ended := c.core.Ended()
	c.mu.Unlock()
	switch {
	case old == nil:
	case ended: // the server may still get the request to close the session
		old.close()
	default:
		old.discard()
	}
	if stopDial != nil {
		stopDial()
	}
	if spawn {
		go c.deliver() // ends when nothing is left to deliverNotices
	}
}

// arm sets the timer for the core's next deadline. A timer that fires too early is
// not moved: it finds nothing to do and is set again. That is cheaper than moving it
// with every request.
func (c *Client) arm(now time.Duration) {
	if c.core.Ended() || c.core.DialDue(now) {
		c.wake.Broadcast()
		return
	}
	at, ok := c.core.NextTimer()
	if !ok || c.armed && c.timerAt <= at {
		return
	}
	c.armed, c.timerAt = true, at
	c.timer.Reset(max(at-now, 0))
}

// tick runs when the timer fires, in a separate goroutine.
func (c *Client) tick() {
	now := boottime.Now()
	c.mu.Lock()
	c.armed = false
	c.core.Tick(now)
	if p, ok := c.core.WantProbe(now); ok {
		c.running++
		go c.probe(p) // ends at the probe's deadline, or with the client
	}
	c.unlock(now, true)
}

// probe asks one server whether it has a quorum.
func (c *Client) probe(p session.Probe) {
	rw := c.askReadWrite(c.ctx, p.Server, p.Deadline)
	now := boottime.Now()
	c.mu.Lock()
	c.core.Probed(p.Gen, rw, now)
	c.running--
	c.changed.Broadcast()
	c.unlock(now, true)
}

// run makes connections and reads from them, one after the other. It is the client's
// reader goroutine, and ends when the core has ended.
func (c *Client) run() {
	for {
		d, ctx, ok := c.awaitDial()
		if !ok {
			break
		}
		l, err := c.connect(ctx, d)
		if c.dialed(d, l, err) {
			c.read(l)
		}
	}
	c.deliver()
	c.mu.Lock()
	c.running--
	c.changed.Broadcast()
	c.mu.Unlock()
}

// awaitDial waits until the core wants a connection. It returns false if the core has
// ended.
func (c *Client) awaitDial() (session.Dial, context.Context, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		if c.core.Ended() {
			return session.Dial{}, nil, false
		}
		now := boottime.Now()
		if d, ok := c.core.WantDial(now); ok {
			ctx, cancel := context.WithCancel(c.ctx)
			c.dialGen, c.stopDial = d.Gen, cancel
			c.arm(now)
			return d, ctx, true
		}
		c.arm(now)
		c.wake.Wait()
	}
}

// dialed reports the outcome of a dial to the core, and returns whether the
// connection is wanted.
func (c *Client) dialed(d session.Dial, l *link, err error) bool {
	now := boottime.Now()
	c.mu.Lock()
	stop := c.stopDial
	c.stopDial = nil
	// During the dial, the deadline may have passed or the client may have been
	// closed.
	wanted := err == nil && c.core.Live() == d.Gen
	switch {
	case err != nil:
		c.failed(d.Gen, c.atAddress(d.Server, l, err), now)
	case wanted:
		l.gen = d.Gen
		c.link = l
		c.core.Dialed(d.Gen, now)
	}
	c.unlock(now, true)
	if stop != nil {
		stop() // the dial is over; this frees its context
	}
	if err == nil && !wanted {
		l.close()
	}
	return wanted
}

// failed reports to the core that the connection gen could not be made or
// authenticated. c.mu is held.
func (c *Client) failed(gen uint64, err error, now time.Duration) {
	if errors.Is(err, ErrAuthFailed) {
		c.core.Refuse(gen, err)
		return
	}
	c.core.Lost(gen, err, now)
}

// read passes the frames of a connection to the core until the connection ends.
func (c *Client) read(l *link) {
	br := bufio.NewReaderSize(l.conn, readBufferSize)
	if err := checkPeer(br); err != nil {
		c.silent.Add(l.raw.RemoteAddr())
		c.lost(l, err)
		return
	}
	var frame []byte
	var policy bufferPolicy
	var now time.Duration
	for {
		// Frames of one read have the same time.
		whole := now != 0 && buffered(br)
		var err error
		frame, err = wire.ReadFrame(br, frame, c.opts.MaxReply)
		if errors.Is(err, wire.ErrFrameTooLong) {
			if err = c.skip(l, br); err == nil {
				now = 0 // what is in the buffer now was read later
				continue
			}
		}
		if err != nil {
			c.lost(l, err)
			return
		}
		if !whole {
			now = boottime.Now()
		}
		// Further frames are processed before anything is delivered, so one wake-up
		// serves all of them.
		more := buffered(br)
		c.mu.Lock()
		c.core.Frame(l.gen, frame, now)
		c.stepSASL(l)
		alive := c.core.Live() == l.gen
		if !alive && !c.expired(l.server) {
			c.silent.Add(l.raw.RemoteAddr())
		}
		if !more {
			c.core.Mark(drained{})
		}
		c.unlock(now, false)
		if !more || !alive {
			c.deliver()
		}
		if !alive {
			return
		}
		if !policy.keep(cap(frame), len(frame), minKept, maxKeptFrame) {
			frame = nil
		}
	}
}

// expired reports whether the last connection to a server ended because the server answered that
// the session has expired. c.mu is held.
func (c *Client) expired(server string) bool {
	return slices.ContainsFunc(c.core.Failures(), func(f session.Failure) bool {
		return f.Server == server && errors.Is(f.Err, session.ErrSessionExpired)
	})
}

// skip fails the read whose answer is larger than MaxReply, and skips the answer, whatever its
// size. If that takes too long, the core ends the connection, as if the server were silent. The
// read has failed by then, so it is not repeated on the next connection.
func (c *Client) skip(l *link, br *bufio.Reader) error {
	h, err := wire.PeekReply(br)
	if err != nil {
		return err
	}
	now := boottime.Now()
	c.mu.Lock()
	c.core.ReplyTooLarge(l.gen, h, now)
	c.unlock(now, false)
	c.deliver()
	if err := wire.SkipFrame(br); err != nil || buffered(br) {
		return err
	}
	c.mu.Lock()
	c.core.Mark(drained{})
	c.mu.Unlock()
	c.deliver()
	return nil
}

// lost reports to the core that a connection has ended, with the reason that occurred
// first.
func (c *Client) lost(l *link, err error) {
	now := boottime.Now()
	c.mu.Lock()
	if c.core.Live() != l.gen {
		// The client has ended the connection, probably because the server was silent.
		c.silent.Add(l.raw.RemoteAddr())
	}
	// Some errors of reading explain why writing failed, such as a TLS alert.
	if l.writeErr != nil && !permanent(err) && !errors.Is(err, errNoAnswer) {
		err = l.writeErr
	}
	c.core.Lost(l.gen, c.atAddress(l.server, l, err), now)
	c.unlock(now, false)
	l.close()
	c.deliver()
}
