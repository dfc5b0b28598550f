package zkui

import (
	"net/netip"
	"slices"
	"sync"
)

// places are those of streams, or of answers under way. There is a bounded number, and
// no address keeps the others from them.
type places struct {
	most int

	mu    sync.Mutex // guards what follows
	taken []*place   // the longest taken first
}

// place is one that is taken.
type place struct {
	addr netip.Addr
	cut  chan struct{} // closed when another one needs it
}

// take takes a place for addr. If there is none left, the oldest of the address that
// has most is cut, and its place taken.
func (p *places) take(addr netip.Addr) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.taken) >= p.most {
		i := p.oldest()
		close(p.taken[i].cut)
		p.taken = slices.Delete(p.taken, i, i+1)
	}
	mine := &place{addr: addr, cut: make(chan struct{})}
	p.taken = append(p.taken, mine)
	return mine
}

// tryTake takes a place for addr and returns it, nil if there is none left or the
// address has its share: a quarter of all, once half are taken.
func (p *places) tryTake(addr netip.Addr) *place {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.taken); n >= p.most || n >= p.most/2 && p.count()[addr] >= p.most/4 {
		return nil
	}
	mine := &place{addr: addr}
	p.taken = append(p.taken, mine)
	return mine
}

// leave gives a place back, unless it was cut.
func (p *places) leave(mine *place) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.taken, mine); i >= 0 {
		p.taken = slices.Delete(p.taken, i, i+1)
	}
}

// count is how many places each address has. The mutex is held.
func (p *places) count() map[netip.Addr]int {
	n := make(map[netip.Addr]int)
	for _, t := range p.taken {
		n[t.addr]++
	}
	return n
}

// oldest is the oldest place of the address that has most. The mutex is held.
func (p *places) oldest() int {
	n, at := p.count(), 0
	for i, t := range p.taken {
		if n[t.addr] > n[p.taken[at].addr] {
			at = i
		}
	}
	return at
}
