package tree

import (
	"bytes"
	"crypto/sha256"
	"net/netip"
	"slices"

	"github.com/zklock/zklock/internal/wire"
)

// aclIndex answers permission checks for a list. The cost of a check does not depend
// on the length of the texts in the list, and it grows only with the logarithm of the
// number of entries. A multi may check a list fifty thousand times, and an event
// checks it once per watcher.
type aclIndex struct {
	anyone wire.Perm
	// sasl has the permissions of all entries of that scheme, for the user super: see
	// credentials.
	sasl  wire.Perm
	exact []keyPerms // ordered by key
	// nets has the start of each range of addresses with the permissions that the
	// whole range has. A range ends where the next one starts, or with the last
	// address of its family.
	nets []rangePerms
}

// identityKey is the hash of a scheme and an ID. It replaces the ID in comparisons,
// because an ID may be as long as a frame. SHA-256 has no known collisions.
type identityKey [sha256.Size]byte

// compare orders keys.
func (k identityKey) compare(other identityKey) int { return bytes.Compare(k[:], other[:]) }

func newIdentityKey(scheme, id string) identityKey {
	b := make([]byte, 0, 128)
	return sha256.Sum256(append(append(append(b, scheme...), 0), id...))
}

type keyPerms struct {
	key   identityKey
	perms wire.Perm
}

type rangePerms struct {
	start netip.Addr
	perms wire.Perm
}

// newACLIndex parses a list. Entries that match no identity are ignored.
func newACLIndex(list []wire.ACL) aclIndex {
	var x aclIndex
	var nets []netPerms
	for _, a := range list {
		switch a.Scheme {
		case schemeWorld:
			if a.ID == anyone {
				x.anyone |= a.Perms
			}
		case schemeIP:
			if addr, bits, ok := splitIP(a.ID); ok {
				if net, err := addr.Prefix(bits); err == nil {
					nets = append(nets, netPerms{net, a.Perms})
				}
			}
		case schemeSASL:
			x.sasl |= a.Perms
			fallthrough
		case schemeDigest, schemeX509:
			x.exact = append(x.exact, keyPerms{newIdentityKey(a.Scheme, a.ID), a.Perms})
		}
	}
	x.exact = mergeKeys(x.exact)
	x.nets = addressRanges(nets)
	return x
}

// mergeKeys orders a list by key, and combines the permissions of equal keys.
func mergeKeys(list []keyPerms) []keyPerms {
	slices.SortFunc(list, func(a, b keyPerms) int { return bytes.Compare(a.key[:], b.key[:]) })
	merged := list[:0]
	for _, e := range list {
		if last := len(merged) - 1; last >= 0 && merged[last].key == e.key {
			merged[last].perms |= e.perms
			continue
		}
		merged = append(merged, e)
	}
	return merged
}

type netPerms struct {
	net   netip.Prefix
	perms wire.Perm
}

// addressRanges converts nets to ranges. Two nets are disjoint, or one contains the
// other. IPv4 addresses precede IPv6 addresses.
func addressRanges(nets []netPerms) []rangePerms {
	slices.SortFunc(nets, func(a, b netPerms) int {
		if c := a.net.Addr().Compare(b.net.Addr()); c != 0 {
			return c
		}
		return a.net.Bits() - b.net.Bits()
	})
	var ranges, open []rangePerms // open has the last address of each net that is not complete, outermost first
	add := func(start netip.Addr, perms wire.Perm) {
		if last := len(ranges) - 1; last >= 0 && ranges[last].start == start {
			ranges[last].perms = perms
			return
		}
		ranges = append(ranges, rangePerms{start, perms})
	}
	current := func() wire.Perm {
		if len(open) == 0 {
			return 0
		}
		return open[len(open)-1].perms
	}
	closeBefore := func(addr netip.Addr) {
		for len(open) > 0 && (!addr.IsValid() || open[len(open)-1].start.Less(addr)) {
			next := open[len(open)-1].start.Next()
			open = open[:len(open)-1]
			if next.IsValid() {
				add(next, current())
			}
		}
	}
	for _, n := range nets {
		closeBefore(n.net.Addr())
		perms := current() | n.perms
		open = append(open, rangePerms{lastAddr(n.net), perms})
		add(n.net.Addr(), perms)
	}
	closeBefore(netip.Addr{})
	return slices.Clip(ranges)
}

// lastAddr returns the last address of a net.
func lastAddr(net netip.Prefix) netip.Addr {
	b := net.Addr().AsSlice()
	for i := net.Bits(); i < 8*len(b); i++ {
		b[i/8] |= 1 << (7 - i%8)
	}
	addr, _ := netip.AddrFromSlice(b)
	return addr
}

// exactly returns the permissions of the entries with a key.
func (x *aclIndex) exactly(key identityKey) wire.Perm {
	i, ok := slices.BinarySearchFunc(x.exact, key, func(e keyPerms, key identityKey) int { return bytes.Compare(e.key[:], key[:]) })
	if !ok {
		return 0
	}
	return x.exact[i].perms
}

// at returns the permissions of an address. Addresses of one family never match nets
// of the other, not even a net of all addresses.
func (x *aclIndex) at(addr netip.Addr) wire.Perm {
	i, ok := slices.BinarySearchFunc(x.nets, addr, func(r rangePerms, addr netip.Addr) int { return r.start.Compare(addr) })
	if !ok {
		i--
	}
	if i < 0 || x.nets[i].start.BitLen() != addr.BitLen() {
		return 0
	}
	return x.nets[i].perms
}

// permits reports whether the list gives one of the permissions in perm. It does not
// consider the super identity.
func (x *aclIndex) permits(perm wire.Perm, c *credentials) bool {
	if x.anyone&perm != 0 || c.allSASL && x.sasl&perm != 0 {
		return true
	}
	if len(x.nets) > 0 && x.at(c.addr)&perm != 0 {
		return true
	}
	if len(x.exact) < len(c.keys) {
		return slices.ContainsFunc(x.exact, func(e keyPerms) bool { return e.perms&perm != 0 && c.has(e.key) })
	}
	return slices.ContainsFunc(c.keys, func(key identityKey) bool { return x.exactly(key)&perm != 0 })
}

// credentials are the identities of a connection, in the form that permission checks use.
type credentials struct {
	keys []identityKey // of the identities that entries name exactly, in order
	addr netip.Addr
	// With super, everything is permitted. With allSASL, the SASL user is super, and matches
	// all SASL entries, as in Java (SASLAuthenticationProvider.matches).
	super, allSASL bool
}

// newCredentials returns the credentials of identities, of which at most one is an
// address.
func newCredentials(ids []identity) credentials {
	var c credentials
	for _, id := range ids {
		c.add(id)
	}
	return c
}

// add adds an identity.
func (c *credentials) add(id identity) {
	switch id.scheme {
	case schemeSuper:
		c.super = true
	case schemeIP:
		if addr, ok := parseIP(id.id); ok {
			c.addr = addr
		}
	case schemeSASL:
		c.allSASL = c.allSASL || id.id == schemeSuper
		fallthrough
	case schemeDigest, schemeX509:
		key := newIdentityKey(id.scheme, id.id)
		if i, found := slices.BinarySearchFunc(c.keys, key, identityKey.compare); !found {
			c.keys = slices.Insert(c.keys, i, key)
		}
	}
}

// has reports whether one of the identities has the key.
func (c *credentials) has(key identityKey) bool {
	_, found := slices.BinarySearchFunc(c.keys, key, identityKey.compare)
	return found
}
