package zkserver

import "testing"

// TestLargeRequestInCrumbs has most of a large request come, the rest byte by byte,
// and with its last one the next request's first bytes.
func TestLargeRequestInCrumbs(t *testing.T) {
	s, addr := serveTCP(t, nil)
	c := dialTCP(t, addr)
	all := pipeline(2, 500_000)
	one := len(all) / 2
	c.write(all[:one-60])
	k := s.only()
	held := func(n int) func() bool {
		return func() (yes bool) {
			s.ask(func() { yes = len(k.polled.partial) == n })
			return yes
		}
	}
	until(t, "the first part is read", held(one-60))
	for i := one - 60; i < one-1; i++ {
		c.write(all[i : i+1])
		until(t, "a byte is read", held(i+1))
	}
	c.write(all[one-1 : one+30])
	wantAnswer(t, c)
	until(t, "the next one has begun", held(30))
	c.write(all[one+30:])
	wantAnswer(t, c)
	until(t, "nothing is left", held(0))
	if !c.exists("/n0") || !c.exists("/n1") {
		t.Error("a node is missing")
	}
}
