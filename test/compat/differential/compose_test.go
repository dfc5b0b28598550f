package differential

import (
	"slices"

	"github.com/zklock/zklock/internal/wire"
)

// step returns a request by a random client.
func (w *writer) step(op wire.MultiOp) Step {
	w.xid++
	xid := w.xid
	if w.maybe(100) {
		xid = one[int32](w, 0, -2, -4, -8, 1<<31-1, -1<<31)
	}
	return Step{Kind: KindRequest, Slot: w.r.IntN(slots), Op: op.Op, Xid: xid, Body: op.Req.Append(nil)}
}

// script returns a script for servers without other users.
func (w *writer) script(length int) Script {
	s := w.prelude()
	for len(s) < length {
		s = append(s, w.next()...)
	}
	return s
}

// prelude creates the script's root and, usually, nodes below it.
func (w *writer) prelude() Script {
	open := []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
	var s Script
	for _, path := range []string{"", "/a", "/b", "/a/x"} {
		if path == "" || w.maybe(2) {
			s = append(s, w.step(wire.MultiOp{Op: wire.OpCreate2, Req: &wire.CreateRequest{Path: below(path), Data: []byte("begin"), ACL: open}}))
		}
	}
	if w.exclusive && w.maybe(4) {
		s = append(s, w.quotas()...)
	}
	return s
}

// quotas creates the nodes of one or two quotas, like setquota of zkCli.
func (w *writer) quotas() Script {
	var s Script
	for _, path := range []string{"", "/a"} {
		if path != "" && w.maybe(2) {
			break
		}
		root := "/zookeeper/quota" + below(path)
		for _, q := range []*wire.CreateRequest{
			{Path: root}, {Path: root + "/zookeeper_limits", Data: w.quotaData()}, {Path: root + "/zookeeper_stats", Data: w.quotaData()},
		} {
			q.ACL = []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
			s = append(s, w.step(wire.MultiOp{Op: wire.OpCreate, Req: q}))
		}
	}
	return s
}

// next returns a step, or several related ones.
func (w *writer) next() Script {
	switch n := w.r.IntN(200); {
	case n < 70:
		return Script{w.step(w.change())}
	case n < 90:
		return Script{w.step(w.multi())}
	case n < 96:
		path := w.path()
		return Script{w.step(wire.MultiOp{Op: wire.OpSetACL, Req: &wire.SetACLRequest{Path: path, ACL: w.acl(), Version: w.version()}})}
	case n < 134:
		return Script{w.step(w.read())}
	case n < 150:
		return Script{w.step(w.watch())}
	case n < 160 && !w.strict:
		return Script{w.burst()}
	case n < 166 && w.exclusive:
		return Script{w.malformed()}
	case n < 170:
		return Script{w.authenticate()}
	case n < 173:
		return Script{w.setWatches()}
	}
	return w.session()
}

// session returns steps for sessions and connections.
func (w *writer) session() Script {
	slot := w.r.IntN(slots)
	switch w.r.IntN(12) {
	case 0, 1:
		return Script{{Kind: KindRequest, Slot: slot, Op: wire.OpCloseSession, Xid: 3}}
	case 2, 3:
		// A client that reconnects and restores its watches.
		back := w.setWatches()
		back.Slot = slot
		s := Script{{Kind: KindCut, Slot: slot}}
		for range w.r.IntN(4) {
			op := w.step(w.change())
			op.Slot = (slot + 1 + w.r.IntN(slots-1)) % slots
			s = append(s, op)
		}
		return append(s, w.resume(slot, "right"), back)
	case 4:
		return Script{w.unknown()}
	case 5:
		return Script{w.rawHandshake()}
	case 6:
		return Script{{Kind: KindWrong, Slot: slot}}
	case 7:
		st := w.resume(slot, "right")
		st.Hand.High = true
		return Script{st}
	case 8:
		st := w.resume(slot, one(w, "right", "zero", "empty", "absent"))
		st.Hand.Session = one(w, "new", "unknown")
		return Script{st}
	case 9:
		q := &wire.ReconfigRequest{JoiningServers: []byte("server.2=h:1:2;3"), CurConfigID: one[int64](w, -1, 0, 9)}
		return Script{w.step(wire.MultiOp{Op: wire.OpReconfig, Req: q})}
	}
	return Script{w.resume(slot, "right")}
}

// resume returns a handshake for the client's own session.
func (w *writer) resume(slot int, password string) Step {
	h := &Handshake{Session: "own", Password: password, Timeout: 30_000, Byte: w.r.IntN(4) > 0, ReadOnly: w.maybe(3)}
	if w.maybe(2) && w.exclusive {
		h.Timeout = one[int32](w, 0, -1, 1, 25_000, 1<<31-1, -1<<31)
	}
	if w.maybe(5) {
		h.Version = w.r.Int32()
	}
	return Step{Kind: KindHandshake, Slot: slot, Hand: h}
}

// unreadable reports whether a multi has a create with a TTL mode and without a TTL. Java notices
// this only after it has applied the operations before.
func unreadable(m *wire.MultiRequest) bool {
	return slices.ContainsFunc(m.Ops, func(op wire.MultiOp) bool {
		q, ok := op.Req.(*wire.CreateRequest)
		return ok && q.Flags.TTL()
	})
}

// burst returns several requests that are sent at once. It omits requests whose replies overtake
// others in Java, because its network threads answer them. It also omits setACL, which requests
// after it in the pipeline of 3.9.3 ignore. They ignore quotas too, so a server with enforced
// quotas gets no burst.
func (w *writer) burst() Step {
	st := Step{Kind: KindBurst, Slot: w.r.IntN(slots)}
	for range 2 + w.r.IntN(6) {
		var op wire.MultiOp
		switch w.r.IntN(8) {
		case 0, 1, 2, 3:
			op = w.change()
		case 4:
			for op = w.multi(); unreadable(op.Req.(*wire.MultiRequest)); {
				op = w.multi()
			}
		case 5:
			op = w.watch()
		default:
			op = w.read()
		}
		b := w.step(op)
		b.Slot = st.Slot
		st.Burst = append(st.Burst, b)
	}
	if w.maybe(8) {
		st.Burst = append(st.Burst, Step{Kind: KindRequest, Slot: st.Slot, Op: wire.OpCloseSession, Xid: 4})
	}
	return st
}
