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

// turns limit how many goroutines work at a time. Each works for an address, and the addresses take
// turns, so that no address waits for all goroutines of another one.
type turns struct {
	max int

	mu      sync.Mutex // guards what follows
	working int
	next    []netip.Addr                     // the addresses with waiters, in order
	waiters map[netip.Addr][]chan<- struct{} // in order; a channel is closed when its turn comes
}

// acquire waits for the turn of a goroutine that works for addr.
func (t *turns) acquire(addr netip.Addr) {
	t.mu.Lock()
	if t.working < t.max { // then none waits
		t.working++
		t.mu.Unlock()
		return
	}
	if t.waiters == nil {
		t.waiters = map[netip.Addr][]chan<- struct{}{}
	}
	mine := make(chan struct{})
	if len(t.waiters[addr]) == 0 {
		t.next = append(t.next, addr)
	}
	t.waiters[addr] = append(t.waiters[addr], mine)
	t.mu.Unlock()
	<-mine
}

// release ends a turn.
func (t *turns) release() {
	t.mu.Lock()
	if len(t.next) == 0 {
		t.working--
		t.mu.Unlock()
		return
	}
	addr := t.next[0]
	t.next = t.next[1:]
	waiters := t.waiters[addr]
	if t.waiters[addr] = waiters[1:]; len(waiters) > 1 {
		t.next = append(t.next, addr)
	} else {
		delete(t.waiters, addr)
	}
	t.mu.Unlock()
	close(waiters[0])
}

// evictIndex returns the index of the slot to evict. The caller holds the mutex.
func (p *slots) evictIndex() int {
	var addrs []netip.Addr
	for _, t := range p.used {
		addrs = append(addrs, t.addr)
	}
	return netutil.Excess(addrs)
}
