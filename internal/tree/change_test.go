package tree

import (
	"math"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// versioned is a change of a node with an expected version, and its result.
type versioned struct {
	path    string
	version int32
	want    wire.ErrCode
}

// wantCodes makes each change and checks its result. A failed change is also one transaction.
func (w *harness) wantCodes(name string, change func(path string, version int32) wire.ErrCode, rows []versioned) {
	w.tb.Helper()
	for _, row := range rows {
		before := w.tree.Zxid()
		if err := change(row.path, row.version); err != row.want {
			w.tb.Errorf("%s %q version %d: %s, want %s", name, row.path, row.version, err.Name(), row.want.Name())
		}
		if w.tree.Zxid() != before+1 {
			w.tb.Errorf("%s %q took %d transactions", name, row.path, w.tree.Zxid()-before)
		}
	}
	w.check()
}

func TestDeleteErrors(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mk("/a", wire.ModePersistent)
	p.mk("/a/b", wire.ModePersistent)
	p.mkACL("/locked", wire.ACL{Perms: wire.PermRead | wire.PermCreate, Scheme: "world", ID: "anyone"})
	p.mk("/locked/n", wire.ModePersistent)
	w.wantCodes("delete", p.remove, []versioned{
		{"", -1, wire.ErrBadArguments},
		{"a", -1, wire.ErrBadArguments},
		{"/", -1, wire.ErrBadArguments},
		{"/zookeeper", -1, wire.ErrBadArguments},
		{"/zookeeper/quota", -1, wire.ErrBadArguments},
		{"/zookeeper/config", -1, wire.ErrBadArguments},
		{"/a\x00", -1, wire.ErrBadArguments},
		{"/none", -1, wire.ErrNoNode},
		{"/none/none", -1, wire.ErrNoNode},
		{"/a/", -1, wire.ErrNoNode},
		{"/a", -1, wire.ErrNotEmpty},
		{"/a", 7, wire.ErrBadVersion},
		{"/a/b", 1, wire.ErrBadVersion},
		{"/a/b", -2, wire.ErrBadVersion},
		{"/locked/n", -1, wire.ErrNoAuth},
		{"/locked/none", 5, wire.ErrNoAuth},
		{"/a/b", 0, wire.ErrOK},
		{"/a", -1, wire.ErrOK},
	})
}

func TestSetDataErrors(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mk("/a", wire.ModePersistent)
	p.mkACL("/locked", wire.ACL{Perms: wire.PermAll &^ wire.PermWrite, Scheme: "world", ID: "anyone"})
	w.wantCodes("set", func(path string, version int32) wire.ErrCode { return p.set(path, "y", version) }, []versioned{
		{"", -1, wire.ErrBadArguments},
		{"a", -1, wire.ErrBadArguments},
		{"/a/", -1, wire.ErrBadArguments},
		{"/none", 3, wire.ErrNoNode},
		{"/locked", 3, wire.ErrNoAuth},
		{"/zookeeper/config", -1, wire.ErrNoAuth},
		{"/a", 1, wire.ErrBadVersion},
		{"/a", -2, wire.ErrBadVersion},
		{"/a", 0, wire.ErrOK},
		{"/a", 0, wire.ErrBadVersion},
		{"/a", -1, wire.ErrOK},
		{"/a", 2, wire.ErrOK},
		{"/", -1, wire.ErrOK},
		{"/zookeeper", -1, wire.ErrOK},
	})
}

func TestNextVersion(t *testing.T) {
	for _, tt := range []struct{ current, want, next int32 }{
		{0, 0, 1}, {5, -1, 6}, {math.MaxInt32, -1, math.MinInt32}, {-3, -3, -2}, {-2, -2, 0}, {-1, -1, 0},
	} {
		if next, err := nextVersion(tt.current, tt.want); next != tt.next || err != wire.ErrOK {
			t.Errorf("after %d: %d, %v, want %d", tt.current, next, err, tt.next)
		}
	}
	if _, err := nextVersion(3, 4); err != wire.ErrBadVersion {
		t.Errorf("another version: %v", err)
	}
}

func TestSetACL(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mk("/a", wire.ModePersistent)
	anyone := func(perms wire.Perm) []wire.ACL {
		return []wire.ACL{{Perms: perms, Scheme: "world", ID: "anyone"}}
	}
	for _, tt := range []struct {
		path    string
		acl     []wire.ACL
		version int32
		want    wire.ErrCode
	}{
		{"a", openACL(), -1, wire.ErrBadArguments},
		{"/none", nil, -1, wire.ErrInvalidACL},
		{"/none", openACL(), -1, wire.ErrNoNode},
		{"/a", []wire.ACL{{Perms: 31, Scheme: "auth"}}, -1, wire.ErrInvalidACL},
		{"/a", openACL(), 1, wire.ErrBadVersion},
		{"/a", anyone(wire.PermRead | wire.PermAdmin), 0, wire.ErrOK},
		{"/a", anyone(wire.PermRead), 1, wire.ErrOK},
		{"/a", openACL(), 2, wire.ErrNoAuth},
		{"/zookeeper/config", openACL(), -1, wire.ErrNoAuth},
	} {
		var resp wire.SetACLResponse
		before := w.tree.Zxid()
		err := p.ask(wire.OpSetACL, &wire.SetACLRequest{Path: tt.path, ACL: tt.acl, Version: tt.version}, &resp)
		if err != tt.want {
			t.Errorf("setACL %q: %s, want %s", tt.path, err.Name(), tt.want.Name())
		}
		if err == wire.ErrOK && (resp.Stat.Aversion != tt.version+1 || resp.Stat.Version != 0 || resp.Stat.Mzxid == w.tree.Zxid()) {
			t.Errorf("setACL %q: stat %+v", tt.path, resp.Stat)
		}
		if w.tree.Zxid() != before+1 {
			t.Errorf("setACL took %d transactions", w.tree.Zxid()-before)
		}
	}
	w.check()
}

func TestStatFollowsChanges(t *testing.T) {
	w := newHarness(t, Config{InitialZxid: 1 << 32})
	p := w.dial()
	if s, _ := p.exists("/", false); s != (wire.Stat{Cversion: -1, NumChildren: 1}) {
		t.Errorf("root of a new tree: %+v", s)
	}
	if s, _ := p.exists("/zookeeper", false); s != (wire.Stat{Cversion: -2, NumChildren: 2}) {
		t.Errorf("/zookeeper of a new tree: %+v", s)
	}
	if s, _ := p.exists("/zookeeper/config", false); s != (wire.Stat{Aversion: -1}) {
		t.Errorf("/zookeeper/config of a new tree: %+v", s)
	}
	z, ms := w.tree.Zxid(), w.now.Wall
	p.mk("/a", wire.ModePersistent)
	want := wire.Stat{Czxid: z + 1, Mzxid: z + 1, Pzxid: z + 1, Ctime: ms, Mtime: ms, DataLength: 1}
	expect := func(what string) {
		t.Helper()
		if got, _ := p.exists("/a", false); got != want {
			t.Errorf("%s:\n%+v, want\n%+v", what, got, want)
		}
	}
	expect("created")
	w.advance(1e6)
	p.mk("/a/b", wire.ModePersistent)
	want.Cversion, want.NumChildren, want.Pzxid = 1, 1, z+2
	expect("child created")
	p.set("/a/b", "new", -1)
	expect("child's data set")
	w.advance(5e6)
	p.set("/a", "12345", -1)
	want.Version, want.Mzxid, want.Mtime, want.DataLength = 1, z+4, ms+6, 5
	expect("data set")
	p.remove("/a/b", -1)
	want.Cversion, want.NumChildren, want.Pzxid = 2, 0, z+5
	expect("child deleted")
	p.mk("/a/c", wire.ModeEphemeral)
	p.mk("/a/d", wire.ModeEphemeral)
	want.Cversion, want.NumChildren, want.Pzxid = 4, 2, z+7
	expect("two more children")
	if s, _ := p.exists("/a/c", false); s.EphemeralOwner != p.session {
		t.Errorf("owner %#x", s.EphemeralOwner)
	}
	w.check()
}
