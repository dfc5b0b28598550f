package sim

import (
	"slices"
	"time"

	"github.com/zklock/zklock/internal/queue"
)

// part is what one claim wants, and then has, of one lock.
type part struct {
	lock    *lock
	shared  bool
	writer  bool
	permits int
	of      int // permits, as the claim's client believes
	token   int64
	nodes   []*znode
	// vanish is how others see that the hold of this part vanished; nil without a
	// lock-delay.
	trace *trace
}

// exclusive reports whether the part stands alone among the holds of its lock.
func (p *part) exclusive() bool {
	return !p.shared && (p.lock.Family != semaphores || p.of == 1 && !p.lock.Quarrel)
}

// kind names what is wanted, for the figures.
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

// claimKind is what a claim is of.
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

// String names the kind.
func (k claimKind) String() string {
	return [...]string{"mutex", "writer", "reader", "semaphore", "node lock", "all", "in order"}[k]
}

// A want is what an actor asks for.
type want struct {
	spec  queue.Spec
	parts []*part
	since time.Duration
}

// kind names what is wanted, for the figures.
func (q *want) kind() claimKind {
	switch {
	case q.spec.InOrder:
		return anInOrder
	case len(q.parts) > 1:
		return anAll
	}
	return q.parts[0].kind()
}

// want draws what the actor wants next: mostly one lock, at times several.
func (a *actor) want() *want {
	w := a.world()
	locks := []*lock{w.locks[w.rng.IntN(len(w.locks))]}
	if w.cfg.Several > 0 && w.rng.IntN(100) < w.cfg.Several {
		if more := w.someLocks(); len(more) > 1 {
			locks = more
		}
	}
	q := &want{since: w.now}
	if a.spree > 0 {
		a.spree--
		q.parts, locks = []*part{{lock: a.again.lock, writer: a.again.writer}}, nil
	}
	for _, l := range locks {
		q.parts = append(q.parts, a.part(l))
	}
	q.spec.InOrder = len(locks) > 1 && w.cfg.Ordered
	q.spec.Try = !w.cfg.Patient && w.oneIn(6)
	q.spec.Data = []byte(`{"host":"` + a.client.name + `"}`)
	if w.cfg.LockDelay > 0 && !w.oneIn(4) {
		q.spec.Delay = w.cfg.LockDelay
	}
	// The members stand first, and the semaphores in the order of their paths.
	slices.SortStableFunc(q.parts, func(x, y *part) int { return x.after() - y.after() })
	if q.spec.InOrder && !w.cfg.Unordered {
		slices.SortStableFunc(q.parts, func(x, y *part) int {
			if d := min(x.after(), 1) - min(y.after(), 1); d != 0 {
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

// after is a part's place in the order of a claim of several: members before
// semaphores, and those in one order for all.
func (p *part) after() int {
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

// part draws what the actor wants of a lock.
func (a *actor) part(l *lock) *part {
	w := a.world()
	p := &part{lock: l}
	switch l.Family {
	case semaphores:
		p.of = l.Of
		if l.Quarrel && a.client.machine.n%3 == 1 {
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

// size is how many znodes the part consists of.
func (p *part) size() int {
	switch {
	case p.lock.Family == semaphores:
		return p.permits
	case p.lock.Names.Layout == queue.Mixed:
		return 2
	}
	return 1
}
