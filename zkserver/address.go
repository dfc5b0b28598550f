package zkserver

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/zklock/zklock/internal/netkey"
	"github.com/zklock/zklock/internal/tree"
)

// bound returns the address by whose bounds the connection is held. It is the zero Addr
// for one from inside the process, which no bound by address is for.
func (c *conn) bound() netip.Addr {
	if !c.limited {
		return netip.Addr{}
	}
	return addressKey(c.peer)
}

// shareOf returns what stands for a key of addressKey in the tree: the address of IPv4,
// or the prefix of IPv6, as a number. No prefix in use is as small as an address.
func shareOf(key netip.Addr) tree.Share {
	switch {
	case key.Is4():
		b := key.As4()
		return tree.Share(binary.BigEndian.Uint32(b[:]))
	case key.Is6():
		b := key.As16()
		return tree.Share(binary.BigEndian.Uint64(b[:8]))
	}
	return 0
}

// addressKey returns the address by which connections are counted, see netkey.Of. It is
// the zero Addr for a peer without an address, as on a unix socket.
func addressKey(a net.Addr) netip.Addr {
	var addr netip.Addr
	switch a := a.(type) {
	case peer:
		addr = a.addr()
	case *net.TCPAddr:
		addr = a.AddrPort().Addr()
	}
	return netkey.Of(addr)
}
