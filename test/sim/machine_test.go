package sim

import (
	"fmt"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// machine is where client processes run, one after the other, and the link
// that they share.
type machine struct {
	world  *World
	n      int
	link   link
	client *client // the last one
	lives  int
	behind []*conn // for which the follower keeps something back
	detour detour

	// The next request of this kind is lost on its way, or its answer is.
	loseOp     wire.OpCode
	loseAnswer bool
	loseWrite  bool // a multi is meant that makes or deletes something

	garbage int // the sort that the next answer begins with; 0: none
	stopIn  int // after how many more news the process is stopped; 0: never

	// isolate is what comes before the next holder is cut off: 1 a grant, 2 a
	// grant and another connection; 0: none is.
	isolate int
}

func newMachine(w *World, n int) *machine {
	return &machine{world: w, n: n, link: link{delay: w.cfg.Delay, spread: w.cfg.Spread}}
}

// start begins a process.
func (m *machine) start() {
	w := m.world
	if m.running() || w.closing {
		return
	}
	m.lives++
	c := newClient(m, fmt.Sprintf("c%d.%d", m.n, m.lives))
	m.client = c
	w.note("%s begins, clock %+d ppm", c.name, c.clock.ppm)
	for range w.cfg.Actors {
		a := &actor{client: c, n: len(c.actors)}
		c.actors = append(c.actors, a)
		a.rest()
	}
	c.run(startWork, func() {})
}

func (m *machine) running() bool { return m.client != nil && m.client.alive }

// kill ends the process. With power, the machine goes down too, and no server or client
// is notified.
func (m *machine) kill(power bool) {
	c := m.client
	c.die()
	if k := c.conn; k != nil {
		c.conn = nil
		if power {
			k.broken[up], k.broken[down], k.closed = true, true, true
		} else {
			k.close()
		}
	}
	m.world.after(m.world.upTo(2*m.world.cfg.Timeout), m.start)
}

// clients yields the processes that live.
func (w *World) clients(yield func(*client) bool) {
	for _, m := range w.machines {
		if m.running() && !yield(m.client) {
			return
		}
	}
}

// lose lets a request, or its answer, get lost on the way if that is planned. It
// reports whether the request is.
func (m *machine) lose(k *conn, op wire.OpCode, frame []byte) bool {
	if m.loseOp == 0 || op != m.loseOp || m.loseWrite && op == wire.OpMulti && !writes(frame) {
		return false
	}
	m.loseOp = 0
	if m.loseAnswer {
		m.world.note("%s: the answer to %v will be lost", m.client.name, op)
		k.mute = true
		return false
	}
	m.world.note("%s: %v is lost", m.client.name, op)
	k.cut(true, m.world.oneIn(2))
	return true
}

// disturb notes that something is not as it ought to be.
func (w *World) disturb() { w.disturbed = w.now }

// undisturbed reports whether a client and all it depends on work now.
func (c *client) undisturbed() bool {
	s, l := c.world.server, &c.machine.link
	return c.alive && !c.paused && len(c.backlog) == 0 && c.connected() && c.conn != nil &&
		!c.conn.broken[up] && !c.conn.broken[down] && !c.conn.mute && !c.conn.gone &&
		l.sound(c.world.now) &&
		// Nor is anything on its way still that a block has held up.
		max(c.conn.arrival[up], c.conn.arrival[down]) <= c.world.now+c.world.longestDelay() &&
		s.up && !s.paused && s.stall == 0 && s.fullUntil < c.world.now
}

// grace is more than one round trip takes when nothing is disturbed.
func (w *World) grace() time.Duration {
	return 2*w.longestDelay() + 3*w.cfg.Sync + 50*time.Millisecond
}
