package sim

import (
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// injectLink injects a fault of a machine's link or its messages.
func (w *World) injectLink(kind faultKind, m *machine) bool {
	l := &m.link
	switch kind {
	case blockFault:
		w.block(m, w.faultTime())
	case flapFault:
		w.flap(m)
	case slowFault:
		l.slow, l.extra = w.now+w.faultTime(), w.upTo(w.cfg.Timeout/2)
	case trickleFault:
		// From a thousand bytes a second down to one.
		l.trickle, l.gap = w.now+w.faultTime(), time.Millisecond<<w.rng.IntN(11)
	case refuseFault:
		l.refused = w.now + w.faultTime()
		return w.cutConn(m)
	case garbageFault:
		m.garbage = 1 + w.rng.IntN(garbageKinds)
		return m.running() && m.client.conn != nil
	case followerCut:
		w.cutOff(m, w.faultTime())
	case isolation:
		m.isolate = 1 + w.rng.IntN(2)
	case cutFault:
		return w.cutConn(m)
	default:
		return m.running() && w.injectLoss(kind, m)
	}
	return true
}

// cutConn cuts the connection of a machine's client.
func (w *World) cutConn(m *machine) bool {
	if !m.running() || m.client.conn == nil {
		return false
	}
	m.client.conn.cut(!w.oneIn(4), !w.oneIn(4))
	return true
}

// injectLoss makes the next request of a kind, or its answer, get lost.
func (w *World) injectLoss(kind faultKind, m *machine) bool {
	if kind == loseHandshake {
		m.loseOp, m.loseAnswer = wire.OpCreateSession, !w.oneIn(3)
		return w.cutConn(m)
	}
	// The requests of the lock core. Lost creates and deletes matter most.
	ops := [...]wire.OpCode{wire.OpCreate2, wire.OpCreate2, wire.OpDelete, wire.OpDelete, wire.OpMulti, wire.OpMulti,
		wire.OpGetData, wire.OpGetChildren2, wire.OpSetData, wire.OpCreateContainer, wire.OpPing, wire.OpSetWatches, wire.OpCloseSession}
	m.loseOp, m.loseAnswer, m.loseWrite = ops[w.rng.IntN(len(ops))], kind == loseAnswer, !w.oneIn(4)
	if m.loseOp == wire.OpSetWatches || m.loseOp == wire.OpCloseSession {
		w.triggerLoss(m)
	}
	return true
}

// triggerLoss makes a client send the request to lose: it reconnects or closes.
func (w *World) triggerLoss(m *machine) {
	if m.loseOp == wire.OpSetWatches {
		w.cutConn(m)
	} else if !w.cfg.OneActor {
		w.closeClient(m)
	}
}

// block blocks a link in one direction or both. With one direction, connections are half
// open.
func (w *World) block(m *machine, d time.Duration) {
	until := w.now + d
	switch w.rng.IntN(4) {
	case 0:
		m.link.blocked[up] = until
	case 1:
		m.link.blocked[down] = until
	default:
		m.link.blocked = [2]time.Duration{until, until}
	}
}

// flap makes a link go down and up several times.
func (w *World) flap(m *machine) {
	for at, n := time.Duration(0), 3+w.rng.IntN(10); n > 0; n-- {
		d := w.upTo(w.cfg.Timeout / 3)
		w.after(at, func() {
			if !w.healing {
				w.disturb()
				m.link.blocked = [2]time.Duration{w.now + d, w.now + d}
			}
		})
		at += d + w.upTo(w.cfg.Timeout/3)
	}
}

// cutOff cuts a client's follower off from the leader for d.
func (w *World) cutOff(m *machine, d time.Duration) {
	if w.isCutOff(&m.link) {
		return
	}
	m.link.cutOff = w.now + d
	dropped := w.oneIn(2)
	if w.oneIn(2) {
		w.beginDetour(m)
	}
	w.agenda.add(m.link.cutOff, func() { w.rejoin(m, dropped) })
}

// detour is the next step of a client that leaves a follower that is cut off.
type detour int

const (
	direct    detour = iota
	returns          // the next connection goes to the same follower, and the client gives it up
	elsewhere        // later connections go to another follower
)

// beginDetour breaks the connection to a follower that was cut off. The client then connects
// to it once more, and after that to another follower.
func (w *World) beginDetour(m *machine) {
	m.detour = returns
	w.after(w.upTo(w.cfg.Timeout/4), func() {
		if m.detour == returns && w.isCutOff(&m.link) && m.running() && m.client.conn != nil {
			m.client.conn.cut(true, false)
		}
	})
}

// takeDetour chooses the follower of a new connection.
func (m *machine) takeDetour(k *conn) {
	w := m.world
	if !w.isCutOff(&m.link) {
		return
	}
	switch m.detour {
	case returns:
		m.detour = elsewhere
		w.after(w.upTo(w.cfg.Timeout/4), func() {
			if w.isCutOff(&m.link) && !k.closed {
				k.givenUp = w.now
				k.cut(true, false)
			}
		})
	case elsewhere:
		k.around = true
	}
}

// moveBack passes on the requests that a follower has held for a client that now uses
// another follower. The leader first receives the client's request to resume its session,
// and moves the session back to this follower. Then it accepts the older requests, although
// the client has written through the other follower since. A follower closes its
// connections if it does not reach its leader for the shortest session timeout.
func (w *World) moveBack(conns []*conn) {
	s := w.server
	for i, k := range conns {
		if k.requested || k.givenUp == 0 || len(k.heldUp) == 0 || !s.up || k.life != s.life || k.gone || w.now-k.givenUp > w.cfg.Timeout*9/10 {
			continue
		}
		k.requested = true
		w.note("%s: the session moves back", k.client.name)
		s.receive(k, k.heldUp[0][4:])
		for _, old := range conns[:i] {
			if old.client == k.client && old.requested {
				for _, frame := range old.heldUp {
					s.receive(k, frame[4:])
				}
				old.heldUp = nil
			}
		}
		k.heldUp = nil
		s.receiveEnd(k)
	}
}

// rejoin connects a machine's follower to its leader again.
func (w *World) rejoin(m *machine, dropped bool) {
	if m.link.cutOff == 0 {
		return
	}
	m.link.cutOff = 0
	w.disturb()
	conns := m.held
	m.held = nil
	if m.detour == elsewhere && !dropped {
		w.moveBack(conns)
	}
	m.detour = direct
	for _, c := range conns {
		c.holdsBack = false
		c.rejoin(dropped)
	}
}

// cutOffHolder isolates a machine whose client holds a lock: at once, or right after the
// client reconnects.
func (w *World) cutOffHolder(m *machine) {
	if m.isolate == 2 && m.client.conn != nil {
		m.client.conn.cut(true, w.oneIn(2))
		return
	}
	m.isolate = 0
	d := w.cfg.Timeout + w.upTo(2*w.cfg.Timeout)
	w.after(w.upTo(w.cfg.Timeout/16), func() {
		if w.healing || !m.running() {
			return
		}
		w.disturb()
		w.note("isolated: machine %d", m.n)
		switch w.rng.IntN(4) {
		case 0:
			m.client.pause(d)
		case 1:
			w.cutOff(m, d)
		default:
			w.block(m, d)
		}
	})
}

// garbageKinds is the number of kinds of garbage.
const garbageKinds = 6

// garbage returns a frame that no server sends. The client must close the connection.
func garbage(sort int) []byte {
	reply := wire.AppendReply(nil, wire.ReplyHeader{Xid: 1 << 30, Zxid: 1 << 40}, nil)
	switch sort {
	case 1: // an answer without a request
		return reply
	case 2: // an empty frame
		return make([]byte, 4)
	case 3: // half a header
		return []byte{0, 0, 0, 3, 1, 2, 3}
	case 4: // an event of no kind
		return wire.AppendReply(nil, wire.ReplyHeader{Xid: wire.XidEvent, Zxid: -1}, &wire.WatcherEvent{Type: 99, State: 3, Path: "/"})
	case 5: // a truncated event
		return wire.AppendReply(nil, wire.ReplyHeader{Xid: wire.XidEvent, Zxid: -1}, &wire.CreateResponse{Path: "x"})
	}
	// The answer to watches that were not set.
	return append(reply[:4:4], wire.AppendReply(nil, wire.ReplyHeader{Xid: wire.XidSetWatches}, nil)[4:]...)
}
