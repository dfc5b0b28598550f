package zkserver

import (
	"net/netip"
	"slices"
	"time"
)

const (
	// dearTurn is how long a turn takes at the least that counts as a debt, and
	// mostDebt how long a debt may last.
	dearTurn = 250 * time.Microsecond
	mostDebt = time.Second
)

// debtor is a connection, or an address without one.
type debtor struct {
	conn *conn
	addr netip.Addr
}

// owe notes that c had a turn that took so long and ended at the moment at. For as
// long as that it is in debt, and so is its address: connections without debts go
// first. A client that opens a new connection for each dear request gains nothing.
func (s *Server) owe(c *conn, took, at time.Duration) {
	l := &s.loop
	l.longestTurn = max(l.longestTurn, took)
	if took < dearTurn {
		return
	}
	debtors := []debtor{{conn: c}, {addr: c.bound()}}
	if !debtors[1].addr.IsValid() {
		debtors = debtors[:1]
	}
	for _, d := range debtors {
		l.debts[d] = min(max(l.debts[d], at)+took, at+mostDebt)
	}
}

// byDebt orders connections for a round and keeps their order otherwise: first those
// without debts, then those of an address in debt, then those in debt themselves. It
// returns how many of them are not in debt themselves.
func (s *Server) byDebt(conns []*conn, now time.Duration) int {
	l := &s.loop
	if len(l.debts) == 0 {
		return len(conns)
	}
	for d, until := range l.debts {
		if until <= now {
			delete(l.debts, d)
		}
	}
	slices.SortStableFunc(conns, func(a, b *conn) int { return s.debt(a) - s.debt(b) })
	free := slices.IndexFunc(conns, func(c *conn) bool { return s.debt(c) == ownDebt })
	if free < 0 {
		return len(conns)
	}
	return free
}

const (
	noDebt = iota
	sharedDebt
	ownDebt
)

// debt is which kind of debt c has.
func (s *Server) debt(c *conn) int {
	l := &s.loop
	if _, ok := l.debts[debtor{conn: c}]; ok {
		return ownDebt
	}
	if _, ok := l.debts[debtor{addr: c.bound()}]; ok {
		return sharedDebt
	}
	return noDebt
}
