package tree

import (
	"crypto/sha1"
	"encoding/base64"
	"net/netip"
	"strconv"
	"strings"

	"github.com/zklock/zklock/internal/wire"
)

// identity is one thing that is known of who sits behind a connection. The id
// of a digest identity is the user and the hash, not the password.
type identity struct {
	scheme, id string
}

// matches reports whether the entry a is about this identity. World and super
// are no matter of matching, and were decided before.
func (i identity) matches(a wire.ACL) bool {
	if i.scheme != a.Scheme {
		return false
	}
	switch i.scheme {
	case schemeDigest, schemeX509:
		return i.id == a.ID
	case schemeIP:
		return ipMatches(i.id, a.ID)
	case schemeSASL:
		return saslMatches(i.id, a.ID)
	}
	return false
}

// user is the identity's name without its proof, for whoAmI: nothing by which
// somebody could try passwords. Super has none (AuthUtil.getUser).
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

// digestID hashes "user:password" as Java does: "user:" and the Base64 of the
// SHA-1 of all of it. SHA-1 is the protocol's choice; the lists hold it.
func digestID(secret []byte) string {
	user, _, _ := strings.Cut(string(secret), ":")
	sum := sha1.Sum(secret)
	return user + ":" + base64.StdEncoding.EncodeToString(sum[:])
}

// validDigestID wants "user:hash". Java's split ignores colons at the end, and
// does not ask whether the hash is one.
func validDigestID(id string) bool {
	id = strings.TrimRight(id, ":")
	return strings.Count(id, ":") == 1
}

// splitIP reads "address" or "address/bits". As in Java, neither the bits nor
// the address need be written in their shortest form, but an IPv6 address may
// not be bracketed or have a zone.
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

// parseIP reads an address; four decimal numbers may have leading zeros, which
// netip refuses and Java takes. They are decimal all the same, never octal.
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

// validIPExpr reports whether expr can stand in an access control list.
func validIPExpr(expr string) bool {
	_, _, ok := splitIP(expr)
	return ok
}

// ipMatches reports whether the address id lies within expr. Addresses of one
// family are never within a range of the other, not even of all of it.
func ipMatches(id, expr string) bool {
	addr, bits, ok := splitIP(expr)
	if !ok {
		return false
	}
	have, ok := parseIP(id)
	if !ok || have.BitLen() != addr.BitLen() {
		return false
	}
	prefix, err := addr.Prefix(bits)
	return err == nil && prefix.Contains(have)
}
