package differential

import (
	"fmt"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// testWatches lets each identity set watches of each kind on nodes that some may not read, and
// compares the events (CVE-2024-23944).
func testWatches(t *testing.T, p servers) {
	all := identities()
	admin := len(all) - 1
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
		for by := range all {
			// A recursive watch above a node that the client may not list is a difference.
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
	compareSteps(t, p, all, steps)
}

// TestRequiredAuthMatchesZooKeeper compares servers that require an identity, and one without ACLs.
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
			all := append(identities(), identity{"another nobody", identities()[0].authenticate})
			var steps []step
			for by := range all {
				if name == "skip" {
					path := fmt.Sprintf("/d%d", by)
					steps = append(steps,
						step{by: by, op: wire.OpCreate, quiet: true, rec: create(path, acl(0, "digest", "a:b"))},
						step{by: by, op: wire.OpGetACL, quiet: true, rec: &wire.GetACLRequest{Path: path}},
						step{by: by, op: wire.OpSetData, quiet: true, rec: &wire.SetDataRequest{Path: path, Version: -1}},
						step{by: by, op: wire.OpDelete, quiet: true, rec: &wire.DeleteRequest{Path: path, Version: -1}})
				}
				op, rec := wire.OpWhoAmI, wire.Record(nil)
				if by == len(all)-1 {
					op, rec = wire.OpCreate, create("/by-nobody", world())
				}
				steps = append(steps, step{by: by, op: op, quiet: true, rec: rec}, step{by: by, op: wire.OpPing, quiet: true})
			}
			compareSteps(t, p, all, steps)
			// The reply to a failed exchange depends on the requirement.
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
