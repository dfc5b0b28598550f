package tree

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// prepFor returns a preparer for requests of a client with these identities.
func prepFor(cfg Config, ids ...identity) *preparer {
	return &preparer{t: New(cfg), c: &conn{ids: ids}}
}

// permits is a simple implementation of permission checks, for clients without super.
func permits(list []wire.ACL, perm wire.Perm, ids []identity) bool {
	for _, a := range list {
		if a.Perms&perm == 0 {
			continue
		}
		if a.Scheme == schemeWorld && a.ID == anyone {
			return true
		}
		for _, id := range ids {
			if id.matches(a) {
				return true
			}
		}
	}
	return false
}

// matches reports whether the entry a is for this identity.
func (i identity) matches(a wire.ACL) bool {
	if i.scheme != a.Scheme {
		return false
	}
	switch i.scheme {
	case schemeDigest, schemeX509:
		return i.id == a.ID
	case schemeSASL:
		return i.id == a.ID || i.id == schemeSuper
	case schemeIP:
		addr, bits, ok := splitIP(a.ID)
		have, valid := parseIP(i.id)
		if !ok || !valid || have.BitLen() != addr.BitLen() {
			return false
		}
		net, err := addr.Prefix(bits)
		return err == nil && net.Contains(have)
	}
	return false
}

// wantAgreement fails unless the index and the list give the same answer, and returns it.
func wantAgreement(t *testing.T, list []wire.ACL, perm wire.Perm, ids []identity) bool {
	t.Helper()
	want := permits(list, perm, ids)
	if got := permitted(list, perm, ids); got != want {
		t.Fatalf("%v, permission %d, %v: the index says %v, the list %v", list, perm, ids, got, want)
	}
	return want
}

// TestACLIndexAgreesWithList compares the index and the list for entries of all
// kinds, including invalid ones.
func TestACLIndexAgreesWithList(t *testing.T) {
	r := rand.New(seededRand(7))
	addrs := []identity{
		{schemeIP, "10.1.2.3"}, {schemeIP, "fe80::1"}, {schemeIP, "0.0.0.0"}, {schemeIP, "255.255.255.255"}, {schemeIP, "::"},
		{schemeIP, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}, {schemeIP, "no address"},
	}
	others := []identity{
		{schemeDigest, "ann:h"}, {schemeSASL, "ann"}, {schemeSASL, schemeSuper}, {schemeX509, "CN=ann"}, {schemeWorld, anyone}, {"other", "ann:h"},
	}
	entries := []struct{ scheme, id string }{
		{schemeWorld, anyone}, {schemeWorld, "x"}, {schemeDigest, "ann:h"}, {schemeDigest, "bob:h"}, {schemeSASL, "ann"},
		{schemeSASL, "bob"}, {schemeX509, "CN=ann"}, {schemeX509, "CN=bob"}, {schemeIP, "10.1.2.3"}, {schemeIP, "010.1.2.3/32"},
		{schemeIP, "10.1.2.9/28"}, {schemeIP, "10.1.2.3/8"}, {schemeIP, "0.0.0.0/0"}, {schemeIP, "::/0"}, {schemeIP, "fe80::/10"},
		{schemeIP, "fe80::1/128"}, {schemeIP, "::ffff:10.1.2.3"}, {schemeIP, "10.1.2.3/33"}, {schemeIP, "x"}, {schemeSuper, ""}, {"other", "ann:h"},
	}
	granted := 0
	for range 20_000 {
		list := make([]wire.ACL, 1+r.IntN(4))
		for i := range list {
			e := entries[r.IntN(len(entries))]
			list[i] = acl(wire.Perm(r.IntN(32)), e.scheme, e.id)
		}
		ids := []identity{addrs[r.IntN(len(addrs))], others[r.IntN(len(others))], others[r.IntN(len(others))]}[r.IntN(2) : 1+r.IntN(3)]
		perm := wire.Perm(1 << r.IntN(5))
		if wantAgreement(t, list, perm, ids) {
			granted++
		}
	}
	if granted < 2000 || granted > 18_000 {
		t.Errorf("%d of 20,000 checks permit the access", granted)
	}
}

// TestNetsOfAllLengthsAgreeWithList compares the index and the list for many nets, nested and
// adjacent. A check makes one search, regardless of the number of prefix lengths.
func TestNetsOfAllLengthsAgreeWithList(t *testing.T) {
	r := rand.New(seededRand(8))
	granted := 0
	for range 2000 {
		base := netip.AddrFrom4([4]byte{10, 1, 2, byte(r.IntN(256))})
		if r.IntN(2) == 0 {
			base = netip.MustParseAddr("fe80::ff00").Prev()
		}
		var list []wire.ACL
		for range 1 + r.IntN(40) {
			addr := base
			for range r.IntN(20) {
				addr = addr.Next()
			}
			list = append(list, acl(wire.Perm(1<<r.IntN(5)), "ip", fmt.Sprintf("%s/%d", addr, addr.BitLen()-r.IntN(10)*r.IntN(4))))
		}
		if n := len(newACLIndex(list).nets); n > 2*len(list) {
			t.Fatalf("%d ranges for %d nets", n, len(list))
		}
		for range 20 {
			addr := base
			for range r.IntN(24) {
				addr = addr.Next()
			}
			ids, perm := []identity{{schemeIP, addr.String()}}, wire.Perm(1<<r.IntN(5))
			if wantAgreement(t, list, perm, ids) {
				granted++
			}
		}
	}
	if granted < 4000 || granted > 36_000 {
		t.Errorf("%d of 40,000 checks permit the access", granted)
	}
}

// TestExpandedAuthListsAreBounded sends short requests whose records would be long: each auth
// entry expands to all identities. The log accepts twice the length of a frame.
func TestExpandedAuthListsAreBounded(t *testing.T) {
	const frame = 1 << 16
	auths := func(n int) []wire.ACL {
		list := make([]wire.ACL, n)
		for i := range list {
			list[i] = acl(wire.Perm(i), "auth", "")
		}
		return list
	}
	for _, tt := range []struct {
		name string
		ask  func(p *peer) wire.ErrCode
		want wire.ErrCode
	}{
		{"a list", func(p *peer) wire.ErrCode { return p.mkACL("/a", auths(3000)...) }, wire.ErrInvalidACL},
		{"a new list", func(p *peer) wire.ErrCode {
			return p.ask(wire.OpSetACL, &wire.SetACLRequest{Path: "/", ACL: auths(3000), Version: -1}, new(wire.SetACLResponse))
		}, wire.ErrInvalidACL},
		{"a multi", func(p *peer) wire.ErrCode {
			var ops []wire.MultiOp
			for i := range 1000 {
				ops = append(ops, wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: fmt.Sprint("/", i), ACL: auths(1)}})
			}
			return slices.Min(codes(p.multi(ops...)))
		}, wire.ErrInvalidACL},
		{"a usual list", func(p *peer) wire.ErrCode { return p.mkACL("/a", auths(5)...) }, wire.ErrOK},
	} {
		w := newHarness(t, Config{MaxFrame: frame})
		p := w.dial()
		p.auth("digest", strings.Repeat("u", 3000)+":p")
		if err := tt.ask(p); err != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, err.Name(), tt.want.Name())
		}
		for _, rec := range w.logged {
			if len(rec) > 2*frame {
				t.Errorf("%s: a record of %d bytes", tt.name, len(rec))
			}
		}
	}
}
