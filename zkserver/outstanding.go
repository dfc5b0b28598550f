package zkserver

import (
	"math"
	"sync"
	"sync/atomic"
)

// requestLimit bounds the requests of all connections together that were read and not yet
// answered. Readers wait for room in it, so that many clients, each within its own limits,
// do not fill the memory.
//
// A connection without outstanding requests never waits: clients that let requests pile up,
// or do not read the answers, delay only themselves.
type requestLimit struct {
	maxRequests, maxBytes int64

	requests, bytes atomic.Int64
	waiters         atomic.Int64

	mu   sync.Mutex
	room sync.Cond // requests were answered, or a waiting connection has ended
}

// setLimits sets the limits.
func (p *requestLimit) setLimits(requests int, bytes int64) {
	p.maxRequests, p.maxBytes = int64(requests), bytes
	p.room.L = &p.mu
}

// fits reports whether there is room for a request of n bytes. Readers that ask at the same
// time may exceed the limits by one request each.
func (p *requestLimit) fits(n int64) bool {
	return p.requests.Load() < p.maxRequests && p.bytes.Load()+n <= p.maxBytes
}

// add counts a request of n bytes.
func (p *requestLimit) add(n int64) {
	p.requests.Add(1)
	p.bytes.Add(n)
}

// sub removes requests from the count. The caller must call wake afterwards.
func (p *requestLimit) sub(requests int, bytes int64) {
	p.requests.Add(-int64(requests))
	p.bytes.Add(-bytes)
}

// await waits until a request of n bytes fits or c stops reading.
func (p *requestLimit) await(c *conn, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Announced before the check, so that a concurrent sub is followed by a wake.
	p.waiters.Add(1)
	defer p.waiters.Add(-1)
	for !p.fits(n) && c.waitsForRoom() {
		p.room.Wait()
	}
}

// wake lets waiting readers check again.
func (p *requestLimit) wake() {
	if p.waiters.Load() == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.room.Broadcast()
}

// waitsForRoom reports whether the connection still takes requests and has unanswered ones:
// without these it needs no room.
func (c *conn) waitsForRoom() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.output < outputClosing && c.usage.requests > 0
}

// requestUsage is a connection's part of the outstanding requests. Guarded by its mu.
type requestUsage struct {
	requests int
	bytes    int64
}

// releaseUsage removes the requests of an ended connection from the count. They are never
// answered.
func (c *conn) releaseUsage() {
	c.mu.Lock()
	requests, bytes := c.usage.take(math.MaxInt, math.MaxInt64)
	c.mu.Unlock()
	c.srv.requestLimit.sub(requests, bytes)
}

// take removes up to so many requests and bytes from h, and returns how many it removed.
func (h *requestUsage) take(requests int, bytes int64) (int, int64) {
	requests, bytes = min(requests, h.requests), min(bytes, h.bytes)
	h.requests -= requests
	h.bytes -= bytes
	return requests, bytes
}
