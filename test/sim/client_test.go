package sim

import (
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// client is a process with a session core and a lock core. Works replace the goroutines of
// packages zk and zklock.
type client struct {
	world   *World
	machine *machine
	name    string
	alive   bool
	closing bool
	clock   clock
	now     time.Duration // the time of the current work, by clock
	stale   bool          // now was read before a pause

	sess  *session.Core
	core  *queue.Core
	epoch uint64
	conn  *conn

	paused     bool
	pauseEnd   time.Duration
	pausedAt   time.Duration // when the pause began, in true time
	backlog    []work
	catchingUp bool // a work of the backlog is running

	sessAlarm, coreAlarm        timer
	suspendedAt, suspendedUntil time.Duration // the start of the last suspend, and its planned end
	delivering, writing         bool          // scheduled
	reads                       int
	sessionID                   int64 // of the last handshake
	session                     int64 // known to the lock core
	password                    []byte

	actors    []*actor
	holds     []*hold
	releasing map[queue.ID]*hold // released holds, until their znodes are gone
	inRelease bool               // a release is running: a grant now is a handover
	calls     uint64
	verifies  []verify
}

// workKind is the goroutine that does a work. Each goroutine does its works in order.
type workKind int

const (
	startWork workKind = iota
	netWork
	sessTimer
	coreTimer
	writerWork
	deliveryWork
	flushWork
	actorWork // actorWork + n for actor n
)

// work is a step of a goroutine that no other step interrupts.
type work struct {
	kind  workKind
	do    func()
	stale time.Duration // the time if the clock was read before the pause; else 0
}

func newClient(m *machine, name string) *client {
	w := m.world
	c := &client{world: w, machine: m, name: name, alive: true, releasing: map[queue.ID]*hold{}}
	c.clock = clock{born: w.now}
	if d := w.cfg.Drift; d > 0 {
		c.clock.ppm = w.rng.Int64N(2*d+1) - d
		if w.oneIn(3) {
			c.clock.ppm = d - 2*d*w.rng.Int64N(2)
		}
	}
	c.now = c.clock.read(w.now)
	c.sess = session.New(session.Config{Servers: []string{"server"}, Timeout: w.cfg.Timeout, BatchWindow: w.cfg.BatchWindow, Rand: w.rng}, c.now)
	drift := float64(w.cfg.Drift) / million
	c.core = queue.New(queue.Config{
		OwnSession: true,
		GUID:       func() (g [16]byte) { _, _ = source{w.rng}.Read(g[:]); return g },
		Jitter:     w.rng.Float64,
		Drift:      drift,
		Ours:       func(data []byte) bool { return len(data) > 0 && data[0] == '{' },
		Persistent: w.cfg.Persistent,
		Inherit:    func() bool { return w.cfg.Inherits },
		Sync:       w.cfg.Syncs,
		Tick:       serverTick,
	})
	return c
}

func (c *client) note(format string, args ...any) {
	c.world.note("%s: "+format, append([]any{c.name}, args...)...)
}

func (c *client) connected() bool { return c.sess.State() == session.Connected }

// clockNow returns the time of the process's clock.
func (c *client) clockNow() time.Duration {
	if c.paused && c.world.cfg.StoppedClock {
		return c.clock.read(c.pausedAt)
	}
	return c.clock.read(c.world.now)
}

// run does a work, or adds it to the backlog if the process is stopped.
func (c *client) run(kind workKind, do func()) {
	switch {
	case !c.alive:
	case c.paused || c.catchingUp || len(c.backlog) > 0:
		c.backlog = append(c.backlog, work{kind: kind, do: do})
	default:
		c.exec(work{do: do})
	}
}

// exec does a work, and then what the cores request. The time of a stale work is from
// before the pause.
func (c *client) exec(k work) {
	c.now = c.clock.read(c.world.now)
	if c.stale = k.stale != 0; c.stale {
		c.now = k.stale
	}
	k.do()
	c.pump()
}

// pause stops the process for d. Sometimes a goroutine has just read the clock, and uses
// that time after the pause.
func (c *client) pause(d time.Duration) {
	w := c.world
	end := w.now + d
	c.pauseEnd = max(c.pauseEnd, end)
	if !c.paused {
		c.paused, c.pausedAt = true, w.now
		if len(c.backlog) == 0 && w.oneIn(2) {
			c.backlog = append(c.backlog, work{kind: coreTimer, do: c.tick, stale: c.clock.read(w.now)})
		}
	}
	w.agenda.add(end, func() {
		if c.alive && c.paused && w.now >= c.pauseEnd {
			c.resume()
		}
	})
}

func (c *client) resume() {
	w := c.world
	c.paused = false
	w.disturb()
	if w.cfg.StoppedClock {
		c.clock.lost += w.now - c.pausedAt
	}
	c.note("continues")
	c.correctTimers()
	c.catchUp()
}

// catchUp does the works of the backlog in an order that is possible for goroutines.
func (c *client) catchUp() {
	if !c.alive || c.paused || len(c.backlog) == 0 {
		return
	}
	// A goroutine that has read the clock also has the mutex, so it runs first. Otherwise
	// any goroutine may run, but each does its works in order.
	at := 0
	if c.backlog[0].stale == 0 {
		kind := c.backlog[c.world.rng.IntN(len(c.backlog))].kind
		for c.backlog[at].kind != kind {
			at++
		}
	}
	k := c.backlog[at]
	c.backlog = append(c.backlog[:at:at], c.backlog[at+1:]...)
	c.catchingUp = true // new works wait for the backlog
	c.exec(k)
	c.catchingUp = false
	if len(c.backlog) > 0 {
		c.world.after(c.world.upTo(500*time.Microsecond), c.catchUp)
	}
}

// die ends the process and its holds.
func (c *client) die() {
	c.alive = false
	for _, h := range c.holds {
		h.open = false
	}
	c.holds = nil
	c.note("ends")
}

// pump does what the cores request.
func (c *client) pump() {
	for c.alive && !c.paused {
		c.dropConn()
		if d, ok := c.sess.WantDial(c.now); ok {
			c.dial(d)
		}
		if !c.sess.HasNotices() || c.delivering {
			break
		}
		// The goroutine that delivers notices may be late. Then the lock core does not know
		// the newest state of the session.
		if c.world.oneIn(16) {
			c.delivering = true
			c.world.after(c.world.upTo(2*time.Millisecond), func() {
				c.run(deliveryWork, func() { c.delivering = false; c.deliver() })
			})
			break
		}
		c.deliver()
	}
	if !c.alive || c.paused {
		return // the next work does the rest
	}
	c.flush()
	c.dropConn()
	c.arm()
}

// dropConn closes a connection that the session has given up.
func (c *client) dropConn() {
	if k := c.conn; k != nil && k.gen != c.sess.Live() {
		c.conn = nil
		k.close()
	}
}

// dial opens a connection. The session gives up a dial that takes too long.
func (c *client) dial(d session.Dial) {
	k := &conn{machine: c.machine, client: c, gen: d.Gen}
	c.conn = k
	c.machine.takeDetour(k)
	c.connect(k, time.Second)
}

// connect asks the server's machine for a connection. If the machine is down, connect
// tries again after retry, like TCP.
func (c *client) connect(k *conn, retry time.Duration) {
	w := c.world
	w.transit(k, up, func() {
		switch {
		case k.closed:
		case c.machine.link.refused > w.now:
			k.hangUp(errRefused)
		case w.server.accept(k):
			w.transit(k, down, func() {
				c.run(netWork, func() {
					if !k.closed {
						c.sess.Dialed(k.gen, c.now)
					}
				})
			})
		case w.server.dark:
			w.after(retry, func() { c.connect(k, 2*retry) })
		default:
			k.hangUp(errRefused)
		}
	})
}

// read handles the bytes of one read of the connection, and then its end.
func (c *client) read(k *conn) {
	k.reading = false
	if k.closed || c.conn != k {
		return
	}
	c.reads++
	n := len(k.rx)
	if n > 0 && c.world.oneIn(16) {
		n = 1 + c.world.rng.IntN(n)
	}
	frame, rest := cutFrame(k.rx[:n])
	read := frame != nil
	for frame != nil && c.sess.Live() == k.gen {
		k.rx = k.rx[len(frame):]
		c.learnPassword(k, frame[4:])
		c.sess.Frame(k.gen, frame[4:], c.now)
		frame, rest = cutFrame(rest)
	}
	if read {
		c.sess.Mark(drained{})
		c.deliver()
	}
	more, _ := cutFrame(k.rx)
	switch {
	case k.closed || !c.alive:
	case c.paused:
		k.planRead()
	case more != nil:
		c.world.after(c.world.upTo(time.Millisecond), k.planRead)
	case k.ended != nil:
		c.sess.Lost(k.gen, k.ended, c.now)
		c.deliver()
	}
}

// drained marks the end of the notices of one read.
type drained struct{}

// learnPassword reads a session's ID and password from the first answer, for operators.
func (c *client) learnPassword(k *conn, body []byte) {
	if k.passwordKnown {
		return
	}
	k.passwordKnown = true
	var res wire.ConnectResponse
	r := jute.NewReader(body)
	res.Decode(r)
	if r.Finish() == nil && res.SessionID != 0 {
		c.sessionID, c.password = res.SessionID, append([]byte(nil), res.Password...)
	}
}

// flush writes the session's output. Sometimes it writes later, like a slow writer
// goroutine.
func (c *client) flush() {
	if c.writing || c.conn == nil || !c.sess.HasOutput() {
		return
	}
	if c.world.oneIn(16) {
		c.writing = true
		c.world.after(c.world.upTo(2*time.Millisecond), func() {
			c.run(writerWork, func() { c.writing = false })
		})
		return
	}
	for c.sess.HasOutput() {
		before := c.sess.BatchedCalls()
		c.conn.write(c.sess.TakeOutput(nil, c.now))
		c.world.Stats.Batched += int(c.sess.BatchedCalls() - before)
	}
}

// arm sets the timers of both cores.
func (c *client) arm() {
	if at, ok := c.sess.NextTimer(); ok {
		c.world.alarm(&c.sessAlarm, c.clock.when(at), func() {
			c.run(sessTimer, func() { c.sess.Tick(c.now) })
		})
	}
	if at, ok := c.core.Next(); ok {
		c.world.alarm(&c.coreAlarm, c.clock.when(at), func() { c.run(coreTimer, c.tick) })
	}
}
