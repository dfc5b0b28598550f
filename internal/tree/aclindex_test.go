package tree

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// prepFor is a check of a request by somebody with identities.
func prepFor(cfg Config, ids ...identity) *prep {
	return &prep{t: New(cfg), c: &conn{ids: ids}}
}

// TestIndexSaysWhatTheListSays asks lists of all kinds of entries, broken ones
// among them, both ways.
func TestIndexSaysWhatTheListSays(t *testing.T) {
	r := rand.New(seededRand(7))
	ids := []identity{
		{schemeIP, "10.1.2.3"}, {schemeIP, "fe80::1"}, {schemeIP, "no address"}, {schemeDigest, "ann:h"},
		{schemeSASL, "ann"}, {schemeSASL, schemeSuper}, {schemeX509, "CN=ann"}, {schemeWorld, anyone}, {"other", "ann:h"},
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
		who := []identity{ids[r.IntN(len(ids))], ids[r.IntN(len(ids))]}[:r.IntN(3)]
		perm := wire.Perm(1 << r.IntN(5))
		want := permits(list, perm, who)
		if got := newACLIndex(list).permits(perm, who); got != want {
			t.Fatalf("%v, permission %d, %v: the index says %v, the list %v", list, perm, who, got, want)
		}
		if want {
			granted++
		}
	}
	if granted < 2000 || granted > 18_000 {
		t.Errorf("%d of 20,000 questions were answered by yes", granted)
	}
}

// A long list is asked by its index, and as before.
func TestLongListPermits(t *testing.T) {
	w := newWorld(t, Config{})
	p := w.dial()
	list := manyACLs(shortACL)
	p.want(p.mkACL("/not", append(list, acl(31, "ip", "10.9.9.9"))...), wire.ErrOK, "create")
	p.want(p.mkACL("/yes", append(list, acl(31, "ip", "10.1.0.0/16"))...), wire.ErrOK, "create")
	_, _, err := p.get("/not", false)
	p.want(err, wire.ErrNoAuth, "get by the list of others")
	_, _, err = p.get("/yes", false)
	p.want(err, wire.ErrOK, "get by its own entry")
	if w.tree.acls.of(w.tree.nodes.get("/not")).index == nil || w.tree.acls.of(w.tree.nodes.get("/yes")).index == nil {
		t.Error("a long list was looked through")
	}
}

// TestExpandedListsAreBounded asks for records far longer than the requests: the
// log has room for twice a frame.
func TestExpandedListsAreBounded(t *testing.T) {
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
			m := new(wire.MultiRequest)
			for i := range 1000 {
				m.Ops = append(m.Ops, wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: fmt.Sprint("/", i), ACL: auths(1)}})
			}
			var resp wire.MultiResponse
			p.want(p.ask(wire.OpMulti, m, &resp), wire.ErrOK, "multi")
			for _, r := range resp.Results {
				if r.Err != wire.ErrOK {
					return r.Err
				}
			}
			return wire.ErrOK
		}, wire.ErrInvalidACL},
		{"what people do", func(p *peer) wire.ErrCode { return p.mkACL("/a", auths(5)...) }, wire.ErrOK},
	} {
		w := newWorld(t, Config{MaxFrame: frame})
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
