package sim

import (
	"math"
	"strconv"

	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/internal/tree"
	"github.com/zklock/zklock/internal/wire"
)

// jump moves the sequence numbers of a lock's queues near SequenceLimit, or near the number
// after which they are negative. Later, an operator deletes the queue, which is the only way
// to reset the numbers.
func (w *World) jump(l *lock) bool {
	if l.Family == nodeLocks || w.below(l) {
		return false
	}
	next := int32(queue.SequenceLimit - w.rng.IntN(40))
	if w.oneIn(3) {
		next = math.MaxInt32 - int32(w.rng.IntN(20))
	}
	for _, o := range w.locks {
		o.jumped = o.jumped || o.dirs[0] == l.dirs[0]
	}
	w.server.inbox = append(w.server.inbox, input{act: func(now tree.Now) {
		for _, dir := range l.dirs {
			if w.server.tree.JumpSequence(dir, next, now, &w.server.out) == wire.ErrOK {
				_, stat, _ := w.server.tree.Get(dir)
				l.exhausted[dir] = stat.Czxid
			}
		}
	}})
	w.server.kick()
	w.after(w.upTo(8*w.cfg.Timeout), func() { w.renew(l) })
	return true
}

// renew deletes a lock's queues, and tries again until it succeeds.
func (w *World) renew(l *lock) {
	if w.healing || len(l.exhausted) == 0 {
		return
	}
	if w.server.up {
		for _, dir := range l.dirs {
			if _, stat, ok := w.server.tree.Get(dir); !ok || stat.Czxid != l.exhausted[dir] {
				delete(l.exhausted, dir)
			}
		}
		w.sweep(l, w.entries())
	}
	w.after(w.upTo(4*w.cfg.Timeout), func() { w.renew(l) })
}

// checkNumber checks that a hold's sequence number is below the limit.
func (w *World) checkNumber(h *hold, p *part) {
	for _, n := range p.nodes {
		seq, _, ok := p.lock.entry(n.path)
		if number, err := strconv.ParseInt(seq, 10, 64); ok && seq != "" && (err != nil || number >= queue.SequenceLimit) {
			w.fail("%s granted, with a number at the limit", n.path)
		}
	}
}
