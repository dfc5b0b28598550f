package tree

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

func acl(perms wire.Perm, scheme, id string) wire.ACL {
	return wire.ACL{Perms: perms, Scheme: scheme, ID: id}
}

func TestFixACL(t *testing.T) {
	ann, bob := digestID([]byte("ann:1")), digestID([]byte("bob:2"))
	ids := []identity{{schemeIP, "10.1.2.3"}, {schemeSuper, ""}, {schemeDigest, ann}, {schemeDigest, bob}}
	for _, tt := range []struct {
		name string
		list []wire.ACL
		ids  []identity
		want []wire.ACL
		err  wire.ErrCode
	}{
		{"null", nil, ids, nil, wire.ErrInvalidACL},
		{"empty", []wire.ACL{}, ids, nil, wire.ErrInvalidACL},
		{"world", openACL(), nil, openACL(), 0},
		{"world of another id", []wire.ACL{acl(31, "world", "x")}, ids, nil, wire.ErrInvalidACL},
		{"auth", []wire.ACL{acl(5, "auth", "whatever")}, ids, []wire.ACL{acl(5, "digest", ann), acl(5, "digest", bob)}, 0},
		{"auth without identities", []wire.ACL{acl(5, "auth", "")}, ids[:2], nil, wire.ErrInvalidACL},
		{"duplicates", []wire.ACL{acl(1, "ip", "1.2.3.4"), acl(1, "ip", "1.2.3.4"), acl(2, "ip", "1.2.3.4")}, nil,
			[]wire.ACL{acl(1, "ip", "1.2.3.4"), acl(2, "ip", "1.2.3.4")}, 0},
		{"second entry invalid", []wire.ACL{acl(31, "world", "anyone"), acl(31, "x509", "CN=a")}, ids, nil, wire.ErrInvalidACL},
		{"super", []wire.ACL{acl(31, "super", "")}, ids, nil, wire.ErrInvalidACL},
		{"no permissions", []wire.ACL{acl(0, "world", "anyone")}, nil, []wire.ACL{acl(0, "world", "anyone")}, 0},
		{"unknown bits", []wire.ACL{acl(-1, "world", "anyone")}, nil, []wire.ACL{acl(-1, "world", "anyone")}, 0},
		{"digest", []wire.ACL{acl(31, "digest", "a:b")}, nil, []wire.ACL{acl(31, "digest", "a:b")}, 0},
		{"digest without a hash", []wire.ACL{acl(31, "digest", "a")}, nil, nil, wire.ErrInvalidACL},
	} {
		got, err := prepFor(Config{}, tt.ids...).fixACL(tt.list)
		if err != tt.err || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, %s", tt.name, got, err.Name())
		}
	}
}

