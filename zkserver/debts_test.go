package zkserver

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// TestDearConnectionsGoLast: connections without debts go first, then those of an
// address in debt, then those in debt themselves, for as long as their turns took.
func TestDearConnectionsGoLast(t *testing.T) {
	s := &Server{}
	s.loop.debts = make(map[debtor]time.Duration)
	from := func(addr string) *conn {
		return &conn{peer: peer{tcp: netip.AddrPortFrom(netip.MustParseAddr(addr), 1)}, limited: true}
	}
	dear, other, shared, good := from("192.0.2.1"), from("192.0.2.2"), from("192.0.2.1"), from("192.0.2.3")
	order := func(at time.Duration) ([]*conn, int) {
		conns := []*conn{dear, shared, other, good}
		free := s.byDebt(conns, at)
		return conns, free
	}
	s.owe(good, dearTurn-1, time.Second)
	if conns, free := order(time.Second); free != 4 || conns[0] != dear {
		t.Error("cheap turns make debts")
	}
	s.owe(dear, 40*time.Millisecond, time.Second)
	s.owe(other, 10*time.Millisecond, time.Second)
	if conns, free := order(time.Second); free != 2 || !slices.Equal(conns, []*conn{good, shared, dear, other}) {
		t.Errorf("%d of %v are not in debt", free, conns)
	}
	if conns, free := order(time.Second + 20*time.Millisecond); free != 3 || !slices.Equal(conns, []*conn{other, good, shared, dear}) {
		t.Errorf("later %d of %v are not in debt", free, conns)
	}
	if order(time.Second + 40*time.Millisecond); len(s.loop.debts) != 0 {
		t.Errorf("debts are kept: %v", s.loop.debts)
	}
	for range 100 {
		s.owe(dear, time.Second, time.Minute)
	}
	if order(time.Minute + mostDebt); len(s.loop.debts) != 0 {
		t.Error("a debt lasts without bound")
	}
	unix := &conn{peer: peer{other: &net.UnixAddr{}}, limited: true}
	s.owe(unix, time.Second, time.Minute)
	if other := (&conn{peer: unix.peer, limited: true}); s.debt(unix) != ownDebt || s.debt(other) != noDebt {
		t.Error("clients without an address share a debt")
	}
}
