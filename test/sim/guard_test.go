package sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// resources is the parent of what the holders of locks write to, one znode for
// each lock, with the token of the last write.
const resources = "/resources"

// verify is a question to a quorum that is under way, with what it is to do if
// the hold is held.
type verify struct {
	call uint64
	hold *hold
	at   time.Duration
	ops  []session.Op
	bad  bool // the last of its operations can't be done
}

// makeResources has an operator make what is not there.
func (w *World) makeResources() {
	all := []string{resources}
	for _, l := range w.locks {
		all = append(all, l.resource)
	}
	var requests [][]byte
	for _, p := range all {
		requests = append(requests, request(wire.OpCreate2, &wire.CreateRequest{Path: p, Data: []byte("0"), ACL: anyone()}))
	}
	w.asOperator(requests...)
}

func anyone() []wire.ACL {
	return []wire.ACL{{Perms: wire.PermAll, Scheme: "world", ID: "anyone"}}
}

// verify asks whether the hold is held, at times with something to be done under
// it. A znode whose name can be another's later is not to be asked for.
func (a *actor) verify() {
	c, w := a.client, a.world()
	if a.state != holding || slices.ContainsFunc(a.hold.parts, func(p *part) bool { return p.lock.byID() }) {
		return
	}
	c.calls++
	v := verify{call: c.calls, hold: a.hold, at: w.now}
	if w.oneIn(2) && !a.hold.swapped {
		v.ops = a.hold.fencedWrites()
		if v.bad = w.oneIn(4); v.bad {
			v.ops = append(v.ops, session.Op{Code: wire.OpCheck, Path: resources, Version: 1 << 30})
		}
	}
	c.verifies = append(c.verifies, v)
	c.input(func(core *queue.Core) { core.Guard(c.now, a.id, v.call) })
}

// fencedWrites write the hold's token to what it holds alone.
func (h *hold) fencedWrites() (ops []session.Op) {
	for _, p := range h.parts {
		if p.exclusive() {
			ops = append(ops, session.Op{Code: wire.OpSetData, Path: p.lock.resource, Data: strconv.AppendInt(nil, p.token, 10), Version: -1})
		}
	}
	return ops
}

// operations are those of a guard's call.
func (c *client) operations(call uint64) []session.Op {
	for _, v := range c.verifies {
		if v.call == call {
			return v.ops
		}
	}
	return nil
}

// verified checks that the hold was there while the question was under way.
func (c *client) verified(s queue.Signal) {
	w := c.world
	for i, v := range c.verifies {
		if v.call != s.Call {
			continue
		}
		c.verifies = append(c.verifies[:i], c.verifies[i+1:]...)
		w.Stats.Verified++
		if len(v.ops) > 0 {
			w.Stats.Guarded++
		}
		switch {
		case s.Err == nil && v.hold.nameReused():
		case s.Err == nil && v.hold.gone && v.hold.goneAt < v.at:
			w.fail("%s: verified %s at %v, gone since %v", c.name, v.hold.node(), v.at, v.hold.goneAt)
		case s.Err == nil && v.bad:
			w.fail("%s: a guard of %s was done whose last operation can't be", c.name, v.hold.node())
		case s.Failed >= 0 && (s.Err == nil || !v.bad || s.Failed != len(v.ops)-1):
			w.fail("%s: a guard of %s failed with %v at operation %d of %d", c.name, v.hold.node(), s.Err, s.Failed, len(v.ops))
		}
		return
	}
	w.fail("%s: answer to a verify that was not requested", c.name)
}

// nameReused reports whether another client's entry may have the name of one of the
// hold's, because an operator has deleted those of a queue whose names have no GUID.
func (h *hold) nameReused() bool {
	for _, p := range h.parts {
		if p.lock.Family == queues && p.lock.byID() && p.lock.amiss > h.client.world.now {
			return true
		}
	}
	return false
}

// checkResources checks that no write under a guard comes after one of a later
// holder, nor while one holds.
func (w *World) checkResources() {
	for _, l := range w.locks {
		data, _, ok := w.server.tree.Get(l.resource)
		if !ok {
			continue
		}
		token, err := strconv.ParseInt(string(data), 10, 64)
		if err != nil || token < l.fenced {
			w.fail("%s was written by %q after %d", l.resource, data, l.fenced)
		}
		if token != l.fenced && l.fenced != 0 {
			w.checkWritten(l, token)
		}
		l.fenced = token
	}
}

// checkWritten checks that no client holds the lock that was granted later than the hold
// under which a guarded write was just done.
func (w *World) checkWritten(l *lock, token int64) {
	for c := range w.clients {
		for _, o := range c.holds {
			if !o.safe() || o.operated() {
				continue
			}
			for _, q := range o.parts {
				if q.lock == l && l.Family != semaphores && q.token > token {
					w.fail("%s was written by %#x while %s holds %s, token %#x", l.resource, token, c.name, q.nodes[0].path, q.token)
				}
			}
		}
	}
}
