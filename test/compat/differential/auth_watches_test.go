package differential

import (
	"fmt"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// testWatches lets everybody watch nodes that some may not read, in every way,
// and compares who hears of what (CVE-2024-23944).
func testWatches(t *testing.T, p servers) {
	people := everybody()
	admin := len(people) - 1
	steps := []step{{by: admin, op: wire.OpCreate, rec: create("/watch", world())}}
	for i, entry := range []wire.ACL{
		acl(wire.PermRead, "sasl", "bob"), acl(wire.PermAll&^wire.PermRead, "world", "anyone"), acl(wire.PermRead, "digest", annDigest),
		acl(wire.PermRead, "ip", "127.0.0.1"),
	} {
		top := fmt.Sprintf("/watch/%d", i)
		open := top + "/open"
		steps = append(steps,
			step{by: admin, op: wire.OpCreate, rec: create(top, entry)},
			step{by: admin, op: wire.OpCreate, rec: create(open, world())})
		for by := range people {
			// A recursive watch above what the client may not list is a difference.
			q := &wire.AddWatchRequest{Path: open, Mode: wire.AddWatchPersistentRecursive}
			if by%2 == 1 {
				q = &wire.AddWatchRequest{Path: top, Mode: wire.AddWatchPersistent}
			}
			steps = append(steps,
				step{by: by, op: wire.OpAddWatch, rec: q},
				step{by: by, op: wire.OpExists, rec: &wire.ExistsRequest{Path: top + "/later", Watch: true}},
				step{by: by, op: wire.OpGetData, rec: &wire.GetDataRequest{Path: top, Watch: true}},
				step{by: by, op: wire.OpGetChildren, rec: &wire.GetChildrenRequest{Path: open, Watch: true}})
		}
		steps = append(steps,
			step{by: admin, op: wire.OpCreate, rec: create(top+"/later", entry)},
			step{by: admin, op: wire.OpCreate, rec: create(open+"/secret", entry)},
			step{by: admin, op: wire.OpSetData, rec: &wire.SetDataRequest{Path: top, Version: -1}},
			step{by: admin, op: wire.OpSetData, rec: &wire.SetDataRequest{Path: open + "/secret", Version: -1}},
			step{by: admin, op: wire.OpSetACL, rec: &wire.SetACLRequest{Path: open + "/secret", ACL: []wire.ACL{world()}, Version: -1}},
			step{by: admin, op: wire.OpSetData, rec: &wire.SetDataRequest{Path: open + "/secret", Version: -1}},
			step{by: admin, op: wire.OpDelete, rec: &wire.DeleteRequest{Path: open + "/secret", Version: -1}},
			step{by: admin, op: wire.OpDelete, rec: &wire.DeleteRequest{Path: top + "/later", Version: -1}},
			step{by: admin, op: wire.OpDelete, rec: &wire.DeleteRequest{Path: open, Version: -1}},
			step{by: admin, op: wire.OpDelete, rec: &wire.DeleteRequest{Path: top, Version: -1}})
	}
	same(t, p, people, steps)
}

// Servers that demand an identity, and one that asks for none at all.
func TestRequiredAuthMatchesZooKeeper(t *testing.T) {
	for name, c := range map[string]authConfig{
		"sasl":   {requireSASL: true},
		"digest": {schemes: []string{"digest", "x509"}},
		"skip":   {skipACL: true},
	} {
		if !*long && name == "skip" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			p := startServers(t, c)
			people := append(everybody(), who{"nobody else", everybody()[0].prove})
			var steps []step
			for by := range people {
				if name == "skip" {
					path := fmt.Sprintf("/d%d", by)
					steps = append(steps,
						step{by: by, op: wire.OpCreate, quiet: true, rec: create(path, acl(0, "digest", "a:b"))},
						step{by: by, op: wire.OpGetACL, quiet: true, rec: &wire.GetACLRequest{Path: path}},
						step{by: by, op: wire.OpSetData, quiet: true, rec: &wire.SetDataRequest{Path: path, Version: -1}},
						step{by: by, op: wire.OpDelete, quiet: true, rec: &wire.DeleteRequest{Path: path, Version: -1}})
				}
				op, rec := wire.OpWhoAmI, wire.Record(nil)
				if by == len(people)-1 {
					op, rec = wire.OpCreate, create("/by-nobody", world())
				}
				steps = append(steps, step{by: by, op: op, quiet: true, rec: rec}, step{by: by, op: wire.OpPing, quiet: true})
			}
			same(t, p, people, steps)
			// What a failed exchange is answered with depends on the demand.
			var shown [2]string
			for i, addr := range p.sides() {
				conn, err := connect(addr)
				if err != nil {
					t.Fatal(err)
				}
				got, err := saslAs("bob", "wrong")(conn)
				if err != nil {
					t.Fatal(err)
				}
				shown[i] = fmt.Sprintf("%s, %d bytes", got.header.Err.Name(), len(got.body))
				conn.Close()
			}
			if shown[0] != shown[1] {
				t.Errorf("java: %s, ours: %s", shown[0], shown[1])
			}
		})
	}
}
