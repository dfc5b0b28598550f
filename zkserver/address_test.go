package zkserver

import (
	"math"
	"net"
	"net/netip"
	"testing"

	"github.com/zklock/zklock/internal/tree"
)

func TestAddressKey(t *testing.T) {
	for _, test := range []struct{ addr, want string }{
		{"10.1.2.3", "10.1.2.3"},
		{"::ffff:10.1.2.3", "10.1.2.3"},
		{"127.0.0.1", "127.0.0.1"},
		{"127.9.8.7", "127.0.0.1"},
		{"::ffff:127.9.8.7", "127.0.0.1"},
		{"::1", "127.0.0.1"},
		{"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"},
		{"fe80::1%eth0", "fe80::"},
	} {
		a := net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(test.addr), 1234))
		if got := addressKey(a).String(); got != test.want {
			t.Errorf("%s is counted as %s, want %s", test.addr, got, test.want)
		}
		if got := addressKey(peer{tcp: a.AddrPort()}).String(); got != test.want {
			t.Errorf("a peer at %s is counted as %s, want %s", test.addr, got, test.want)
		}
	}
	if got := addressKey(&net.UnixAddr{Name: "/run/zklock.sock"}); got.IsValid() {
		t.Errorf("a unix socket of an unknown user has the address %v", got)
	}
}

// TestUserKey checks that the share of a user differs from the shares of other users and of
// addresses in use.
func TestUserKey(t *testing.T) {
	shares := make(map[tree.Share]string)
	for _, key := range []netip.Addr{
		userKey(0), userKey(1), userKey(1000), userKey(math.MaxUint32),
		netip.MustParseAddr("0.0.0.1"), netip.MustParseAddr("255.255.255.255"), addressKey(&net.TCPAddr{IP: net.IPv6loopback}),
		netip.MustParseAddr("64:ff9b::"), netip.MustParseAddr("2001:db8:1:2::"),
	} {
		share := shareKey(key)
		if other := shares[share]; share == 0 || other != "" {
			t.Errorf("%v has the share of %s", key, other)
		}
		shares[share] = key.String()
	}
}
