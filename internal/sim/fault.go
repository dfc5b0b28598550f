package sim

import (
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// faultKind is a kind of fault.
type faultKind int

const (
	cutFault    faultKind = iota // a connection breaks
	blockFault                   // nothing gets through, both ways or one
	loseRequest                  // a request is lost on its way
	loseAnswer                   // a request is carried out, its answer lost
	pauseFault                   // a client process is stopped
	killFault                    // a client process, or its machine, dies
	closeFault                   // a client is closed in good order
	serverKill
	serverPower
	serverPause
	diskStall
	diskError
	wallJump
	followerCut     // the follower between is cut off from its leader
	isolation       // whoever holds next is cut off, and goes on holding
	operatorTouch   // an operator sets a znode's data
	operatorStray   // an operator makes a znode that is no contender
	operatorForeign // another library's client joins a queue
	operatorDelete
	operatorSweep  // deletes a whole lock with its parents
	operatorExpire // closes somebody's session
	faultKinds
)

// String names the kind.
func (k faultKind) String() string {
	return [...]string{"cut", "block", "lose request", "lose answer", "pause", "kill", "close", "server kill",
		"power loss", "server pause", "disk stall", "disk error", "wall clock", "follower cut off", "isolation", "touch", "stray",
		"foreign entry", "delete", "sweep", "expire"}[k]
}

// weights are how often each kind happens, against each other. What breaks a
// connection or loses an answer is the most fertile; a server that is down for
// half of the time would leave little else to see.
func weights() [faultKinds]int {
	return [faultKinds]int{
		cutFault: 8, blockFault: 8, loseRequest: 5, loseAnswer: 10, pauseFault: 12, killFault: 4, closeFault: 3,
		serverKill: 2, serverPower: 3, serverPause: 3, diskStall: 3, diskError: 2, wallJump: 1, followerCut: 6, isolation: 8,
		operatorTouch: 8, operatorStray: 1, operatorForeign: 4, operatorDelete: 8, operatorSweep: 3, operatorExpire: 3,
	}
}

// someFault makes a fault and plans the next.
func (w *World) someFault() {
	if w.healing {
		return
	}
	w.after(w.around(w.cfg.Between), w.someFault)
	sum := 0
	for _, n := range weights() {
		sum += n
	}
	pick := w.rng.IntN(sum)
	kind := faultKind(0)
	for pick >= weights()[kind] {
		pick -= weights()[kind]
		kind++
	}
	if kind >= operatorDelete && !w.cfg.Operators || w.cfg.Alone && (kind == killFault || kind == closeFault || kind == operatorForeign) {
		return
	}
	w.inject(kind, w.machines[w.rng.IntN(len(w.machines))])
}

// inject makes a fault of a kind, at a machine if it is about one. Chance may
// have it that there is nothing to break.
func (w *World) inject(kind faultKind, m *machine) {
	w.Stats.Faults++
	w.Stats.ByFault[kind]++
	w.disturb()
	w.note("fault: %v, machine %d", kind, m.n)
	switch {
	case kind >= operatorTouch:
		w.operate(kind)
	case kind >= serverKill && kind <= wallJump:
		w.injectServer(kind)
	case kind == blockFault:
		w.block(m, w.aWhile())
	case kind == followerCut:
		w.cutOff(m, w.aWhile())
	case kind == isolation:
		m.isolate = 1 + w.rng.IntN(2)
	case m.running():
		w.injectClient(kind, m)
	}
}

// aWhile is how long something is amiss: from a moment to three timeouts.
func (w *World) aWhile() time.Duration {
	d := w.upTo(3 * w.cfg.Timeout)
	if w.oneIn(2) {
		d /= 8
	}
	return d
}

// injectClient makes a fault of a process or its connection.
func (w *World) injectClient(kind faultKind, m *machine) {
	switch kind {
	case cutFault:
		if m.client.conn != nil {
			m.client.conn.cut(!w.oneIn(4), !w.oneIn(4))
		}
	case loseRequest, loseAnswer:
		// One of what the lock core asks for; creates and deletes are what it
		// must keep track of.
		ops := [...]wire.OpCode{wire.OpCreate2, wire.OpCreate2, wire.OpDelete, wire.OpDelete, wire.OpMulti, wire.OpMulti,
			wire.OpGetData, wire.OpGetChildren2, wire.OpSetData, wire.OpCreateContainer}
		m.loseOp, m.loseAnswer, m.loseWrite = ops[w.rng.IntN(len(ops))], kind == loseAnswer, !w.oneIn(4)
	case pauseFault:
		m.client.pause(w.aWhile())
	case killFault:
		m.kill(w.oneIn(3))
	case closeFault:
		c := m.client
		c.run(startWork, func() {
			if !c.closing {
				c.shut()
			}
		})
		w.after(w.cfg.Timeout+w.aWhile(), func() { w.reopen(m) })
	}
}

// reopen begins a new process on a machine whose client was closed; it waits
// while the closing takes its time.
func (w *World) reopen(m *machine) {
	if m.running() && m.client.closing && !w.closing {
		w.after(w.cfg.Timeout, func() { w.reopen(m) })
		return
	}
	m.start()
}

// block lets nothing through a link for a while, one way or both: one way is a
// connection that is half open.
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

// cutOff cuts the follower between a client and the server off for a while.
func (w *World) cutOff(m *machine, d time.Duration) {
	if w.isCutOff(&m.link) {
		return
	}
	m.link.cutOff = w.now + d
	dropped := w.oneIn(2)
	w.agenda.add(m.link.cutOff, func() { w.rejoin(m, dropped) })
}

// cutOffHolder isolates a machine whose client holds a lock: at once, or right
// after it has had to connect again.
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

// rejoin ends the time without a leader of a machine's follower.
func (w *World) rejoin(m *machine, dropped bool) {
	if m.link.cutOff == 0 {
		return
	}
	m.link.cutOff = 0
	w.disturb()
	conns := m.behind
	m.behind = nil
	for _, c := range conns {
		c.behind = false
		c.rejoin(dropped)
	}
}

// injectServer makes a fault of the server, its disk or its clock.
func (w *World) injectServer(kind faultKind) {
	s := w.server
	switch kind {
	case serverKill, serverPower:
		s.crash(kind == serverPower)
		w.after(w.upTo(w.cfg.Timeout), s.boot)
	case serverPause:
		s.pause(w.aWhile())
	case diskStall:
		s.stall = w.aWhile()
	case diskError:
		// It stays broken until the server is started again: whether a sync
		// after a failed one says anything must not matter.
		failing := w.rng.IntN(4)
		s.disk.SetFault(func(op memfs.Op) memfs.Fault {
			if op.Kind != memfs.OpWrite && op.Kind != memfs.OpSync {
				return memfs.Fault{}
			}
			if failing--; failing > 0 {
				return memfs.Fault{}
			}
			return memfs.Fault{Err: syscall.EIO, Keep: op.Len / 2}
		})
	case wallJump:
		s.wall += w.upTo(2*time.Hour) - time.Hour
		s.jumped = w.now
	}
}

// operate lets an operator do something to a lock's znodes.
func (w *World) operate(kind faultKind) {
	s := w.server
	if !s.up {
		return
	}
	// What there is now; by the time that the request is carried out it may be
	// another's turn.
	entries := w.entries()
	lock := w.locks[w.rng.IntN(len(w.locks))]
	if (kind == operatorTouch || kind == operatorDelete) && len(entries) == 0 {
		return
	}
	switch kind {
	case operatorTouch:
		w.touch(entries[w.rng.IntN(len(entries))])
	case operatorStray:
		w.stray(lock)
	case operatorForeign:
		w.foreign(lock)
	case operatorDelete:
		w.asOperator(request(wire.OpDelete, &wire.DeleteRequest{Path: entries[w.rng.IntN(len(entries))], Version: -1}))
	case operatorSweep:
		w.sweep(lock, entries)
	case operatorExpire:
		w.closeSession(w.machines[w.rng.IntN(len(w.machines))].client)
	}
}

// request is the frame of an operator's request, without its length.
func request(op wire.OpCode, rec wire.Record) []byte {
	return wire.AppendRequest(nil, 1, op, rec)[4:]
}

// sweep deletes all of a lock, and what is above it as far as that goes.
func (w *World) sweep(l *lock, entries []string) {
	var requests [][]byte
	remove := func(p string) {
		requests = append(requests, request(wire.OpDelete, &wire.DeleteRequest{Path: p, Version: -1}))
	}
	for _, p := range entries {
		if strings.HasPrefix(p, l.Path+"/") {
			remove(p)
		}
	}
	for _, dir := range l.dirs {
		if dir != l.Path {
			remove(dir)
		}
	}
	for p := l.Path; strings.Count(p, "/") > 1; p = path.Dir(p) {
		remove(p)
	}
	w.asOperator(requests...)
}

// closeSession closes the session of a client, as whoever knows its password can.
func (w *World) closeSession(c *client) {
	if c == nil || c.sessionID == 0 {
		return
	}
	w.asOperatorOf(&wire.ConnectRequest{SessionID: c.sessionID, Password: c.password, Timeout: int32(w.cfg.Timeout.Milliseconds())},
		request(wire.OpCloseSession, nil))
}

// asOperator lets an operator's client make requests.
func (w *World) asOperator(requests ...[]byte) {
	w.asOperatorOf(&wire.ConnectRequest{Password: make([]byte, 16), Timeout: 1000}, requests...)
}

// operatorDoes makes requests, and then something with what came of them.
func (w *World) operatorDoes(then func(), requests ...[]byte) {
	w.inSession(&wire.ConnectRequest{Password: make([]byte, 16), Timeout: 1000}, then, requests...)
}

// asOperatorOf makes requests in somebody's session.
func (w *World) asOperatorOf(connect *wire.ConnectRequest, requests ...[]byte) {
	w.inSession(connect, func() {}, requests...)
}

// touch overwrites an entry's data, unless they are what its owner knows it by:
// with anything, or with a word that asks for the lock back, though it may only
// wait.
func (w *World) touch(p string) {
	if w.lockOf(p).byID() {
		return
	}
	if w.oneIn(2) {
		w.revoke(p, nil)
		return
	}
	data := []byte("touched")
	w.operatorDoes(func() {
		if w.there(p) {
			w.taint(p, data)
		}
	}, request(wire.OpSetData, &wire.SetDataRequest{Path: p, Data: data, Version: -1}))
}

// removed notes that an entry went by an operator's doing.
func (w *World) removed(p string, czxid int64) {
	w.operated[p], w.operated[key(p, czxid)] = true, true
	l := w.lockOf(p)
	if l.Family == queues {
		w.operated[recordOf(p)] = true
	}
	if l.byID() {
		l.amiss = w.now + 6*w.cfg.Timeout
	}
	if l.Family == semaphores && strings.HasPrefix(p, l.dirs[0]) {
		l.open = w.now + 6*w.cfg.Timeout
	}
	w.askHolder(p, czxid)
}

// askHolder has the holder of a znode that has just gone ask for it while it does
// not know.
func (w *World) askHolder(p string, czxid int64) {
	if w.cfg.Variant == DeafHeartbeat {
		return // whoever asks hears it all the same
	}
	for c := range w.clients {
		for _, a := range c.actors {
			if a.state != holding {
				continue
			}
			for _, part := range a.hold.parts {
				for _, n := range part.nodes {
					if n.path == p && n.czxid == czxid {
						a.later(w.upTo(w.grace()/4), a.verify)
					}
				}
			}
		}
	}
}

// inSession makes requests in a session. What goes away meanwhile is noted as an
// operator's doing.
func (w *World) inSession(connect *wire.ConnectRequest, then func(), requests ...[]byte) {
	s := w.server
	// A connection from inside the server's machine: no link delays it, and what
	// the server answers to it goes nowhere.
	s.lastID++
	id := s.lastID
	s.inbox = append(s.inbox, input{act: func(now tree.Now) {
		before := w.entries()
		czxids := make([]int64, len(before))
		for i, p := range before {
			_, stat, _ := s.tree.Get(p)
			czxids[i] = stat.Czxid
		}
		s.tree.Connect(id, loopback(), connect, now, &s.out)
		for _, r := range requests {
			s.tree.Request(id, r, now, &s.out)
		}
		s.tree.Request(id, request(wire.OpCloseSession, nil), now, &s.out)
		for i, p := range before {
			if !w.there(p) {
				w.removed(p, czxids[i])
			}
		}
		then()
	}})
	s.kick()
}
