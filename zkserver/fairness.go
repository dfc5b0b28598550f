package zkserver

import (
	"net/netip"
	"slices"
	"time"
)

const (
	// minCharge is the shortest turn that is charged. maxCharge is how long a charge may
	// last.
	minCharge = 250 * time.Microsecond
	maxCharge = time.Second
	// longChargeFactor multiplies the charge of a turn that took turnTime or longer. So
	// each of many clients that send such requests is still charged when its next turn
	// comes.
	longChargeFactor = 32
)

// account is what turns are charged to: a connection, or an address.
type account struct {
	conn *conn
	addr netip.Addr
}

// charge records that c had a turn that took so long and ended at the time at. c and its
// address are then charged, for that long or, after a very long turn, for a multiple of it:
// the loop serves uncharged connections first. A client that opens a new connection for
// each expensive request gains nothing.
func (s *Server) charge(c *conn, took, at time.Duration) {
	l := &s.loop
	l.longestTurn = max(l.longestTurn, took)
	if took < minCharge {
		return
	}
	cost := took
	if took >= turnTime {
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

// orderByCharge sorts connections for a round: first those not charged, then those whose
// address is charged, then those charged themselves. Within each group it keeps the order.
// It returns how many connections are not charged themselves.
func (s *Server) orderByCharge(conns []*conn, now time.Duration) int {
	l := &s.loop
	if len(l.charges) == 0 {
		return len(conns)
	}
	for a, until := range l.charges {
		if until <= now {
			delete(l.charges, a)
		}
	}
	slices.SortStableFunc(conns, func(a, b *conn) int { return s.chargeOf(a) - s.chargeOf(b) })
	free := slices.IndexFunc(conns, func(c *conn) bool { return s.chargeOf(c) == connCharged })
	if free < 0 {
		return len(conns)
	}
	return free
}

// uncharged returns how many connections, in the order of orderByCharge, are not charged,
// and whose addresses are not either.
func (s *Server) uncharged(conns []*conn) int {
	n := slices.IndexFunc(conns, func(c *conn) bool { return s.chargeOf(c) != notCharged })
	if n < 0 {
		return len(conns)
	}
	return n
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
