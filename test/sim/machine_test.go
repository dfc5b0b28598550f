package sim

import (
	"fmt"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// machine runs client processes one after another. They share its link.
type machine struct {
	world  *World
	n      int
	link   link
	client *client // the last one
	lives  int
	held   []*conn // connections with messages that the follower holds back
	detour detour

	// The next request of this kind, or its answer, is lost.
	loseOp     wire.OpCode
	loseAnswer bool
	loseWrite  bool // lose only a multi that creates or deletes something

	garbage int // the kind of garbage before the next answer, or 0
	stopIn  int // the number of notices after which the process is stopped, or 0

	// isolate says when the next holder is cut off: 1 after the grant, 2 after the grant and
	// a reconnect, 0 never.
	isolate int
}

func newMachine(w *World, n int) *machine {
	return &machine{world: w, n: n, link: link{delay: w.cfg.Delay, spread: w.cfg.Spread}}
}

// start starts a process.
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
		a.think()
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

// clients yields the running processes.
func (w *World) clients(yield func(*client) bool) {
	for _, m := range w.machines {
		if m.running() && !yield(m.client) {
			return
		}
	}
}

// lose loses a request or its answer if a fault says so. It reports whether the request is
// lost.
func (m *machine) lose(k *conn, op wire.OpCode, frame []byte) bool {
	if m.loseOp == 0 || op != m.loseOp || m.loseWrite && op == wire.OpMulti && !writes(frame) {
		return false
	}
	m.loseOp = 0
	if m.loseAnswer {
		m.world.note("%s: the answer to %v will be lost", m.client.name, op)
		k.loseAnswer = true
		return false
	}
	m.world.note("%s: %v is lost", m.client.name, op)
	k.cut(true, m.world.oneIn(2))
	return true
}

// disturb notes that a fault begins, ends, or has an effect.
func (w *World) disturb() { w.disturbed = w.now }

// undisturbed reports whether no fault affects a client.
func (c *client) undisturbed() bool {
	s, l := c.world.server, &c.machine.link
	return c.alive && !c.paused && len(c.backlog) == 0 && c.connected() && c.conn != nil &&
		!c.conn.broken[up] && !c.conn.broken[down] && !c.conn.loseAnswer && !c.conn.gone &&
		l.sound(c.world.now) &&
		// No message in flight was delayed by a block.
		max(c.conn.arrival[up], c.conn.arrival[down]) <= c.world.now+c.world.longestDelay() &&
		s.up && !s.paused && s.stall == 0 && s.fullUntil < c.world.now
}

// grace returns more than the time of a round trip without faults.
func (w *World) grace() time.Duration {
	return 2*w.longestDelay() + 3*w.cfg.Sync + 50*time.Millisecond
}
