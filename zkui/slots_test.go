package zkui

import (
	"net/netip"
	"testing"
)

// TestAddressReplacesItsOwnStream checks that an address that opens one stream too many
// loses its own oldest stream, even if another address had as many before.
func TestAddressReplacesItsOwnStream(t *testing.T) {
	p := slots{max: 2}
	quiet := p.acquire(netip.MustParseAddr("10.0.0.1"))
	first := p.acquire(netip.MustParseAddr("10.0.0.2"))
	p.acquire(netip.MustParseAddr("10.0.0.2"))
	select {
	case <-quiet.evicted:
		t.Error("the stream of another address was ended")
	case <-first.evicted:
	default:
		t.Error("no stream was ended")
	}
}

// TestSlotsHaveALimitOfTheirSize checks that the oldest slots of the address with the most are
// evicted until the others are small enough, and that a slot that is too large is not evicted if
// it is the only one.
func TestSlotsHaveALimitOfTheirSize(t *testing.T) {
	p := slots{max: 10, maxSize: 100}
	evicted := func(s *slot) bool {
		select {
		case <-s.evicted:
			return true
		default:
			return false
		}
	}
	quiet := p.acquireSize(netip.MustParseAddr("10.0.0.1"), 40)
	var busy []*slot
	for range 4 {
		busy = append(busy, p.acquireSize(netip.MustParseAddr("10.0.0.2"), 30))
	}
	if evicted(quiet) || !evicted(busy[0]) || !evicted(busy[1]) || evicted(busy[2]) || evicted(busy[3]) {
		t.Errorf("evicted: %v, %v %v %v %v", evicted(quiet), evicted(busy[0]), evicted(busy[1]), evicted(busy[2]), evicted(busy[3]))
	}
	for _, s := range append(busy, quiet) {
		p.release(s)
	}
	if huge := p.acquireSize(netip.MustParseAddr("10.0.0.1"), 1000); p.size != 1000 || evicted(huge) {
		t.Errorf("size %d, evicted: %v", p.size, evicted(huge))
	}
}
