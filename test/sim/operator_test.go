package sim

import (
	"path"
	"strings"

	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wire"
)

// operate injects a change by an operator.
func (w *World) operate(kind faultKind) bool {
	if !w.server.up {
		return false
	}
	// The entries may change before the server applies the request.
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
		w.denyAccess(lock)
	}
	return true
}

// request returns the frame of a request without its length.
func request(op wire.OpCode, rec wire.Record) []byte {
	return wire.AppendRequest(nil, 1, op, rec)[4:]
}

// sweep deletes all znodes of a lock and its empty parents.
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

// closeSession closes the session of a client with its password.
func (w *World) closeSession(c *client) {
	if c == nil || c.sessionID == 0 {
		return
	}
	w.closedByOperator[c.sessionID] = true
	w.asOperatorOf(&wire.ConnectRequest{SessionID: c.sessionID, Password: c.password, Timeout: int32(w.cfg.Timeout.Milliseconds())},
		request(wire.OpCloseSession, nil))
}

// asOperator makes requests in an operator's session.
func (w *World) asOperator(requests ...[]byte) {
	w.asOperatorOf(&wire.ConnectRequest{Password: make([]byte, 16), Timeout: 1000}, requests...)
}

// operatorDoes makes requests in an operator's session, and then calls then.
func (w *World) operatorDoes(then func(), requests ...[]byte) {
	w.inSession(&wire.ConnectRequest{Password: make([]byte, 16), Timeout: 1000}, then, requests...)
}

// asOperatorOf makes requests in a client's session.
func (w *World) asOperatorOf(connect *wire.ConnectRequest, requests ...[]byte) {
	w.inSession(connect, func() {}, requests...)
}

// touch overwrites an entry's data, sometimes with a release request. It does nothing if the
// owner recognizes the entry by its data.
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
			w.noteTaint(p, data)
		}
	}, request(wire.OpSetData, &wire.SetDataRequest{Path: p, Data: data, Version: -1}))
}

// removed notes that an operator deleted an entry.
func (w *World) removed(p string, czxid int64) {
	w.operated[p], w.operated[key(p, czxid)] = true, true
	l := w.lockOf(p)
	if l.Family == queues {
		w.operated[recordOf(p)] = true
	}
	if l.byID() {
		l.wrongDeletes = w.now + 6*w.cfg.Timeout
	}
	if l.Family == semaphores && strings.HasPrefix(p, l.dirs[0]) {
		l.gateOpen = w.now + 6*w.cfg.Timeout
	}
	w.verifyHolder(p, czxid)
}

// verifyHolder sometimes makes the holder of a deleted znode verify its hold before it learns of
// the deletion.
func (w *World) verifyHolder(p string, czxid int64) {
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
						a.after(w.upTo(w.grace()/4), a.verify)
					}
				}
			}
		}
	}
}

// inSession makes requests in a session. It notes deleted entries as deleted by an operator.
func (w *World) inSession(connect *wire.ConnectRequest, then func(), requests ...[]byte) {
	s := w.server
	// The connection is local: no link delays it, and no client reads the answers.
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
