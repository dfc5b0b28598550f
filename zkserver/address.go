package zkserver

import (
	"net"
	"net/netip"
)

// addressKey returns the address by which connections are counted: one key for all
// loopback addresses, since one machine has them all, and one for each /64 of IPv6,
// since one machine may use every address in it. It is the zero Addr for a peer without
// an address, as on a unix socket.
func addressKey(a net.Addr) netip.Addr {
	var addr netip.Addr
	switch a := a.(type) {
	case peer:
		addr = a.addr()
	case *net.TCPAddr:
		addr = a.AddrPort().Addr()
	}
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
