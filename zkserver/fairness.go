package zkserver

import (
	"math/bits"
	"net/netip"
	"slices"
	"time"
)

const (
	// minCharge is the shortest turn that is charged. maxCharge is how long a charge may
	// last.
	minCharge = 250 * time.Microsecond
	maxCharge = time.Second
	// longChargeFactor multiplies the charge of a turn that took turnTime or longer, or
	// had turnBytes or more. So each of many clients that send such requests is still
	// charged when its next turn comes.
	longChargeFactor = 32
	// byteTime is about how long a byte occupies the disk of the log.
	byteTime = 10 * time.Nanosecond
	// workFactor multiplies the estimated time of a turn. A turn that took longer was
	// interrupted, such as by another process or by the garbage collector.
	workFactor = 4
	// ageUnit is the shortest difference between the ages of two connections that counts.
	ageUnit = 250 * time.Millisecond
	// smallRequest is the size in bytes below which the sizes of requests make no difference.
	smallRequest = 1 << 10
)

// account is what turns are charged to: a connection, or an address.
type account struct {
	conn *conn
	addr netip.Addr
}

// turn is what a connection's turn cost.
type turn struct {
	took time.Duration // on the clock
	work time.Duration // as the tree estimates it, without the bytes
	size int           // bytes of requests, answers, and records
}

// charge records that c had a turn that ended at the time at. c and its address are then
// charged, for the time of the turn and of its bytes or, after a very long turn, for a
// multiple of it: the loop serves uncharged connections first. A client that opens a new
// connection for each expensive request gains nothing.
func (s *Server) charge(c *conn, t turn, at time.Duration) {
	l, bytes := &s.loop, time.Duration(t.size)*byteTime
	l.longestTurn = max(l.longestTurn, t.took)
	took := min(t.took, workFactor*(t.work+bytes))
	cost := took + bytes
	if cost < minCharge {
		return
	}
	c.calmSince = at
	if took >= turnTime || t.size >= turnBytes {
		cost *= longChargeFactor
	}
	accounts := []account{{conn: c}, {addr: c.limitAddr()}}
	if !accounts[1].addr.IsValid() {
		accounts = accounts[:1]
	}
	for _, a := range accounts {
		l.charges[a] = min(max(l.charges[a], at)+cost, at+maxCharge)
	}
}

// orderByCharge orders connections for a round: first those not charged, then those whose
// address is charged, then those charged themselves. Within each group it keeps the order,
// unless the loop takes cheap requests first: see orderCheapFirst. It returns how many connections are in the
// first two groups.
func (s *Server) orderByCharge(conns []*conn, now time.Duration) (free int) {
	l := &s.loop
	for a, until := range l.charges {
		if until <= now {
			delete(l.charges, a)
		}
	}
	if l.cheapFirst {
		s.orderCheapFirst(conns, now)
	}
	if len(l.charges) == 0 {
		return len(conns)
	}
	// Sorting would compare each of many thousand connections several times.
	var charged [connCharged + 1][]*conn
	uncharged := 0
	for _, c := range conns {
		if group := s.chargeOf(c); group != notCharged {
			charged[group] = append(charged[group], c)
		} else {
			conns[uncharged] = c
			uncharged++
		}
	}
	free = uncharged + copy(conns[uncharged:], charged[addressCharged])
	copy(conns[free:], charged[connCharged])
	return free
}

// orderCheapFirst puts connections first whose next request is small, of those the ones for which
// no turn was charged for the longest time, and of similar ones the latest. So a client with
// cheap requests does not wait for many that each send one expensive request, also if nothing
// was charged to them yet. Sorting would take longer.
func (s *Server) orderCheapFirst(conns []*conn, now time.Duration) {
	var byAge, bySize [64][]*conn
	for _, c := range slices.Backward(conns) {
		age := bits.Len64(uint64(max(now-c.calmSince, 0) / ageUnit))
		byAge[age] = append(byAge[age], c)
	}
	for _, similar := range slices.Backward(byAge[:]) {
		for _, c := range similar {
			size := s.sizeClass(c)
			bySize[size] = append(bySize[size], c)
		}
	}
	conns = conns[:0]
	for _, similar := range bySize {
		conns = append(conns, similar...)
	}
}

// sizeClass returns a number that grows with the logarithm of the size of the next request of c,
// and is 1 for small requests. It is determined once for each turn of c.
func (s *Server) sizeClass(c *conn) int {
	if c.nextSize == 0 {
		c.nextSize = uint8(1 + bits.Len64(uint64(max(0, s.inputSize(c))/smallRequest)))
	}
	return int(c.nextSize)
}

// inputSize returns the size of the next request of c in bytes.
func (s *Server) inputSize(c *conn) int {
	p := &c.polled
	if c.phase == connContinuing {
		return c.lastSize
	}
	if c.exchange != nil && c.next < len(c.work.frames) {
		return len(c.work.frame(c.next))
	}
	if p.active {
		var length [4]byte
		n := copy(length[:], p.partial)
		more, _ := s.poll.Load().peek(int(p.fd), length[n:]) // after an error, as if nothing had arrived
		size, _ := frameSize(length[:n+more])
		return int(size)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blockingIO == nil || len(c.in.frames) == 0 {
		return 0
	}
	return len(c.in.frame(0))
}

const (
	notCharged = iota
	addressCharged
	connCharged
)

// chargeOf returns whether c or its address is charged.
func (s *Server) chargeOf(c *conn) int {
	l := &s.loop
	if _, ok := l.charges[account{conn: c}]; ok {
		return connCharged
	}
	if _, ok := l.charges[account{addr: c.limitAddr()}]; ok {
		return addressCharged
	}
	return notCharged
}
