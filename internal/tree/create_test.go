package tree

import (
	"math"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// TestCreateErrors checks each reason to refuse a create, and their precedence.
func TestCreateErrors(t *testing.T) {
	w := newHarness(t, Config{ExtendedTypes: true})
	p := w.dial()
	p.mk("/a", wire.ModePersistent)
	p.mk("/e", wire.ModeEphemeral)
	p.want(p.mkACL("/locked", wire.ACL{Perms: wire.PermRead, Scheme: "world", ID: "anyone"}), wire.ErrOK, "create")
	bad := []wire.ACL{{Perms: 31, Scheme: "nobody", ID: "x"}}
	for _, tt := range []struct {
		path string
		acl  []wire.ACL
		mode wire.CreateMode
		want wire.ErrCode
	}{
		{"/a", openACL(), 0, wire.ErrNodeExists},
		{"/", openACL(), 0, wire.ErrNodeExists},
		{"/zookeeper", openACL(), 0, wire.ErrNodeExists},
		{"/n/n", openACL(), 0, wire.ErrNoNode},
		{"/a/", openACL(), 0, wire.ErrBadArguments},
		{"/none/", openACL(), 0, wire.ErrNoNode},
		{"//", openACL(), 0, wire.ErrBadArguments},
		{"/a//b", openACL(), 0, wire.ErrNoNode},
		{"//b", openACL(), 0, wire.ErrBadArguments},
		{"/a/..", openACL(), 0, wire.ErrBadArguments},
		{"/a/\x01", openACL(), 0, wire.ErrBadArguments},
		{"/a/\x00", openACL(), 0, wire.ErrBadArguments},
		{"/none/\x00", bad, 0, wire.ErrBadArguments},
		{"", openACL(), 0, wire.ErrBadArguments},
		{"a", openACL(), 0, wire.ErrBadArguments},
		{"a/b", openACL(), 0, wire.ErrNoNode},
		{"/n", nil, 0, wire.ErrInvalidACL},
		{"/n", []wire.ACL{}, 0, wire.ErrInvalidACL},
		{"/n", bad, 0, wire.ErrInvalidACL},
		{"/none/n", bad, 0, wire.ErrInvalidACL},
		{"/a", bad, 7, wire.ErrBadArguments},
		{"/n", openACL(), -1, wire.ErrBadArguments},
		{"/n", openACL(), wire.ModePersistentTTL, wire.ErrBadArguments},
		{"/e/n", openACL(), 0, wire.ErrNoChildrenForEphemerals},
		{"/e/n/n", openACL(), 0, wire.ErrNoNode},
		{"/e/..", openACL(), 0, wire.ErrBadArguments},
		{"/locked/n", openACL(), 0, wire.ErrNoAuth},
		{"/locked/..", openACL(), 0, wire.ErrNoAuth},
		{"/locked/n", nil, 0, wire.ErrInvalidACL},
		{"/a/ok", openACL(), 0, wire.ErrOK},
		{"/zookeeper/mine", openACL(), 0, wire.ErrOK},
		{"/zookeeper/config/n", openACL(), 0, wire.ErrNoAuth},
	} {
		before := w.tree.Zxid()
		r := p.call(wire.OpCreate, &wire.CreateRequest{Path: tt.path, ACL: tt.acl, Flags: tt.mode})
		if r.Err != tt.want {
			t.Errorf("create %q, %d entries, mode %d: %s, want %s", tt.path, len(tt.acl), tt.mode, r.Err.Name(), tt.want.Name())
		}
		if r.Zxid != before+1 || w.tree.Zxid() != before+1 {
			t.Errorf("create %q: zxid %d after %d", tt.path, r.Zxid, before)
		}
	}
	w.check()
}

// TestSequenceNumbers: the number is the parent's count of creates before this one. Deletes do
// not count.
func TestSequenceNumbers(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mk("/q", wire.ModePersistent)
	for _, tt := range []struct {
		path string
		mode wire.CreateMode
		want string
	}{
		{"/q/n-", wire.ModePersistentSequential, "/q/n-0000000000"},
		{"/q/plain", wire.ModePersistent, "/q/plain"},
		{"/q/e-", wire.ModeEphemeralSequential, "/q/e-0000000002"},
		{"/q/", wire.ModeEphemeralSequential, "/q/0000000003"},
	} {
		if got := p.mk(tt.path, tt.mode); got != tt.want {
			t.Errorf("create %q gave %q, want %q", tt.path, got, tt.want)
		}
	}
	p.want(p.remove("/q/plain", -1), wire.ErrOK, "delete")
	if _, err := p.create("/q/n-0000000000", 0); err != wire.ErrNodeExists {
		t.Errorf("second node of a name: %v", err)
	}
	if got := p.mk("/q/n-", wire.ModePersistentSequential); got != "/q/n-0000000004" {
		t.Errorf("after a delete and a failure: %q", got)
	}
	if got := p.mk("/", wire.ModePersistentSequential); got != "/0000000001" {
		t.Errorf("at the root: %q", got)
	}
	if _, err := p.create("/none/", wire.ModePersistentSequential); err != wire.ErrNoNode {
		t.Errorf("below a missing node: %v", err)
	}
	w.check()
}

// TestSequenceNumberStopsAtMaximum: as in Java, the counter stops at the end of its range. Numbers
// then repeat.
func TestSequenceNumberStopsAtMaximum(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mk("/q", wire.ModePersistent)
	for _, tr := range []*Tree{w.tree, w.shadow} {
		tr.nodes.get("/q").ensureExtra().creates = math.MaxInt32 - 1
	}
	for i, want := range []string{"/q/a2147483646", "/q/b2147483647", "/q/c2147483647"} {
		if got := p.mk("/q/"+string(rune('a'+i)), wire.ModePersistentSequential); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	before, _ := p.exists("/q", false)
	if _, err := p.create("/q/c", wire.ModePersistentSequential); err != wire.ErrNodeExists {
		t.Errorf("a repeated name: %v", err)
	}
	p.mk("/q/d", wire.ModePersistentSequential)
	if after, _ := p.exists("/q", false); after.Pzxid != before.Pzxid {
		t.Error("pzxid changed although the counter did not")
	}
	for _, tr := range []*Tree{w.tree, w.shadow} {
		tr.nodes.get("/q").ensureExtra().creates = math.MinInt32 + 5
	}
	if got := p.mk("/q/", wire.ModePersistentSequential); got != "/q/-2147483643" {
		t.Errorf("negative number: %q", got)
	}
	w.check()
}

func TestCreateModes(t *testing.T) {
	w := newHarness(t, Config{ExtendedTypes: true})
	p := w.dial()
	for _, tt := range []struct {
		op    wire.OpCode
		mode  wire.CreateMode
		ttl   int64
		want  wire.ErrCode
		owner int64
	}{
		{wire.OpCreate2, wire.ModePersistent, -1, wire.ErrOK, 0},
		{wire.OpCreate2, wire.ModeEphemeral, -1, wire.ErrOK, p.session},
		{wire.OpCreate2, wire.ModeContainer, -1, wire.ErrOK, 0},
		{wire.OpCreate2, wire.ModePersistentTTL, -1, wire.ErrBadArguments, 0},
		{wire.OpCreateContainer, wire.ModeContainer, -1, wire.ErrOK, containerOwner},
		{wire.OpCreateContainer, wire.ModePersistent, -1, wire.ErrOK, containerOwner},
		{wire.OpCreateContainer, wire.ModeEphemeral, -1, wire.ErrOK, containerOwner},
		{wire.OpCreateTTL, wire.ModePersistentTTL, 1, wire.ErrOK, ttlMask | 1},
		{wire.OpCreateTTL, wire.ModePersistentTTL, maxTTL, wire.ErrOK, ttlMask | maxTTL},
		{wire.OpCreateTTL, wire.ModePersistentTTL, maxTTL + 1, wire.ErrBadArguments, 0},
		{wire.OpCreateTTL, wire.ModePersistentTTL, 0, wire.ErrBadArguments, 0},
		{wire.OpCreateTTL, wire.ModePersistentTTL, -1, wire.ErrBadArguments, 0},
		{wire.OpCreateTTL, wire.ModePersistent, 5, wire.ErrBadArguments, 0},
		{wire.OpCreateTTL, wire.ModePersistent, -1, wire.ErrBadArguments, 0},
		{wire.OpCreateTTL, wire.ModePersistentSequentialTTL, 9, wire.ErrOK, ttlMask | 9},
	} {
		path := "/n"
		req := wire.Record(&wire.CreateRequest{Path: path, ACL: openACL(), Flags: tt.mode})
		if tt.op == wire.OpCreateTTL {
			req = &wire.CreateTTLRequest{Path: path, ACL: openACL(), Flags: tt.mode, TTL: tt.ttl}
		}
		var resp wire.Create2Response
		err := p.ask(tt.op, req, &resp)
		if err != tt.want {
			t.Errorf("%s mode %d ttl %d: %s, want %s", tt.op, tt.mode, tt.ttl, err.Name(), tt.want.Name())
		}
		if err != wire.ErrOK {
			continue
		}
		if tt.mode.Sequential() != (resp.Path != path) {
			t.Errorf("%s mode %d made %q", tt.op, tt.mode, resp.Path)
		}
		n := w.tree.nodes.get(resp.Path)
		if n.owner != tt.owner {
			t.Errorf("%s mode %d: stored owner %#x, want %#x", tt.op, tt.mode, n.owner, tt.owner)
		}
		shown := tt.owner
		if kindOf(shown) != ephemeral {
			shown = 0
		}
		if resp.Stat.EphemeralOwner != shown || resp.Stat != n.stat() || resp.Stat.Czxid != w.tree.Zxid() {
			t.Errorf("%s mode %d: stat %+v", tt.op, tt.mode, resp.Stat)
		}
		p.want(p.remove(resp.Path, 0), wire.ErrOK, "delete")
	}
	if c := w.tree.Counts(); c.Containers+c.TTLs+c.Ephemerals != 0 {
		t.Errorf("deleted nodes are still counted: %+v", c)
	}
	w.check()
}

func TestTTLNeedsExtendedTypes(t *testing.T) {
	p := newHarness(t, Config{}).dial()
	req := &wire.CreateTTLRequest{Path: "/t", ACL: openACL(), Flags: wire.ModePersistentTTL, TTL: 5}
	p.want(p.call(wire.OpCreateTTL, req).Err, wire.ErrUnimplemented, "createTTL")
	p.want(p.call(wire.OpCreate, &wire.CreateRequest{Path: "none", Flags: wire.ModePersistentTTL}).Err, wire.ErrUnimplemented, "create")
	if p.closed {
		t.Error("the connection was closed")
	}
}

func TestNullAndEmptyDataDiffer(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	for _, data := range [][]byte{nil, {}, []byte("x")} {
		p.ask(wire.OpCreate, &wire.CreateRequest{Path: "/d", Data: data, ACL: openACL()}, new(wire.CreateResponse))
		got, stat, _ := p.get("/d", false)
		if (got == nil) != (data == nil) || string(got) != string(data) || stat.DataLength != int32(len(data)) {
			t.Errorf("created with %#v, read %#v", data, got)
		}
		p.ask(wire.OpSetData, &wire.SetDataRequest{Path: "/d", Data: data, Version: -1}, new(wire.SetDataResponse))
		if got, _, _ := p.get("/d", false); (got == nil) != (data == nil) {
			t.Errorf("set to %#v, read %#v", data, got)
		}
		w.check()
		p.remove("/d", -1)
	}
}

func TestDeepAndLongPathsAreRestored(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	path := ""
	for range 300 {
		path += "/" + strings.Repeat("d", 10)
		p.mk(path, wire.ModePersistent)
	}
	p.mk("/"+strings.Repeat("n", 500_000), wire.ModePersistent)
	w.check()
	if n := len(restored(t, Config{}, w.tree).Paths()); n != 305 {
		t.Errorf("restored %d nodes, want 305", n)
	}
}

func TestJumpSequence(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mk("/q", wire.ModePersistent)
	p.mk("/q/n-", wire.ModePersistentSequential)
	for _, test := range []struct {
		path string
		next int32
		want wire.ErrCode
	}{
		{"/missing", 5, wire.ErrNoNode},
		{"/q", 0, wire.ErrBadArguments}, // already used
		{"/q", -1, wire.ErrBadArguments},
		{"/q", math.MaxInt32 - 1, wire.ErrOK},
	} {
		before := w.tree.Zxid()
		if err := w.tree.JumpSequence(test.path, test.next, w.now, &w.out); err != test.want {
			t.Errorf("%s to %d: %v, want %v", test.path, test.next, err, test.want)
		}
		if took := w.tree.Zxid() - before; (took == 1) != (test.want == wire.ErrOK) {
			t.Errorf("%s to %d took %d transactions", test.path, test.next, took)
		}
		w.flush() // replays the record in the shadow
	}
	if got := p.mk("/q/n-", wire.ModePersistentSequential); got != "/q/n-2147483646" {
		t.Errorf("the next child is %s", got)
	}
}
