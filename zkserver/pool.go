package zkserver

import (
	"math"
	"sync"
	"sync/atomic"
)

// pool bounds the requests of all connections together that were read and not
// yet answered. Readers wait for room in it, so that a crowd of clients, each
// within its own bounds, does not fill the memory.
//
// A connection with nothing outstanding never waits: clients that let their
// requests pile up, or do not read the answers, hold up only themselves.
type pool struct {
	maxRequests, maxBytes int64

	requests, bytes atomic.Int64
	waiters         atomic.Int64

	mu   sync.Mutex
	room sync.Cond // something was given back, or a connection that may wait has ended
}

// open sets the bounds.
func (p *pool) open(requests int, bytes int64) {
	p.maxRequests, p.maxBytes = int64(requests), bytes
	p.room.L = &p.mu
}

// fits reports whether there is room for a request of n bytes. Several readers
// that ask at a time may exceed the bounds by a request each.
func (p *pool) fits(n int64) bool {
	return p.requests.Load() < p.maxRequests && p.bytes.Load()+n <= p.maxBytes
}

// add counts a request of n bytes.
func (p *pool) add(n int64) {
	p.requests.Add(1)
	p.bytes.Add(n)
}

// sub gives requests back. Whoever calls it calls wake afterwards.
func (p *pool) sub(requests int, bytes int64) {
	p.requests.Add(-int64(requests))
	p.bytes.Add(-bytes)
}

// await waits until a request of n bytes fits or c is to read no more.
func (p *pool) await(c *conn, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Announced before the look, so that whoever gives back afterwards wakes it.
	p.waiters.Add(1)
	defer p.waiters.Add(-1)
	for !p.fits(n) && c.reads() {
		p.room.Wait()
	}
}

// wake makes those who wait look again.
func (p *pool) wake() {
	if p.waiters.Load() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.room.Broadcast()
}

// reads reports whether the connection still takes requests and has some that
// are not answered: one that has none needs no room.
func (c *conn) reads() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.cut && !c.finish && c.pooled.requests > 0
}

// holding is what a connection has in the pool. Guarded by its mu.
type holding struct {
	requests int
	bytes    int64
}

// giveBack returns to the pool what a connection that has ended still has in it: what
// it had read besides is never applied.
func (c *conn) giveBack() {
	c.mu.Lock()
	requests, bytes := c.pooled.take(math.MaxInt, math.MaxInt64)
	c.mu.Unlock()
	c.srv.pool.sub(requests, bytes)
}

// take takes as much out of h as there is of it, and returns that.
func (h *holding) take(requests int, bytes int64) (int, int64) {
	requests, bytes = min(requests, h.requests), min(bytes, h.bytes)
	h.requests -= requests
	h.bytes -= bytes
	return requests, bytes
}
