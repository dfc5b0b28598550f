package zkserver

import (
	"encoding/binary"
	"net"
	"net/netip"

	"github.com/zklock/zklock/internal/netutil"
	"github.com/zklock/zklock/internal/tree"
)

// limitAddr returns the address whose limits apply to the connection. It returns the zero
// Addr for a connection from inside the process, to which no limit by address applies.
func (c *conn) limitAddr() netip.Addr {
	if !c.limited {
		return netip.Addr{}
	}
	return addressKey(c.peer)
}

// shareKey returns the tree's number for a key of addressKey: the IPv4 address, or the
// prefix of the IPv6 address. No IPv6 prefix in use is as small as an IPv4 address.
func shareKey(key netip.Addr) tree.Share {
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

// addressKey returns the address by which the server counts connections, see netutil.PeerKey. It
// returns the zero Addr for a peer without an address, as on a unix socket.
func addressKey(a net.Addr) netip.Addr {
	var addr netip.Addr
	switch a := a.(type) {
	case peer:
		addr = a.addr()
	case *net.TCPAddr:
		addr = a.AddrPort().Addr()
	}
	return netutil.PeerKey(addr)
}

// peer is the client's end of a connection. It implements net.Addr like the connection's
// RemoteAddr, in less memory.
type peer struct {
	tcp   netip.AddrPort // zero for unix sockets and connections in the process
	other net.Addr       // nil if tcp is valid
}

func peerOf(nc net.Conn) peer {
	remote := nc.RemoteAddr()
	if a, ok := remote.(*net.TCPAddr); ok {
		if ap := a.AddrPort(); ap.IsValid() {
			return peer{tcp: netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())}
		}
	}
	return peer{other: remote}
}

// addr returns the peer's address, or the zero Addr if it has none.
func (p peer) addr() netip.Addr { return p.tcp.Addr() }

// Network implements net.Addr.
func (p peer) Network() string {
	if p.other != nil {
		return p.other.Network()
	}
	return "tcp"
}

// String implements net.Addr.
func (p peer) String() string {
	if p.other != nil {
		return p.other.String()
	}
	return p.tcp.String()
}
