package zk

import (
	"bufio"
	"context"
	"time"

	"github.com/zklock/zklock/internal/boottime"
	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// Sizes of what a client keeps, in bytes.
const (
	readBuffer   = 8 << 10
	maxKeptFrame = 64 << 10
	maxKeptWrite = 256 << 10
	smallRoom    = 4 << 10
)

// unlock ends a step of the core: it arranges what the core now wants, releases
// the mutex, and does what must not be done under it. If tell is set, what
// there is to tell gets a goroutine, unless somebody is telling already.
func (c *Client) unlock(now time.Duration, tell bool) {
	// What the core no longer wants is taken out here and closed below: closing
	// may take a moment, and wakes others.
	live := c.core.Live()
	var old *link
	if c.link != nil && c.link.gen != live {
		old, c.link = c.link, nil
	}
	var stopDial context.CancelFunc
	if c.dialGen != live {
		stopDial, c.stopDial = c.stopDial, nil
	}
	if c.link != nil && c.core.HasOutput() || c.core.Ended() {
		c.writable.Signal()
	}
	if !c.wasReady || c.core.Ended() {
		c.changed.Broadcast() // Dial or Close waits
	}
	c.arm(now)
	spawn := tell && c.core.HasNotices() && !c.delivering
	c.mu.Unlock()
	if old != nil {
		old.close()
	}
	if stopDial != nil {
		stopDial()
	}
	if spawn {
		go c.deliver() // ends when nothing is left to tell
	}
}

// arm sets the timer for the core's next moment. A timer that is early is left
// alone: it finds nothing to do and is set again, which is cheaper than moving
// it with every request.
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

// tick runs when the timer fires, on a goroutine of its own.
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

// probe asks one server whether it is a better one.
func (c *Client) probe(p session.Probe) {
	rw := c.askReadWrite(c.ctx, p.Server, p.Deadline)
	now := boottime.Now()
	c.mu.Lock()
	c.core.Probed(p.Gen, rw, now)
	c.running--
	c.changed.Broadcast()
	c.unlock(now, true)
}

// run makes connections and reads from them, one after the other. It is the
// client's reader goroutine, and ends when the core has ended.
func (c *Client) run() {
	for {
		d, ctx, ok := c.awaitDial()
		if !ok {
			break
		}
		l, err := c.connect(ctx, d.Server, d.Deadline)
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

// awaitDial waits until the core wants a connection; false if it never will.
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

// dialed tells the core what came of a dial and reports whether the connection
// is wanted.
func (c *Client) dialed(d session.Dial, l *link, err error) bool {
	now := boottime.Now()
	c.mu.Lock()
	stop := c.stopDial
	c.stopDial = nil
	// While dialling, the deadline may have passed or the client been closed.
	wanted := err == nil && c.core.Live() == d.Gen
	switch {
	case err != nil:
		c.core.Lost(d.Gen, err, now)
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

// read puts in what arrives on a connection until it ends.
func (c *Client) read(l *link) {
	br := bufio.NewReaderSize(l.conn, readBuffer)
	if err := greet(br); err != nil {
		c.lost(l, err)
		return
	}
	var frame []byte
	var room keeper
	var now time.Duration
	for {
		// Frames that came with one read share its time.
		whole := now != 0 && buffered(br)
		var err error
		frame, err = wire.ReadFrame(br, frame, c.opts.MaxReply)
		if err != nil {
			c.lost(l, err)
			return
		}
		if !whole {
			now = boottime.Now()
		}
		// Frames behind this one are put in before anything is told: one wake-up
		// then serves them all.
		more := buffered(br)
		c.mu.Lock()
		c.core.Frame(l.gen, frame, now)
		alive := c.core.Live() == l.gen
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
		if !room.keep(cap(frame), len(frame), smallRoom, maxKeptFrame) {
			frame = nil
		}
	}
}

// lost tells the core that a connection has ended, for the reason that came
// first.
func (c *Client) lost(l *link, err error) {
	now := boottime.Now()
	c.mu.Lock()
	// An alert says why writing failed, and is read after that.
	if l.writeErr != nil && !permanent(err) {
		err = l.writeErr
	}
	c.core.Lost(l.gen, err, now)
	c.unlock(now, false)
	l.close()
	c.deliver()
}

// afterWriteError is how long answers are still read from a connection that
// can't be written any more.
const afterWriteError = time.Second

// write writes what the core has to say, in one Write for all there is. It is
// the client's writer goroutine, and ends when the core has ended.
func (c *Client) write() {
	var buf []byte
	var room keeper
	c.mu.Lock()
	for {
		for !c.core.Ended() && (c.link == nil || c.link.writeErr != nil || !c.core.HasOutput()) {
			c.writable.Wait()
		}
		if c.core.Ended() {
			break
		}
		// Everything that was queued since the last write goes out in this one.
		l := c.link
		now := boottime.Now() // before anything is encoded: Sent must not be late
		buf = c.core.TakeOutput(buf, now)
		c.arm(now)
		c.mu.Unlock()
		_, err := l.conn.Write(buf)
		if !room.keep(cap(buf), len(buf), smallRoom, maxKeptWrite) {
			buf = nil
		}
		if err != nil {
			// The reader finds out in time, and first reads what is there.
			_ = l.conn.SetReadDeadline(time.Now().Add(afterWriteError))
		}
		c.mu.Lock()
		if err != nil {
			l.writeErr = err
		}
	}
	c.running--
	c.changed.Broadcast()
	c.mu.Unlock()
}
