package sim

import (
	"slices"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// part is the part of a claim, and then of its hold, for one lock.
type part struct {
	lock    *lock
	shared  bool
	writer  bool
	permits int
	of      int // the number of permits that the client claims to exist
	token   int64
	nodes   []*znode
	// trace shows whether the holder crashed; nil without a lock delay.
	trace *trace
}

// exclusive reports whether no other hold of the lock can exist.
func (p *part) exclusive() bool {
	return !p.shared && (p.lock.Family != semaphores || p.of == 1 && !p.lock.WrongSize)
}

func (p *part) kind() claimKind {
	switch {
	case p.lock.Family == semaphores:
		return aSemaphore
	case p.lock.Family == nodeLocks:
		return aNode
	case p.shared:
		return aReader
	case p.writer:
		return aWriter
	}
	return aMutex
}

// claimKind is the kind of lock of a claim, for statistics.
type claimKind int

const (
	aMutex claimKind = iota
	aWriter
	aReader
	aSemaphore
	aNode
	anAll
	anInOrder
	claimKinds
)

func (k claimKind) String() string {
	return [...]string{"mutex", "writer", "reader", "semaphore", "node lock", "all", "in order"}[k]
}

// A claim is what an actor acquires.
type claim struct {
	spec  queue.Spec
	parts []*part
	since time.Duration
}

func (q *claim) kind() claimKind {
	switch {
	case q.spec.InOrder:
		return anInOrder
	case len(q.parts) > 1:
		return anAll
	}
	return q.parts[0].kind()
}

// drawClaim draws the actor's next claim: mostly one lock, sometimes several.
func (a *actor) drawClaim() *claim {
	w := a.world()
	locks := []*lock{w.locks[w.rng.IntN(len(w.locks))]}
	if w.cfg.Several > 0 && w.rng.IntN(100) < w.cfg.Several {
		if more := w.someLocks(); len(more) > 1 {
			locks = more
		}
	}
	q := &claim{since: w.now}
	if a.repeats > 0 {
		a.repeats--
		q.parts, locks = []*part{{lock: a.repeated.lock, writer: a.repeated.writer}}, nil
	}
	for _, l := range locks {
		q.parts = append(q.parts, a.part(l))
	}
	q.spec.InOrder = len(locks) > 1 && w.cfg.Ordered
	q.spec.Try = !w.cfg.NoCancel && w.oneIn(6)
	q.spec.Data = []byte(`{"host":"` + a.client.name + `"}`)
	if w.cfg.LockDelay > 0 && !w.oneIn(4) {
		q.spec.Delay = w.cfg.LockDelay
	}
	// Queues come first, then semaphores in the order of their paths.
	slices.SortStableFunc(q.parts, func(x, y *part) int { return x.rank() - y.rank() })
	if q.spec.InOrder && !w.cfg.Unordered {
		slices.SortStableFunc(q.parts, func(x, y *part) int {
			if d := min(x.rank(), 1) - min(y.rank(), 1); d != 0 {
				return d
			}
			return x.lock.n - y.lock.n
		})
	}
	for _, p := range q.parts {
		a.specify(&q.spec, p)
	}
	return q
}

// rank returns the position of a part in a claim: queues before semaphores, and semaphores
// in the same order for all clients.
func (p *part) rank() int {
	if p.lock.Family == semaphores {
		return 1 + p.lock.n
	}
	return 0
}

// someLocks draws several locks, in any order.
func (w *World) someLocks() []*lock {
	var some []*lock
	for _, i := range w.rng.Perm(len(w.locks)) {
		if l := w.locks[i]; l.Family != nodeLocks {
			some = append(some, l)
		}
	}
	if len(some) < 2 {
		return nil
	}
	return some[:2+w.rng.IntN(len(some)-1)]
}

// part draws the part of a claim for a lock.
func (a *actor) part(l *lock) *part {
	w := a.world()
	p := &part{lock: l}
	switch l.Family {
	case semaphores:
		p.of = l.Of
		if l.WrongSize && a.client.machine.n%3 == 1 {
			p.of++
		}
		p.permits = 1
		if w.oneIn(2) {
			p.permits += w.rng.IntN(p.of)
		}
	case queues:
		pick := w.rng.IntN(l.Mutexes + l.Writers + l.Readers)
		p.shared = pick >= l.Mutexes+l.Writers
		p.writer = pick >= l.Mutexes && !p.shared
	}
	return p
}

// specify adds a part to a claim.
func (a *actor) specify(s *queue.Spec, p *part) {
	switch p.lock.Family {
	case semaphores:
		sem := queue.Semaphore{Path: p.lock.Path, Permits: p.permits, Of: p.of}
		s.Semaphores = append(s.Semaphores, sem)
	case nodeLocks:
		s.Node, s.Delay = p.lock.Path, 0
	default:
		m := queue.Member{Path: p.lock.Path, Writer: p.writer, Names: p.lock.names(a.client), AllowForeign: a.client.machine.n%2 == 1}
		if p.shared {
			m.Kind = queue.Shared
		}
		if m.Names.Layout == queue.Custom {
			s.Delay = 0
		}
		s.Members = append(s.Members, m)
	}
}

// size returns the number of znodes of the part.
func (p *part) size() int {
	switch {
	case p.lock.Family == semaphores:
		return p.permits
	case p.lock.Names.Layout == queue.Mixed:
		return 2
	}
	return 1
}
