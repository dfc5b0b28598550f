// Package netutil has network rules that the client, the server, and the page share:
// which addresses count as one peer, which user is at the other end of a unix socket, which
// address of a host a client uses, which TLS cipher suites they use, which certificate files they
// accept, and how many log lines their peers can cause.
package netutil

import "net/netip"

// PeerKey returns the address by which addr is counted: one for all loopback
// addresses, because one machine has them all, and one for each /64 of IPv6, because
// one machine may use every address in it. It returns the zero Addr for the zero Addr.
func PeerKey(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	switch {
	case addr.IsLoopback():
		return netip.AddrFrom4([4]byte{127, 0, 0, 1})
	case addr.Is6():
		prefix, _ := addr.Prefix(64) // 64 bits always fit
		return prefix.Addr()
	}
	return addr
}

// ParsePeerKey returns the PeerKey of a text with an address and a port, as in
// http.Request.RemoteAddr. It returns the zero Addr if the text is not an address with
// a port.
func ParsePeerKey(text string) netip.Addr {
	ap, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.Addr{}
	}
	return PeerKey(ap.Addr())
}

// Excess returns the index of the connection to close if there are too many: the first, and
// so the oldest, of the address with the most. addrs has the address of each connection.
// No address can then take all connections.
func Excess(addrs []netip.Addr) int {
	count, at := make(map[netip.Addr]int), 0
	for _, a := range addrs {
		count[a]++
	}
	for i, a := range addrs {
		if count[a] > count[addrs[at]] {
			at = i
		}
	}
	return at
}
