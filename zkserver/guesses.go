package zkserver

import (
	"encoding/binary"
	"hash/maphash"
	"net/netip"
	"slices"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// Bounds of guessing passwords of users. The password of a session needs none: it has
// 128 random bits, and to delay a client that resumes its session would cost locks.
const (
	// guessFree is how many credentials an address may show before it is slowed
	// down, and guessForgiven the time in which one of them is forgiven.
	guessFree     = 64
	guessForgiven = time.Second
	// guessStep is what each further one adds to the time between two attempts, up
	// to guessPause.
	guessStep  = time.Millisecond
	guessPause = 100 * time.Millisecond
	// guessMemory is how many credentials of an address are known again: a client
	// that reconnects with the same ones is not guessing.
	guessMemory = 64
	// guessAddresses bounds the addresses that are remembered.
	guessAddresses = 10_000
)

// guesses delays attempts to authenticate, by address. It belongs to the loop.
//
// It can't tell a wrong digest password from a right one: either is an identity, and
// only an ACL says which one is of use. So credentials count that the address did not
// show before, and failures of SASL. Once there are many, each attempt of the address
// waits, the right ones as well: else the wait would tell them apart.
type guesses struct {
	seed maphash.Seed
	by   map[netip.Addr]*guesser
}

// guesser is one address.
type guesser struct {
	strikes  int
	forgiven time.Duration // when strikes was brought up to date
	next     time.Duration // no attempt is looked at before
	known    []uint64      // hashes of credentials, the last shown last
}

// isProof reports whether a request is an attempt to authenticate.
func isProof(frame []byte) bool {
	if len(frame) < 8 {
		return false
	}
	op := wire.OpCode(int32(binary.BigEndian.Uint32(frame[4:])))
	return op == wire.OpAuth || op == wire.OpSASL
}

// wait returns how long an attempt from addr has to wait. If that is 0, the attempt
// must be made, and be told to note.
func (g *guesses) wait(addr netip.Addr, now time.Duration) time.Duration {
	who := g.by[addr]
	if who == nil {
		return 0
	}
	if now < who.next {
		return who.next - now
	}
	who.forgive(now)
	pause := guessStep * time.Duration(who.strikes-guessFree)
	who.next = now + min(max(pause, 0), guessPause)
	return 0
}

// note counts an attempt that was made. failed says that the server refused it.
func (g *guesses) note(addr netip.Addr, frame []byte, failed bool, now time.Duration) {
	op := wire.OpCode(int32(binary.BigEndian.Uint32(frame[4:])))
	if op == wire.OpSASL && !failed {
		return // a step of a dialog, or its success
	}
	who := g.of(addr, now)
	if op == wire.OpAuth && !failed && who.knows(maphash.Bytes(g.seed, frame[4:])) {
		return
	}
	who.forgive(now)
	who.strikes = min(who.strikes+1, guessFree+2*int(guessPause/guessStep))
}

// of returns the guesser at addr.
func (g *guesses) of(addr netip.Addr, now time.Duration) *guesser {
	if who := g.by[addr]; who != nil {
		return who
	}
	if g.by == nil {
		g.seed, g.by = maphash.MakeSeed(), make(map[netip.Addr]*guesser)
	}
	if len(g.by) >= guessAddresses {
		g.shrink(now)
	}
	who := &guesser{forgiven: now}
	g.by[addr] = who
	return who
}

// shrink forgets addresses with nothing against them, and any one if there is none.
func (g *guesses) shrink(now time.Duration) {
	var any netip.Addr
	before := len(g.by)
	for addr, who := range g.by {
		if who.forgive(now); who.strikes == 0 {
			delete(g.by, addr)
		}
		any = addr
	}
	if len(g.by) == before {
		delete(g.by, any)
	}
}

// forgive takes off what time has forgiven.
func (w *guesser) forgive(now time.Duration) {
	n := (now - w.forgiven) / guessForgiven
	w.strikes -= int(min(int64(w.strikes), int64(n)))
	w.forgiven += n * guessForgiven
}

// knows reports whether these credentials were shown lately, and remembers them.
func (w *guesser) knows(credentials uint64) bool {
	i := slices.Index(w.known, credentials)
	if i >= 0 {
		w.known = append(slices.Delete(w.known, i, i+1), credentials)
		return true
	}
	if len(w.known) == guessMemory {
		w.known = slices.Delete(w.known, 0, 1)
	}
	w.known = append(w.known, credentials)
	return false
}

// holdBack reports whether the next request of c is an attempt to authenticate that
// has to wait. Then the loop comes back to c in time; meanwhile it serves the others.
func (s *Server) holdBack(c *conn, frame []byte, now time.Duration) bool {
	if !c.greeted || !isProof(frame) || s.draining() {
		return false
	}
	addr := c.bound()
	if !addr.IsValid() {
		return false
	}
	wait := s.loop.guesses.wait(addr, now)
	if wait == 0 {
		return false
	}
	s.count.delayedProofs.Add(1)
	// The client waits for the server, and need not say anything until it is answered:
	// its session must not end for that.
	s.loop.tree.Heard(c.id, s.now())
	c.until = now + wait
	// It runs once, at most guessPause later. A connection or server that has ended
	// ignores it.
	time.AfterFunc(wait, func() { s.enqueue(c) })
	return true
}

// noteProof counts the request if it was an attempt to authenticate. failures is how
// many of all clients had failed before.
func (s *Server) noteProof(c *conn, frame []byte, failures int64, now time.Duration) {
	if addr := c.bound(); addr.IsValid() && isProof(frame) {
		s.loop.guesses.note(addr, frame, s.loop.tree.Tallies().AuthFailures > failures, now)
	}
}

// heldBack reports whether c waits because of holdBack. A connection that was cut
// waits for nothing.
func (c *conn) heldBack(now time.Duration) bool {
	return c.turn != nil && c.until > now && !c.cut
}
