package sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/internal/session"
	"github.com/zklock/zklock/internal/wire"
)

// resources is the parent of the guarded znodes. There is one for each lock, with the token
// of the last write.
const resources = "/resources"

// verify is a call of Guard in flight, with the operations to do if the lock is held.
type verify struct {
	call uint64
	hold *hold
	at   time.Duration
	ops  []session.Op
	bad  bool // the last operation fails
}

// makeResources makes an operator create the guarded znodes.
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

// verify asks the server whether the lock is held, sometimes with guarded operations. It
// omits locks with reusable names.
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

// fencedWrites returns writes of the hold's tokens for its exclusive locks.
func (h *hold) fencedWrites() (ops []session.Op) {
	for _, p := range h.parts {
		if p.exclusive() {
			ops = append(ops, session.Op{Code: wire.OpSetData, Path: p.lock.resource, Data: strconv.AppendInt(nil, p.token, 10), Version: -1})
		}
	}
	return ops
}

// operations returns the operations of a call of Guard.
func (c *client) operations(call uint64) []session.Op {
	for _, v := range c.verifies {
		if v.call == call {
			return v.ops
		}
	}
	return nil
}

// verified checks that the hold existed while the call was in flight.
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

// nameReused reports whether another client's entry may have the name of an entry of the
// hold, because an operator has deleted entries with reusable names.
func (h *hold) nameReused() bool {
	for _, p := range h.parts {
		if p.lock.Family == queues && p.lock.byID() && p.lock.wrongDeletes > h.client.world.now {
			return true
		}
	}
	return false
}

// checkResources checks that no guarded write follows a write of a later holder, or happens
// while a later holder holds.
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

// checkWritten checks that no client holds a lock that was granted after the hold of a
// guarded write.
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