func TestPermits(t *testing.T) {
	ann := digestID([]byte("ann:1"))
	annIDs := []identity{{schemeIP, "10.1.2.3"}, {schemeDigest, ann}}
	for _, tt := range []struct {
		name string
		list []wire.ACL
		perm wire.Perm
		ids  []identity
		want bool
	}{
		{"no list", nil, wire.PermAdmin, nil, true},
		{"world", openACL(), wire.PermWrite, nil, true},
		{"world, another permission", readACL(), wire.PermWrite, annIDs, false},
		{"one of several permissions", readACL(), wire.PermRead | wire.PermAdmin, nil, true},
		{"digest", []wire.ACL{acl(2, "digest", ann)}, wire.PermWrite, annIDs, true},
		{"another digest", []wire.ACL{acl(2, "digest", "ann:x")}, wire.PermWrite, annIDs, false},
		{"address", []wire.ACL{acl(2, "ip", "10.1.0.0/16")}, wire.PermWrite, annIDs, true},
		{"another network", []wire.ACL{acl(2, "ip", "10.2.0.0/16")}, wire.PermWrite, annIDs, false},
		{"super", []wire.ACL{acl(0, "world", "anyone")}, wire.PermWrite, []identity{{schemeSuper, ""}}, true},
		{"identity of scheme world", []wire.ACL{acl(2, "world", "x")}, wire.PermWrite, []identity{{"world", "x"}}, false},
	} {
		if got := permitted(tt.list, tt.perm, tt.ids); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// permitted interns a list and checks it for identities.
func permitted(list []wire.ACL, perm wire.Perm, ids []identity) bool {
	table, c := newACLTable(), newCredentials(ids)
	return table.intern(list).permits(perm, &c)
}

// TestPermissionChecksReadNoText checks that a permission check does not read the texts of lists
// and identities, which can be a megabyte long. The test removes them after parsing.
func TestPermissionChecksReadNoText(t *testing.T) {
	zeros := strings.Repeat("0", 300_000)
	user := strings.Repeat("u", 60_000)
	digest := user + ":" + "1"
	for _, tt := range []struct {
		name string
		list []wire.ACL
		want bool
	}{
		{"address", []wire.ACL{acl(1, "ip", zeros+"10.1.2.3")}, true},
		{"another address", []wire.ACL{acl(1, "ip", zeros+"9.9.9.1"), acl(1, "ip", zeros+"9.9.9.2")}, false},
		{"net", []wire.ACL{acl(1, "ip", "10.1.0.0/"+zeros+"16")}, true},
		{"digest", []wire.ACL{acl(1, "digest", user+":2"), acl(1, "digest", digest)}, true},
		{"other digests", []wire.ACL{acl(1, "digest", user+":2"), acl(1, "digest", user+":3"), acl(1, "digest", user+":4")}, false},
	} {
		w := newHarness(t, Config{})
		p := w.dial()
		c := w.tree.conns[p.id]
		c.addIdentity(identity{schemeDigest, digest})
		set := w.tree.acls.intern(slices.Clone(tt.list))
		for i := range set.list {
			set.list[i].ID = "removed"
		}
		for i := range c.ids {
			c.ids[i].id = "removed"
		}
		if got := w.tree.may(c, set, wire.PermRead); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		if n := testing.AllocsPerRun(10, func() { w.tree.may(c, set, wire.PermRead) }); n != 0 {
			t.Errorf("%s: a check makes %v allocations", tt.name, n)
		}
	}
}

// TestLongAddressesOfEarlierVersionsAreLoaded: requests cannot store such an entry anymore, but
// data directories may contain it.
func TestLongAddressesOfEarlierVersionsAreLoaded(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	long := acl(31, "ip", strings.Repeat("0", 300_000)+"10.1.2.3")
	p.want(p.mkACL("/a", long), wire.ErrInvalidACL, "create")
	w.tree.commit(&txn{op: wire.OpCreate, path: "/a", acl: []wire.ACL{long}}, w.now, &w.out)
	w.flush()
	w.check()
	fresh := restored(t, Config{}, w.tree)
	c := w.tree.conns[p.id]
	for _, tr := range []*Tree{w.tree, w.shadow, fresh} {
		if !tr.may(c, tr.acls.of(tr.nodes.get("/a")), wire.PermRead) {
			t.Error("the client may not read the node")
		}
	}
	w.peer = Peer{Addr: netip.MustParseAddr("10.1.2.4")}
	q := w.dial()
	_, _, err := q.get("/a", false)
	q.want(err, wire.ErrNoAuth, "get from another address")
}

// TestEachRequestNeedsItsPermission sends each request to a node that grants one permission.
func TestEachRequestNeedsItsPermission(t *testing.T) {
	for _, tt := range []struct {
		name  string
		needs []wire.Perm
		do    func(*peer) wire.ErrCode
	}{
		{"exists", []wire.Perm{wire.PermRead}, func(p *peer) wire.ErrCode { _, err := p.exists("/n", false); return err }},
		{"getData", []wire.Perm{wire.PermRead}, func(p *peer) wire.ErrCode { _, _, err := p.get("/n", true); return err }},
		{"getChildren", []wire.Perm{wire.PermRead}, func(p *peer) wire.ErrCode { _, err := p.children("/n", true); return err }},
		{"getChildren2", []wire.Perm{wire.PermRead}, func(p *peer) wire.ErrCode {
			return p.call(wire.OpGetChildren2, &wire.GetChildren2Request{Path: "/n"}).Err
		}},
		{"getAllChildrenNumber", []wire.Perm{wire.PermRead}, func(p *peer) wire.ErrCode {
			return p.call(wire.OpGetAllChildrenNumber, &wire.GetAllChildrenNumberRequest{Path: "/n"}).Err
		}},
		{"getACL", []wire.Perm{wire.PermRead, wire.PermAdmin}, func(p *peer) wire.ErrCode {
			return p.call(wire.OpGetACL, &wire.GetACLRequest{Path: "/n"}).Err
		}},
		{"setData", []wire.Perm{wire.PermWrite}, func(p *peer) wire.ErrCode { return p.set("/n", "", -1) }},
		{"create", []wire.Perm{wire.PermCreate}, func(p *peer) wire.ErrCode { _, err := p.create("/n/new", 0); return err }},
		{"delete", []wire.Perm{wire.PermDelete}, func(p *peer) wire.ErrCode { return p.remove("/n/c", -1) }},
		{"setACL", []wire.Perm{wire.PermAdmin}, func(p *peer) wire.ErrCode {
			return p.call(wire.OpSetACL, &wire.SetACLRequest{Path: "/n", ACL: openACL(), Version: -1}).Err
		}},
		{"check", []wire.Perm{wire.PermRead}, func(p *peer) wire.ErrCode { return codes(p.multi(opCheck("/n", -1)))[0] }},
	} {
		for perm := wire.PermRead; perm <= wire.PermAdmin; perm <<= 1 {
			for super := range 2 {
				w := newHarness(t, Config{SuperDigest: digestID([]byte("super:man"))})
				p := w.dial()
				p.mk("/n", 0)
				p.mk("/n/c", 0)
				p.call(wire.OpSetACL, &wire.SetACLRequest{Path: "/n", ACL: []wire.ACL{acl(perm, "world", "anyone")}, Version: -1})
				want := wire.ErrNoAuth
				if slices.Contains(tt.needs, perm) || super == 1 {
					want = wire.ErrOK
				}
				if super == 1 {
					p.auth("digest", "super:man")
				}
				if err := tt.do(p); err != want {
					t.Errorf("%s with permission %d, super %d: %s", tt.name, perm, super, err.Name())
				}
				if c := w.tree.Counts(); want == wire.ErrNoAuth && c.Watches != 0 {
					t.Errorf("%s was refused and set a watch", tt.name)
				}
			}
		}
	}
}

func TestGetACLMasksHashes(t *testing.T) {
	w := newHarness(t, Config{})
	p, other := w.dial(), w.dial()
	p.auth("digest", "ann:1")
	list := []wire.ACL{acl(31, "auth", ""), acl(1, "world", "anyone"), acl(16, "ip", "9.9.9.9")}
	p.want(p.mkACL("/n", list...), wire.ErrOK, "create")
	read := func(p *peer) []wire.ACL {
		var resp wire.GetACLResponse
		p.want(p.ask(wire.OpGetACL, &wire.GetACLRequest{Path: "/n"}, &resp), wire.ErrOK, "getACL")
		if resp.Stat != w.tree.nodes.get("/n").stat() {
			t.Errorf("stat %+v", resp.Stat)
		}
		return resp.ACL
	}
	own := []wire.ACL{acl(31, "digest", digestID([]byte("ann:1"))), list[1], list[2]}
	if got := read(p); !slices.Equal(got, own) {
		t.Errorf("the owner sees %v", got)
	}
	if got := read(other); !slices.Equal(got, []wire.ACL{acl(31, "digest", "ann:x"), list[1], list[2]}) {
		t.Errorf("another user sees %v", got)
	}
	p.want(p.call(wire.OpGetACL, &wire.GetACLRequest{Path: "/none"}).Err, wire.ErrNoNode, "getACL")
	w.check()
}

// TestACLsAreShared checks that nodes with equal lists share one, and that the table drops a list
// when no node uses it.
func TestACLsAreShared(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	before := len(w.tree.acls.byKey)
	list := []wire.ACL{acl(31, "ip", "10.0.0.0/8")}
	for _, path := range []string{"/a", "/b", "/c"} {
		p.want(p.mkACL(path, list...), wire.ErrOK, "create")
	}
	if w.tree.nodes.get("/a").acl != w.tree.nodes.get("/c").acl || len(w.tree.acls.byKey) != before+1 {
		t.Error("equal lists are stored twice")
	}
	p.remove("/a", -1)
	p.call(wire.OpSetACL, &wire.SetACLRequest{Path: "/b", ACL: openACL(), Version: -1})
	p.call(wire.OpSetACL, &wire.SetACLRequest{Path: "/c", ACL: list, Version: -1})
	fresh := restored(t, Config{}, w.tree)
	for _, tr := range []*Tree{w.tree, w.shadow, fresh} {
		if got := tr.acls.of(tr.nodes.get("/c")).refs; got != 1 {
			t.Errorf("%d users of a list that one node has", got)
		}
	}
	p.remove("/c", -1)
	if len(w.tree.acls.byKey) != before {
		t.Errorf("%d lists, want %d", len(w.tree.acls.byKey), before)
	}
}

// TestInternAfterRelease checks that a list is in the table once after it was released and
// interned again, also if it is the last one that was interned.
func TestInternAfterRelease(t *testing.T) {
	a := newACLTable()
	list := openACL()
	for range 2 {
		first, second := a.intern(list), a.intern(list)
		found := a.byKey[first.key] == first && *a.sets.at(first.number) == first
		if first != second || !found || first.refs != 2 {
			t.Fatalf("%+v and %+v", first, second)
		}
		a.release(first)
		a.release(second)
		if len(a.byKey) > 0 || a.bytes != 0 {
			t.Fatalf("%d lists of %d bytes are left", len(a.byKey), a.bytes)
		}
	}
}

// TestACLTableIsNeverCopied checks that the table keeps each list at its number, and moves no
// lists when it grows: with millions of lists, other clients would wait.
func TestACLTableIsNeverCopied(t *testing.T) {
	const n = 50*aclBlock + 1
	a := newACLTable()
	if got := allocated(func() {
		for range n {
			a.newNumber()
		}
	}); got > 10*n {
		t.Errorf("numbers for %d lists allocated %d bytes, want at most %d", n, got, 10*n)
	}
	a = newACLTable()
	var sets []*aclSet
	for i := range 2*aclBlock + 1 {
		sets = append(sets, a.intern([]wire.ACL{acl(31, "digest", fmt.Sprint("u:", i))}))
	}
	for i, s := range sets {
		if got := a.of(&node{acl: s.number}); got != s || int(s.number) != i {
			t.Fatalf("list %d has the number %d, where the table has another list", i, s.number)
		}
		a.release(s)
	}
	if s := a.intern(openACL()); int(s.number) >= len(sets) || a.of(&node{acl: s.number}) != s {
		t.Errorf("a free number was not reused: %d", s.number)
	}
}
