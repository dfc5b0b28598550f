// Package netkey says which addresses count as one where each gets a share.
package netkey

import "net/netip"

// Of returns the address by which addr is counted: one for all loopback addresses,
// since one machine has them all, and one for each /64 of IPv6, since one machine may
// use every address in it. The zero Addr stays what it is.
func Of(addr netip.Addr) netip.Addr {
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

// OfText is Of for an address with a port as text, as http.Request's RemoteAddr is. It
// returns the zero Addr for what is none.
func OfText(text string) netip.Addr {
	ap, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.Addr{}
	}
	return Of(ap.Addr())
}
