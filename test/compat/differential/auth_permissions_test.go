package differential

import (
	"fmt"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// attempt is a request for the node at a path.
type attempt struct {
	name string
	op   wire.OpCode
	rec  func(path string) wire.Record
}

// attempts returns requests with and without a required permission.
func attempts() []attempt {
	open := []wire.ACL{world()}
	sub := func(ops ...wire.MultiOp) *wire.MultiRequest { return &wire.MultiRequest{Ops: ops} }
	return []attempt{
		{"exists", wire.OpExists, func(p string) wire.Record { return &wire.ExistsRequest{Path: p} }},
		{"getData", wire.OpGetData, func(p string) wire.Record { return &wire.GetDataRequest{Path: p} }},
		{"getChildren", wire.OpGetChildren, func(p string) wire.Record { return &wire.GetChildrenRequest{Path: p} }},
		{"getChildren2", wire.OpGetChildren2, func(p string) wire.Record { return &wire.GetChildren2Request{Path: p} }},
		{"number", wire.OpGetAllChildrenNumber, func(p string) wire.Record { return &wire.GetAllChildrenNumberRequest{Path: p} }},
		{"getACL", wire.OpGetACL, func(p string) wire.Record { return &wire.GetACLRequest{Path: p} }},
		{"sync", wire.OpSync, func(p string) wire.Record { return &wire.SyncRequest{Path: p} }},
		{"ephemerals", wire.OpGetEphemerals, func(p string) wire.Record { return &wire.GetEphemeralsRequest{PrefixPath: p} }},
		{"multiRead", wire.OpMultiRead, func(p string) wire.Record {
			return &wire.MultiReadRequest{Ops: []wire.MultiOp{
				{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: p}}, {Op: wire.OpGetChildren, Req: &wire.GetChildrenRequest{Path: p}}}}
		}},
		{"setData", wire.OpSetData, func(p string) wire.Record { return &wire.SetDataRequest{Path: p, Version: -1} }},
		{"create", wire.OpCreate, func(p string) wire.Record { return create(p+"/new", open...) }},
		{"create2", wire.OpCreate2, func(p string) wire.Record { return create(p+"/new", open...) }},
		{"container", wire.OpCreateContainer, func(p string) wire.Record {
			return &wire.CreateRequest{Path: p + "/new", ACL: open, Flags: wire.ModeContainer}
		}},
		{"ttl", wire.OpCreateTTL, func(p string) wire.Record {
			return &wire.CreateTTLRequest{Path: p + "/new", ACL: open, Flags: wire.ModePersistentTTL, TTL: 1e9}
		}},
		{"createExisting", wire.OpCreate, func(p string) wire.Record { return create(p+"/c", open...) }},
		{"delete", wire.OpDelete, func(p string) wire.Record { return &wire.DeleteRequest{Path: p + "/c", Version: -1} }},
		{"deleteMissing", wire.OpDelete, func(p string) wire.Record { return &wire.DeleteRequest{Path: p + "/none", Version: -1} }},
		{"deleteItself", wire.OpDelete, func(p string) wire.Record { return &wire.DeleteRequest{Path: p, Version: -1} }},
		{"setACL", wire.OpSetACL, func(p string) wire.Record { return &wire.SetACLRequest{Path: p, ACL: open, Version: -1} }},
		{"setACLWrongVersion", wire.OpSetACL, func(p string) wire.Record { return &wire.SetACLRequest{Path: p, ACL: open, Version: 99} }},
		{"setACLBad", wire.OpSetACL, func(p string) wire.Record { return &wire.SetACLRequest{Path: p, Version: -1} }},
		{"check", wire.OpMulti, func(p string) wire.Record {
			return sub(wire.MultiOp{Op: wire.OpCheck, Req: &wire.CheckVersionRequest{Path: p, Version: -1}})
		}},
		{"multi", wire.OpMulti, func(p string) wire.Record {
			return sub(wire.MultiOp{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: p, Version: -1}},
				wire.MultiOp{Op: wire.OpCreate, Req: create(p+"/new", open...)},
				wire.MultiOp{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: p + "/c", Version: -1}})
		}},
	}
}

// testPermissions sends each request by each identity, for ACLs that give or omit exactly one
// permission to each kind of identity.
func testPermissions(t *testing.T, p servers) {
	entries := []wire.ACL{
		acl(0, "world", "anyone"), acl(0, "digest", annDigest), acl(0, "ip", "127.0.0.1"), acl(0, "ip", "10.0.0.0/8"),
		acl(0, "ip", "127.9.9.9/8"), acl(0, "sasl", "bob"), acl(0, "x509", "CN=bob"),
	}
	all := identities()
	admin := len(all) - 1
	steps := []step{{by: admin, op: wire.OpCreate, rec: create("/perm", world()), quiet: true}}
	n, share := 0, 5
	if *long {
		share = 1
	}
	for _, entry := range entries {
		for i := range 10 {
			entry.Perms = 1 << (i % 5)
			if i >= 5 {
				entry.Perms ^= wire.PermAll
			}
			for by := range all {
				// Each combination sends its share of the requests, unless -long is set.
				for d, attempt := range attempts() {
					if (d+n)%share != 0 {
						continue
					}
					path := fmt.Sprintf("/perm/%d-%s", n, attempt.name)
					steps = append(steps,
						step{by: admin, op: wire.OpMulti, quiet: true, rec: &wire.MultiRequest{Ops: []wire.MultiOp{
							{Op: wire.OpCreate, Req: create(path, world())},
							{Op: wire.OpCreate, Req: create(path+"/c", world())}}}},
						step{by: admin, op: wire.OpSetACL, quiet: true, rec: &wire.SetACLRequest{Path: path, ACL: []wire.ACL{entry}, Version: -1}},
						step{by: by, op: attempt.op, quiet: true, rec: attempt.rec(path)})
				}
				n++
			}
		}
	}
	compareSteps(t, p, all, steps)
	t.Logf("%d requests", len(steps))
}
