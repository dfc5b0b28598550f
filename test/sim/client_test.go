package sim

import (
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// client is one process: a session core and a lock core, and instead of the
// goroutines of zk and zklock the works that those would do.
type client struct {
	world   *World
	machine *machine
	name    string
	alive   bool
	closing bool
	clock   clock
	now     time.Duration // of the work under way, by clock
	stale   bool          // now was read before a pause

	sess  *session.Core
	core  *queue.Core
	epoch uint64
	conn  *conn

	paused   bool
	pauseEnd time.Duration
	slept    time.Duration // when the pause began, true time
	backlog  []work
	catching bool // a work of the backlog is under way

	sessAlarm, coreAlarm timer
	asleep, wakes        time.Duration // when its machine was last suspended, and until when it was to be
	telling, writing     bool          // planned for later
	reads                int
	sessionID            int64 // as the last handshake said
	session              int64 // as the lock core was told
	password             []byte

	actors   []*actor
	holds    []*hold
	parting  map[queue.ID]*hold // those given back, until all of them is gone
	giving   bool               // a hold is being given back: what is granted now was handed on
	calls    uint64
	verifies []verify
}

// workKind is which goroutine does a work. Those of one kind are done in order.
type workKind int

const (
	startWork workKind = iota
	netWork
	sessTimer
	coreTimer
	writerWork
	tellerWork
	flushWork
	actorWork // and above: one for each actor
)

// work is one thing that a goroutine does without being interrupted.
type work struct {
	kind  workKind
	do    func()
	stale time.Duration // the clock was read before the pause; 0: not
}

func newClient(m *machine, name string) *client {
	w := m.world
	c := &client{world: w, machine: m, name: name, alive: true, parting: map[queue.ID]*hold{}}
	c.clock = clock{born: w.now}
	if d := w.cfg.Drift; d > 0 {
		c.clock.ppm = w.rng.Int64N(2*d+1) - d
		if w.oneIn(3) {
			c.clock.ppm = d - 2*d*w.rng.Int64N(2)
		}
	}
	c.now = c.clock.read(w.now)
	c.sess = session.New(session.Config{Servers: []string{"server"}, Timeout: w.cfg.Timeout, BatchWindow: w.cfg.JoinWindow, Rand: w.rng}, c.now)
	drift := float64(w.cfg.Drift) / million
	c.core = queue.New(queue.Config{
		OwnSession: true,
		GUID:       func() (g [16]byte) { _, _ = source{w.rng}.Read(g[:]); return g },
		Jitter:     w.rng.Float64,
		Drift:      drift,
		Ours:       func(data []byte) bool { return len(data) > 0 && data[0] == '{' },
		Persistent: w.cfg.Persistent,
		Inherit:    w.cfg.Inherits,
		Sync:       w.cfg.Syncs,
		Tick:       serverTick,
	})
	return c
}

func (c *client) note(format string, args ...any) {
	c.world.note("%s: "+format, append([]any{c.name}, args...)...)
}

func (c *client) connected() bool { return c.sess.State() == session.Connected }

// clockNow is what the process's clock shows now.
func (c *client) clockNow() time.Duration {
	if c.paused && c.world.cfg.StandingClock {
		return c.clock.read(c.slept)
	}
	return c.clock.read(c.world.now)
}

// run does a work, or leaves it for later if the process is stopped.
func (c *client) run(kind workKind, do func()) {
	switch {
	case !c.alive:
	case c.paused || c.catching || len(c.backlog) > 0:
		c.backlog = append(c.backlog, work{kind: kind, do: do})
	default:
		c.exec(work{do: do})
	}
}

// exec does a work, with the clock as it is now, or was when the goroutine read
// it, and then what the cores want done.
func (c *client) exec(k work) {
	c.now = c.clock.read(c.world.now)
	if c.stale = k.stale != 0; c.stale {
		c.now = k.stale
	}
	k.do()
	c.pump()
}

// pause stops the process for a while. At times a goroutine has just read the
// clock: that is what it goes on with.
func (c *client) pause(d time.Duration) {
	w := c.world
	end := w.now + d
	c.pauseEnd = max(c.pauseEnd, end)
	if !c.paused {
		c.paused, c.slept = true, w.now
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

// resume lets the process go on.
func (c *client) resume() {
	w := c.world
	c.paused = false
	w.disturb()
	if w.cfg.StandingClock {
		c.clock.lost += w.now - c.slept
	}
	c.note("goes on")
	c.woken()
	c.catchUp()
}

// catchUp does what has come together while the process was stopped, in an
// order in which the goroutines might.
func (c *client) catchUp() {
	if !c.alive || c.paused || len(c.backlog) == 0 {
		return
	}
	// A goroutine that was stopped with the clock read, and the mutex held, goes
	// first. Of the others any may; but each does its own works in order.
	at := 0
	if c.backlog[0].stale == 0 {
		kind := c.backlog[c.world.rng.IntN(len(c.backlog))].kind
		for c.backlog[at].kind != kind {
			at++
		}
	}
	k := c.backlog[at]
	c.backlog = append(c.backlog[:at:at], c.backlog[at+1:]...)
	c.catching = true // nothing overtakes what is in the backlog
	c.exec(k)
	c.catching = false
	if len(c.backlog) > 0 {
		c.world.after(c.world.upTo(500*time.Microsecond), c.catchUp)
	}
}

// die ends the process. A dead process holds nothing.
func (c *client) die() {
	c.alive = false
	for _, h := range c.holds {
		h.open = false
	}
	c.holds = nil
	c.note("ends")
}

// pump does what the cores now want.
func (c *client) pump() {
	for c.alive && !c.paused {
		c.dropConn()
		if d, ok := c.sess.WantDial(c.now); ok {
			c.dial(d)
		}
		if !c.sess.HasNotices() || c.telling {
			break
		}
		// The goroutine that delivers may be slow to come. Then the session is
		// further than the lock core knows.
		if c.world.oneIn(16) {
			c.telling = true
			c.world.after(c.world.upTo(2*time.Millisecond), func() {
				c.run(tellerWork, func() { c.telling = false; c.tell() })
			})
			break
		}
		c.tell()
	}
	if !c.alive || c.paused {
		return // the rest is done with the next work
	}
	c.flush()
	c.dropConn()
	c.arm()
}

// dropConn closes a connection that is not wanted any more.
func (c *client) dropConn() {
	if k := c.conn; k != nil && k.gen != c.sess.Live() {
		c.conn = nil
		k.close()
	}
}

// dial makes a connection. The session gives it up when it takes too long.
func (c *client) dial(d session.Dial) {
	k := &conn{machine: c.machine, client: c, gen: d.Gen}
	c.conn = k
	c.machine.takeDetour(k)
	c.knock(k, time.Second)
}

// knock asks the server's machine for a connection. One that is down says
// nothing, and is asked again, as TCP does.
func (c *client) knock(k *conn, again time.Duration) {
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
			w.after(again, func() { c.knock(k, 2*again) })
		default:
			k.hangUp(errRefused)
		}
	})
}

// read takes what one read of the connection brings, and then what ended it.
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
		c.learn(k, frame[4:])
		c.sess.Frame(k.gen, frame[4:], c.now)
		frame, rest = cutFrame(rest)
	}
	if read {
		c.sess.Mark(drained{})
		c.tell()
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
		c.tell()
	}
}

// drained marks the end of what one read brought.
type drained struct{}

// learn reads a session's password off the first answer, for operators.
func (c *client) learn(k *conn, body []byte) {
	if k.learnt {
		return
	}
	k.learnt = true
	var res wire.ConnectResponse
	r := jute.NewReader(body)
	res.Decode(r)
	if r.Finish() == nil && res.SessionID != 0 {
		c.sessionID, c.password = res.SessionID, append([]byte(nil), res.Password...)
	}
}

// flush writes what there is to write, at times later, as the writer goroutine
// might.
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
		c.world.Stats.Joined += int(c.sess.BatchedCalls() - before)
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
