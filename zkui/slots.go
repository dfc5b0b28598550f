package zkui

import (
	"net/netip"
	"slices"
	"sync"

	"github.com/zklock/zklock/internal/netutil"
)

// slots limit the number of streams, of waits, or of responses in progress, so that no address can
// take them all.
type slots struct {
	max int

	mu   sync.Mutex // guards what follows
	used []*slot    // oldest first
}

// slot is a slot in use.
type slot struct {
	addr    netip.Addr
	evicted chan struct{} // closed when another stream needs the slot
}

// acquire returns a slot for addr. If none is free, it evicts the oldest slot of the
// address with the most slots, which counts the new one.
func (p *slots) acquire(addr netip.Addr) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	mine := &slot{addr: addr, evicted: make(chan struct{})}
	p.used = append(p.used, mine)
	if len(p.used) > p.max {
		i := p.evictIndex()
		close(p.used[i].evicted)
		p.used = slices.Delete(p.used, i, i+1)
	}
	return mine
}

// tryAcquire returns a slot for addr. It returns nil if none is free, or if half of the
// slots are in use and the address has a quarter of all.
func (p *slots) tryAcquire(addr netip.Addr) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.used); n >= p.max || n >= p.max/2 && p.countByAddr()[addr] >= p.max/4 {
		return nil
	}
	mine := &slot{addr: addr}
	p.used = append(p.used, mine)
	return mine
}

// release frees a slot, unless it was evicted.
func (p *slots) release(mine *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.used, mine); i >= 0 {
		p.used = slices.Delete(p.used, i, i+1)
	}
}

// countByAddr returns how many slots each address has. The caller holds the mutex.
func (p *slots) countByAddr() map[netip.Addr]int {
	n := make(map[netip.Addr]int)
	for _, t := range p.used {
		n[t.addr]++
	}
	return n
}

// evictIndex returns the index of the slot to evict. The caller holds the mutex.
func (p *slots) evictIndex() int {
	var addrs []netip.Addr
	for _, t := range p.used {
		addrs = append(addrs, t.addr)
	}
	return netutil.Excess(addrs)
}
