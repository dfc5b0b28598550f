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
	max     int
	maxSize int // of all slots together; 0 means no limit

	mu   sync.Mutex // guards what follows
	used []*slot    // oldest first
	size int        // of all used slots
}

// slot is a slot in use.
type slot struct {
	addr    netip.Addr
	size    int
	evicted chan struct{} // closed when another stream needs the slot
}

// acquire returns a slot for addr. If none is free, it evicts the oldest slot of the
// address with the most slots, which counts the new one.
func (p *slots) acquire(addr netip.Addr) *slot { return p.acquireSize(addr, 0) }

// acquireSize is acquire for a slot with a size. It also evicts slots while all together are too
// large, but never the only one.
func (p *slots) acquireSize(addr netip.Addr, size int) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	mine := &slot{addr: addr, size: size, evicted: make(chan struct{})}
	p.used = append(p.used, mine)
	p.size += size
	for len(p.used) > p.max || p.maxSize > 0 && p.size > p.maxSize && len(p.used) > 1 {
		i := p.evictIndex()
		close(p.used[i].evicted)
		p.remove(i)
	}
	return mine
}

// remove removes the used slot with this index. The caller holds the mutex.
func (p *slots) remove(i int) {
	p.size -= p.used[i].size
	p.used = slices.Delete(p.used, i, i+1)
}

// tryAcquire returns a slot for addr. It returns nil if none is free, or if half of the
// slots are in use and the address has a quarter of all.
func (p *slots) tryAcquire(addr netip.Addr) *slot {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.used); n >= p.max || n >= p.max/2 && p.count(addr) >= p.max/4 {
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
		p.remove(i)
	}
}

// count returns how many slots an address has. The caller holds the mutex.
func (p *slots) count(addr netip.Addr) (n int) {
	for _, s := range p.used {
		if s.addr == addr {
			n++
		}
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
