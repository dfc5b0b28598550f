package zkserver

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"

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
// prefix of the IPv6 address. No IPv6 prefix in use is as small as an IPv4 address, or as the
// key of a user.
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

// addressKey returns the address by which the server counts connections, see netutil.PeerKey. A
// peer on a unix socket counts by its user. addressKey returns the zero Addr for a peer without
// an address or a user.
func addressKey(a net.Addr) netip.Addr {
	var addr netip.Addr
	switch a := a.(type) {
	case peer:
		if u, ok := a.other.(userAddr); ok {
			return userKey(u.uid)
		}
		addr = a.addr()
	case *net.TCPAddr:
		addr = a.AddrPort().Addr()
	}
	return netutil.PeerKey(addr)
}

// userKey returns the key of a user: an IPv6 prefix that no network has, because ::/8 is
// reserved.
func userKey(uid int) netip.Addr {
	b := [16]byte{3: 1}
	binary.BigEndian.PutUint32(b[4:], uint32(uid))
	return netip.AddrFrom16(b)
}

// mayHaveAll reports whether a key is that of root or of the server's own user, who could also
// end the server: MaxClientConns does not apply to them.
func mayHaveAll(key netip.Addr) bool { return key == userKey(0) || key == userKey(os.Geteuid()) }

// userAddr is the address of a peer on a unix socket whose user is known.
type userAddr struct {
	net.Addr
	uid int
}

// peer is the client's end of a connection. It implements net.Addr like the connection's
// RemoteAddr, in less memory.
type peer struct {
	tcp   netip.AddrPort // zero for unix sockets and connections in the process
	other net.Addr       // nil if tcp is valid; a userAddr if the user is known
}

func peerOf(nc net.Conn) peer {
	remote := nc.RemoteAddr()
	if a, ok := remote.(*net.TCPAddr); ok {
		if ap := a.AddrPort(); ap.IsValid() {
			return peer{tcp: netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())}
		}
	}
	if uid, err := netutil.PeerUID(rawConn(nc)); err == nil {
		remote = userAddr{remote, uid}
	}
	return peer{other: remote}
}

// counted returns what the limits by address count the peer by, as text.
func (p peer) counted() string {
	if u, ok := p.other.(userAddr); ok {
		return fmt.Sprintf("user %d", u.uid)
	}
	return addressKey(p).String()
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
