package tree

import "net/netip"

// Peer is what the transport knows of who is at the other end of a connection.
// The Tree believes it: nothing that a client sends can change it.
type Peer struct {
	// Addr is the address that the connection came from; the zero Addr for a
	// peer without one, such as on a unix socket.
	Addr netip.Addr
	// Share is the address for whose share of the limits it counts.
	Share Share
	// X509 is the subject of the client certificate that the transport has
	// verified, in the form of RFC 2253 as Java's
	// getSubjectX500Principal().getName() gives it; empty without one.
	X509 string
}

// identities appends what is proved by the connection itself to ids. superUser is the
// subject of the certificates whose owners may do everything, empty for none
// (X509AuthenticationProvider.handleAuthentication).
func (p Peer) identities(ids []identity, superUser string) []identity {
	if addr := p.Addr.Unmap().WithZone(""); addr.IsValid() {
		ids = append(ids, identity{schemeIP, addr.String()})
	}
	if p.X509 == "" {
		return ids
	}
	if p.X509 == superUser {
		ids = append(ids, identity{schemeSuper, p.X509})
	}
	return append(ids, identity{schemeX509, p.X509})
}
