package tree

import (
	"net/netip"
	"slices"

	"github.com/zklock/zklock/internal/wire"
)

// shortACL is how many entries are looked through one by one.
const shortACL = 4

// aclIndex answers for a long list what looking through it would, at a cost that
// does not grow with it: a multi may ask for the permissions of such a list fifty
// thousand times, and an event as often as there are watchers.
type aclIndex struct {
	anyone wire.Perm
	// sasl is what the entries of that scheme give together: see saslMatches.
	sasl  wire.Perm
	exact map[identity]wire.Perm
	nets  map[netip.Prefix]wire.Perm
	// lengths are those that nets has, so that not all are tried.
	lengths []int
}

func newACLIndex(list []wire.ACL) *aclIndex {
	x := &aclIndex{exact: make(map[identity]wire.Perm), nets: make(map[netip.Prefix]wire.Perm)}
	for _, a := range list {
		switch a.Scheme {
		case schemeWorld:
			if a.ID == anyone {
				x.anyone |= a.Perms
			}
		case schemeIP:
			if addr, bits, ok := splitIP(a.ID); ok {
				if net, err := addr.Prefix(bits); err == nil {
					x.nets[net] |= a.Perms
					if !slices.Contains(x.lengths, bits) {
						x.lengths = append(x.lengths, bits)
					}
				}
			}
		case schemeSASL:
			x.sasl |= a.Perms
			fallthrough
		case schemeDigest, schemeX509:
			x.exact[identity{a.Scheme, a.ID}] |= a.Perms
		}
	}
	return x
}

// granted is what the list gives to whoever has the identity id.
func (x *aclIndex) granted(id identity) wire.Perm {
	switch id.scheme {
	case schemeSASL:
		if id.id == schemeSuper {
			return x.sasl
		}
		return x.exact[id]
	case schemeDigest, schemeX509:
		return x.exact[id]
	case schemeIP:
		addr, ok := parseIP(id.id)
		if !ok {
			return 0
		}
		var perms wire.Perm
		for _, bits := range x.lengths {
			if net, err := addr.Prefix(bits); err == nil {
				perms |= x.nets[net]
			}
		}
		return perms
	}
	return 0
}

// permits is the function of this name for an indexed list that is not empty,
// and for identities of which none is super.
func (x *aclIndex) permits(perm wire.Perm, ids []identity) bool {
	if x.anyone&perm != 0 {
		return true
	}
	for _, id := range ids {
		if x.granted(id)&perm != 0 {
			return true
		}
	}
	return false
}
