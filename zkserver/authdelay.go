package zkserver

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// Limits on guessing passwords of users. The password of a session needs none: it has 128
// random bits, and delaying a client that resumes its session would cost it its locks.
const (
	// freeAttempts is how many credentials an address may send without delay. attemptDecay
	// is the time after which one of them no longer counts.
	freeAttempts = 256
	attemptDecay = time.Second
	// delayStep is what each further attempt adds to the delay between two attempts, up to
	// maxDelay.
	delayStep = time.Millisecond
	maxDelay  = 100 * time.Millisecond
	// maxKnown is how many credentials of an address the server remembers: a client that
	// reconnects with the same credentials is not guessing.
	maxKnown = 512
	// maxAddresses bounds the addresses that the server remembers, with at most 4 KiB each.
	maxAddresses = 10_000
)

// authDelays delays attempts to authenticate, by address. Only the loop uses it.
//
// It cannot tell a wrong digest password from a right one: either is an identity, and only
// an ACL says which identity has permissions. So it counts credentials that the address did
// not send before, and failures of SASL. After many of them, each attempt from the address
// waits, also one with the right password: otherwise the delay would reveal which one is
// right.
type authDelays struct {
	seed   maphash.Seed
	byAddr map[netip.Addr]*authAttempts
}

// authAttempts are the attempts of one address.
type authAttempts struct {
	counted   int
	updated   time.Duration // when counted was updated
	notBefore time.Duration // the next attempt waits until then
	known     []uint64      // hashes of credentials, the most recent last
}

// isAuth reports whether a request is an attempt to authenticate.
func isAuth(frame []byte) bool {
	if len(frame) < 8 {
		return false
	}
	op := wire.OpCode(int32(binary.BigEndian.Uint32(frame[4:])))
	return op == wire.OpAuth || op == wire.OpSASL
}

// wait returns how long an attempt from addr has to wait. If it returns 0, the caller must
// run the attempt and then call note.
func (g *authDelays) wait(addr netip.Addr, frame []byte, now time.Duration) time.Duration {
	a := g.byAddr[addr]
	if a == nil || slices.Contains(a.known, g.credentials(frame)) {
		return 0
	}
	if now < a.notBefore {
		return a.notBefore - now
	}
	a.decay(now)
	pause := delayStep * time.Duration(a.counted-freeAttempts)
	a.notBefore = now + min(max(pause, 0), maxDelay)
	return 0
}

// note counts an attempt. failed reports that the server refused it.
func (g *authDelays) note(addr netip.Addr, frame []byte, failed bool, now time.Duration) {
	op := wire.OpCode(int32(binary.BigEndian.Uint32(frame[4:])))
	if op == wire.OpSASL && !failed {
		return // a step of an exchange, or its success
	}
	a := g.attemptsOf(addr, now)
	if op == wire.OpAuth && !failed && a.remember(g.credentials(frame)) {
		return
	}
	a.decay(now)
	a.counted = min(a.counted+1, freeAttempts+2*int(maxDelay/delayStep))
}

// credentials returns the hash of an attempt. The tokens of SASL are never known: each
// exchange has its own.
func (g *authDelays) credentials(frame []byte) uint64 { return maphash.Bytes(g.seed, frame[4:]) }

// attemptsOf returns the attempts of addr.
func (g *authDelays) attemptsOf(addr netip.Addr, now time.Duration) *authAttempts {
	if a := g.byAddr[addr]; a != nil {
		return a
	}
	if g.byAddr == nil {
		g.seed, g.byAddr = maphash.MakeSeed(), make(map[netip.Addr]*authAttempts)
	}
	if len(g.byAddr) >= maxAddresses {
		g.shrink(now)
	}
	a := &authAttempts{updated: now}
	g.byAddr[addr] = a
	return a
}

// shrink removes addresses without counted attempts, or any one if there are none.
func (g *authDelays) shrink(now time.Duration) {
	var last netip.Addr
	before := len(g.byAddr)
	for addr, a := range g.byAddr {
		if a.decay(now); a.counted == 0 {
			delete(g.byAddr, addr)
		}
		last = addr
	}
	if len(g.byAddr) == before {
		delete(g.byAddr, last)
	}
}

// decay removes attempts that are old enough from the count.
func (a *authAttempts) decay(now time.Duration) {
	n := (now - a.updated) / attemptDecay
	a.counted -= int(min(int64(a.counted), int64(n)))
	a.updated += n * attemptDecay
}

// remember reports whether the address sent these credentials recently, and remembers them.
func (a *authAttempts) remember(credentials uint64) bool {
	i := slices.Index(a.known, credentials)
	if i >= 0 {
		a.known = append(slices.Delete(a.known, i, i+1), credentials)
		return true
	}
	if len(a.known) == maxKnown {
		a.known = slices.Delete(a.known, 0, 1)
	}
	a.known = append(a.known, credentials)
	return false
}

// delayAuth reports whether the next request of c is an attempt to authenticate that has to
// wait. If so, c becomes ready when the wait ends; meanwhile the loop serves other
// connections.
func (s *Server) delayAuth(c *conn, frame []byte, now time.Duration) bool {
	if c.phase != connServing || !isAuth(frame) || s.draining() {
		return false
	}
	addr := c.limitAddr()
	if !addr.IsValid() {
		return false
	}
	wait := s.loop.authDelays.wait(addr, frame, now)
	if wait == 0 {
		return false
	}
	s.count.delayedAuths.Add(1)
	// The client waits for the server and may be silent until the answer arrives: its
	// session must not expire because of that.
	s.loop.tree.KeepAlive(c.id, s.now())
	c.notBefore = now + wait
	// It runs once, at most maxDelay later. A connection or server that has ended ignores
	// it.
	time.AfterFunc(wait, func() { s.markReady(c) })
	return true
}

// countAuth counts the request if it was an attempt to authenticate. failures is the number
// of failed attempts of all clients before it.
func (s *Server) countAuth(c *conn, frame []byte, failures int64, now time.Duration) {
	if addr := c.limitAddr(); addr.IsValid() && isAuth(frame) {
		s.loop.authDelays.note(addr, frame, s.loop.tree.Counters().AuthFailures > failures, now)
	}
}

// authDelayed reports whether c waits because of delayAuth. An aborted connection does not
// wait.
func (c *conn) authDelayed(now time.Duration) bool {
	return c.exchange != nil && c.notBefore > now && c.output != outputAborted
}
