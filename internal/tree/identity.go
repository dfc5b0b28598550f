package tree

import (
	"crypto/sha1"
	"encoding/base64"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/zklock/zklock/internal/wire"
	"github.com/zklock/zklock/internal/x500"
)

// identity is one identity of a connection. The ID of a digest identity is the user
// and the hash, not the password.
type identity struct {
	scheme, id string
}

// user returns the identity's name without its proof, for whoAmI, so that nothing in
// it can be used to test passwords. Super has no name (AuthUtil.getUser).
func (i identity) user() string {
	switch i.scheme {
	case schemeDigest:
		name, _, _ := strings.Cut(i.id, ":")
		return name
	case schemeSuper:
		return ""
	}
	return i.id
}

// digestID hashes "user:password" as Java does: "user:" and the Base64 of the SHA-1
// of the whole text. The protocol and the stored lists prescribe SHA-1.
func digestID(secret []byte) string {
	user, _, _ := strings.Cut(string(secret), ":")
	sum := sha1.Sum(secret)
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// validDigestID reports whether id has the form "user:hash". Like Java's split, it
// ignores colons at the end, and it does not check the hash.
func validDigestID(id string) bool {
	id = strings.TrimRight(id, ":")
	return strings.Count(id, ":") == 1
}

// splitIP parses "address" or "address/bits". As in Java, the bits and the address
// need not be in their shortest form, but an IPv6 address may have neither brackets
// nor a zone.
func splitIP(expr string) (netip.Addr, int, bool) {
	text, mask, masked := strings.Cut(expr, "/")
	addr, ok := parseIP(text)
	if !ok {
		return netip.Addr{}, 0, false
	}
	bits := addr.BitLen()
	if masked {
		n, err := strconv.Atoi(mask)
		if err != nil || n < 0 || n > bits {
			return netip.Addr{}, 0, false
		}
		bits = n
	}
	return addr, bits, true
}

// parseIP parses an address. Its four decimal numbers may have leading zeros, which
// netip refuses and Java accepts. They are always decimal, never octal.
func parseIP(text string) (netip.Addr, bool) {
	if parts := strings.Split(text, "."); len(parts) == 4 && !strings.Contains(text, ":") {
		var b [4]byte
		for i, p := range parts {
			n, err := strconv.Atoi(p)
			if err != nil || n < 0 || n > 255 {
				return netip.Addr{}, false
			}
			b[i] = byte(n)
		}
		return netip.AddrFrom4(b), true
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return netip.Addr{}, false
	}
	return addr, true
}

// maxIPExpr is the maximum length of an address or net in a request. The longest one
// without redundant zeros has 49 bytes. Java has no limit.
const maxIPExpr = 64

// validIPExpr reports whether expr is valid in an access control list.
func validIPExpr(expr string) bool {
	if len(expr) > maxIPExpr {
		return false
	}
	_, _, ok := splitIP(expr)
	return ok
}

// The schemes of identities and access control entries. World and auth occur only in
// lists, and super only in identities: no request can put it into a list.
const (
	schemeWorld  = "world"
	schemeAuth   = "auth"
	schemeIP     = "ip"
	schemeDigest = "digest"
	schemeSASL   = "sasl"
	schemeX509   = "x509"
	schemeSuper  = "super"
	// schemeEnsemble proves nothing about a client. With it, a client names the
	// ensemble that it expects.
	schemeEnsemble = "ensemble"
	anyone         = "anyone"
)

// provides reports whether the server can verify identities of a scheme
// (ProviderRegistry). Java has sasl and x509 if they are configured. If a client has
// a certificate, this server accepts certificates.
func (t *Tree) provides(scheme string, ids []identity) bool {
	switch scheme {
	case schemeIP, schemeDigest:
		return true
	case schemeSASL:
		if t.cfg.AuthProviders == nil {
			return t.cfg.SASLUsers != nil
		}
	case schemeX509:
		if slices.ContainsFunc(ids, func(i identity) bool { return i.scheme == schemeX509 }) {
			return true
		}
		if t.cfg.AuthProviders == nil {
			return t.cfg.X509SuperUser != ""
		}
	case schemeEnsemble:
	default:
		return false
	}
	return slices.Contains(t.cfg.AuthProviders, scheme)
}

// provesIdentity reports whether an identity of a scheme identifies a user, so that
// "auth" in a list includes it (AuthenticationProvider.isAuthenticated). An address
// identifies no user, and super belongs to no provider.
func provesIdentity(scheme string) bool {
	return scheme == schemeDigest || scheme == schemeSASL || scheme == schemeX509
}

// validID reports whether an entry's ID is valid for its scheme
// (AuthenticationProvider.isValid).
func (t *Tree) validID(a wire.ACL) bool {
	switch a.Scheme {
	case schemeDigest:
		return validDigestID(a.ID)
	case schemeIP:
		return validIPExpr(a.ID)
	case schemeSASL:
		return validSASLID(a.ID)
	case schemeX509:
		t.steps += len(a.ID) / namePerStep
		return !t.exhausted() && x500.Valid(a.ID)
	}
	return false
}

// validSASLID reports whether id has the form name, service@REALM, or
// service/host@REALM (KerberosName).
func validSASLID(id string) bool {
	before, realm, ok := strings.Cut(id, "@")
	return !ok || !strings.ContainsAny(realm, "/@") && strings.Count(before, "/") <= 1
}

// Peer is what the transport knows about the other end of a connection. The Tree
// trusts it, because nothing that a client sends can change it.
type Peer struct {
	// Addr is the address of the peer, or the zero Addr for a peer without one, such
	// as on a unix socket.
	Addr netip.Addr
	// Share identifies the address for the limits per address.
	Share Share
	// X509 is the subject of the client certificate that the transport has verified,
	// in the RFC 2253 form of Java's getSubjectX500Principal().getName(). It is empty
	// without a certificate.
	X509 string
}

// identities appends the identities that the connection itself proves to ids.
// superUser is the subject of certificates whose owners may do everything, or ""
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
