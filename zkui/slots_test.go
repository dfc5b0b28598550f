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
