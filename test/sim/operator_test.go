package sim

import (
	"path"
	"strings"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wire"
)

// operate lets an operator do something to a lock's znodes.
func (w *World) operate(kind faultKind) bool {
	if !w.server.up {
		return false
	}
	// What there is now; by the time that the request is carried out it may be
	// another's turn.
	entries := w.entries()
	lock := w.locks[w.rng.IntN(len(w.locks))]
	if (kind == operatorTouch || kind == operatorDelete) && len(entries) == 0 {
		return false
	}
	switch kind {
	case operatorTouch:
		w.touch(entries[w.rng.IntN(len(entries))])
	case operatorStray:
		w.stray(lock)
	case operatorForeign:
		w.foreign(lock)
	case operatorJump:
		return w.jump(lock)
	case operatorDelete:
		w.asOperator(request(wire.OpDelete, &wire.DeleteRequest{Path: entries[w.rng.IntN(len(entries))], Version: -1}))
	case operatorSweep:
		w.sweep(lock, entries)
	case operatorExpire:
		w.closeSession(w.machines[w.rng.IntN(len(w.machines))].client)
	case operatorACL:
		w.forbid(lock)
	}
	return true
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

// closeSession closes the session of a client, which takes its password.
func (w *World) closeSession(c *client) {
	if c == nil || c.sessionID == 0 {
		return
	}
	w.closedByOperator[c.sessionID] = true
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

// asOperatorOf makes requests in a client's session.
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
// not know: at times, as a holder that does not ask has to be told.
func (w *World) askHolder(p string, czxid int64) {
	if w.oneIn(2) {
		return
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
