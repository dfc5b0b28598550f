package tree

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// setQuota creates the nodes of a quota, as zkCli's setquota does.
func (p *peer) setQuota(path, limits string) {
	p.w.tb.Helper()
	for at := 1; at <= len(path); at++ {
		if at == len(path) || path[at] == '/' {
			p.create(quotaPath+path[:at], 0)
		}
	}
	root := quotaPath + path + "/"
	p.want(p.make(root+limitName, limits), wire.ErrOK, "limits")
	p.want(p.make(root+statsName, "count=-1,bytes=-1"), wire.ErrOK, "statistics")
}

// make creates a node with data.
func (p *peer) make(path, data string) wire.ErrCode {
	p.w.tb.Helper()
	return p.ask(wire.OpCreate, &wire.CreateRequest{Path: path, Data: []byte(data), ACL: openACL()}, new(wire.CreateResponse))
}

// usage returns the usage text of a quota.
func (p *peer) usage(path string) string {
	p.w.tb.Helper()
	data, _, err := p.get(quotaPath+path+"/"+statsName, false)
	p.want(err, wire.ErrOK, "statistics")
	return string(data)
}

func TestQuotaUsageFollowsChanges(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mk("/a", 0) // with one byte of data
	p.mk("/a/b", 0)
	p.setQuota("/a", "count=1,bytes=1")
	for _, tt := range []struct {
		what string
		do   func() wire.ErrCode
		want string
	}{
		{"existing nodes", func() wire.ErrCode { return 0 }, "count=2,bytes=2"},
		{"create", func() wire.ErrCode { return p.make("/a/c", "1234") }, "count=3,bytes=6"},
		{"a node with the same prefix", func() wire.ErrCode { return p.make("/ab", "1234") }, "count=3,bytes=6"},
		{"data", func() wire.ErrCode { return p.set("/a/c", "12", -1) }, "count=3,bytes=4"},
		{"data of the node itself", func() wire.ErrCode { return p.set("/a", "", -1) }, "count=3,bytes=3"},
		{"delete", func() wire.ErrCode { return p.remove("/a/b", -1) }, "count=2,bytes=2"},
		{"multi", func() wire.ErrCode {
			p.multi(opCreate("/a/m", 0), opCreate("/a/m/n", 0), opDelete("/a/c", -1))
			return 0
		}, "count=3,bytes=0"},
		{"a multi that fails", func() wire.ErrCode { p.multi(opCreate("/a/x", 0), opDelete("/no", -1)); return 0 }, "count=3,bytes=0"},
		{"ephemeral", func() wire.ErrCode { _, err := w.dial().create("/a/e", wire.ModeEphemeral); return err }, "count=4,bytes=1"},
		{"end of its session", func() wire.ErrCode { return w.peers[w.lastID].call(wire.OpCloseSession, nil).Err }, "count=3,bytes=0"},
		{"usage overwritten", func() wire.ErrCode { return p.set(quotaPath+"/a/"+statsName, "count=7,x=5", -1) }, "count=7,x=5"},
		{"create after that", func() wire.ErrCode { return p.make("/a/y", "") }, "count=8,bytes=-1=;x=5"},
	} {
		p.want(tt.do(), wire.ErrOK, tt.what)
		if got := p.usage("/a"); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
		w.check()
	}
	p.remove(quotaPath+"/a/"+limitName, -1)
	p.make("/a/z", "")
	if got := p.usage("/a"); got != "count=8,bytes=-1=;x=5" {
		t.Errorf("without limits: %q", got)
	}
	p.make(quotaPath+"/a/"+limitName, "count=5")
	p.remove(quotaPath+"/a/"+statsName, -1)
	p.want(p.make("/a/w", ""), wire.ErrOK, "without statistics")
	w.check()
}

// TestQuotaUsageNodeKeepsItsStat checks that counting changes only the data of the usage node, and
// fires no watch.
func TestQuotaUsageNodeKeepsItsStat(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mk("/a", 0)
	p.setQuota("/a", "count=9")
	_, before, _ := p.get(quotaPath+"/a/"+statsName, true)
	zxid := w.tree.Zxid()
	p.make("/a/b", "12345678901234567890")
	_, after, _ := p.get(quotaPath+"/a/"+statsName, false)
	if before.DataLength++; after != before {
		t.Errorf("Stat %+v, want %+v", after, before)
	}
	if w.tree.Zxid() != zxid+1 {
		t.Error("counting took a transaction")
	}
	p.wantEvents()
	checkInvariants(t, w.tree)
}

func TestInnermostQuotaIsUsed(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mk("/a", 0)
	p.mk("/a/b", 0)
	p.setQuota("/a", "count=1")
	p.setQuota("/a/b", "count=1")
	p.mk("/a/b/c", 0)
	p.mk("/a/d", 0)
	if a, b := p.usage("/a"), p.usage("/a/b"); a != "count=3,bytes=3" || b != "count=2,bytes=2" {
		t.Errorf("outer %q, inner %q", a, b)
	}
	// This path does not exist yet.
	p.setQuota("/z", "count=1")
	if got := p.usage("/z"); got != "count=0,bytes=0" {
		t.Errorf("of a missing node: %q", got)
	}
	// A quota of /zookeeper counts its own usage node twice.
	p.setQuota("/zookeeper", "count=1")
	if got := p.usage("/zookeeper"); !strings.HasPrefix(got, "count=16,") {
		t.Errorf("of /zookeeper: %q", got)
	}
	w.check()
}

func TestInvalidQuotaTextIsRefused(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mk("/a", 0)
	p.setQuota("/a", "count=1")
	stats := quotaPath + "/a/" + statsName
	p.mk(quotaPath+"/b", 0)
	for _, bad := range []string{"x", "=", "count", "count=", "count=x", ",count=1", "count=1,,=2", "count=99999999999999999999", "a=1;b"} {
		p.want(p.set(stats, bad, -1), wire.ErrBadArguments, "set "+bad)
		p.want(p.make(quotaPath+"/b/"+limitName, bad), wire.ErrBadArguments, "create "+bad)
	}
	p.want(p.make(quotaPath+"/"+limitName, "count=1"), wire.ErrBadArguments, "limits of no path")
	p.want(p.make(quotaPath+"/"+statsName, "count=1"), wire.ErrBadArguments, "statistics of no path")
	null := &wire.SetDataRequest{Path: stats, Version: -1}
	p.want(p.ask(wire.OpSetData, null, new(wire.SetDataResponse)), wire.ErrBadArguments, "null")
	for _, good := range []string{"", ",;", "count=1,", "count=-5;bytes==7", "x=+3", "count=1,bytes=5=;a=1;b=2"} {
		p.want(p.set(stats, good, -1), wire.ErrOK, "set "+good)
	}
	p.want(p.make("/"+limitName, "x"), wire.ErrOK, "the name outside of /zookeeper/quota")
	w.check()
}

func TestHardQuotaIsEnforced(t *testing.T) {
	for _, enforce := range []bool{false, true} {
		w := newHarness(t, Config{EnforceQuota: enforce})
		p := w.dial()
		p.mk("/a", 0)
		p.setQuota("/a", "count=1,bytes=1=;countHardLimit=3;byteHardLimit=10")
		p.want(p.make("/a/b", "1234"), wire.ErrOK, "above the soft limit")
		want := wire.ErrOK
		if enforce {
			want = wire.ErrQuotaExceeded
		}
		p.want(p.set("/a/b", "1234567890", -1), want, "bytes by data")
		p.want(p.set("/a/b", "1", -1), wire.ErrOK, "less data")
		p.want(p.make("/a/c", "123456789"), want, "bytes by a node")
		if !enforce {
			continue
		}
		p.want(p.make("/a/c", ""), wire.ErrOK, "up to the limit")
		p.want(p.make("/a/d", ""), wire.ErrQuotaExceeded, "a node too many")
		if got := codes(p.multi(opCreate("/n", 0), opCreate("/a/d", 0))); got[1] != wire.ErrQuotaExceeded {
			t.Errorf("multi: %v", got)
		}
		// A multi cannot use the space that it frees.
		if got := codes(p.multi(opDelete("/a/c", -1), opCreate("/a/d", 0))); got[1] != wire.ErrQuotaExceeded {
			t.Errorf("multi: %v", got)
		}
		p.want(p.remove("/a/c", -1), wire.ErrOK, "delete")
		p.want(p.make("/a/d", ""), wire.ErrOK, "a node after a delete")
		p.want(p.make("/b", "1234567890123"), wire.ErrOK, "a node without a quota")
		w.check()
	}
}

// TestQuotaOfClosedNodeNeedsAdmin: a quota shows the number of nodes below a node, and may refuse
// creates there.
func TestQuotaOfClosedNodeNeedsAdmin(t *testing.T) {
	w := newHarness(t, Config{EnforceQuota: true})
	ann, stranger := w.dial(), w.dial()
	ann.auth("digest", "ann:secret")
	closed := wire.ACL{Perms: wire.PermAll, Scheme: "auth"}
	ann.want(ann.mkACL("/team", closed), wire.ErrOK, "the closed node")
	for _, path := range []string{"/team", "/team/lock"} { // the latter does not exist yet
		root := quotaPath + path
		stranger.mk(root, 0)
		for _, name := range []string{limitName, statsName} {
			text := "count=0,bytes=0=;countHardLimit=0"
			node := root + "/" + name
			stranger.want(stranger.make(node, text), wire.ErrNoAuth, "create "+node)
			ann.want(ann.make(node, "count=9,bytes=-1"), wire.ErrOK, "create as the owner")
			stranger.want(stranger.set(node, text, -1), wire.ErrNoAuth, "set "+node)
		}
	}
	ann.want(ann.make("/team/lock", ""), wire.ErrOK, "create below the quota")
	w.check()
}

// TestUsageOfClosedNodeNeedsRead: any client may set a quota on a path that does not exist. If
// another client then creates a node there, the first client must not read the usage without READ
// on the node.
func TestUsageOfClosedNodeNeedsRead(t *testing.T) {
	w := newHarness(t, Config{})
	ann, stranger := w.dial(), w.dial()
	ann.auth("digest", "ann:secret")
	stats := quotaPath + "/team/" + statsName
	stranger.mk(quotaPath+"/team", 0)
	limits := quotaPath + "/team/" + limitName
	stranger.want(stranger.make(limits, "count=-1,bytes=-1"), wire.ErrOK, "limits")
	stranger.want(stranger.make(stats, "count=0,bytes=0"), wire.ErrOK, "usage")
	reads := func(p *peer, want wire.ErrCode) {
		t.Helper()
		_, _, err := p.get(stats, false)
		p.want(err, want, "getData")
		_, err = p.exists(stats, false)
		p.want(err, want, "exists")
		getACL := &wire.GetACLRequest{Path: stats}
		p.want(p.ask(wire.OpGetACL, getACL, new(wire.GetACLResponse)), want, "getACL")
		children := &wire.GetChildren2Request{Path: stats}
		p.want(p.ask(wire.OpGetChildren2, children, new(wire.GetChildren2Response)), want, "getChildren2")
		acl := &wire.SetACLRequest{Path: stats, ACL: openACL(), Version: -1}
		p.want(p.ask(wire.OpSetACL, acl, new(wire.SetACLResponse)), want, "setACL")
	}
	reads(stranger, wire.ErrOK)
	closed := wire.ACL{Perms: wire.PermAll, Scheme: "auth"}
	ann.want(ann.mkACL("/team", closed), wire.ErrOK, "the closed node")
	ann.mk("/team/lock", 0)
	reads(stranger, wire.ErrNoAuth)
	reads(ann, wire.ErrOK)
	w.check()
}

// TestQuotaPermissionOfManyLongPathsIsRefused: the search for the node of a quota takes long if
// the path is deep and long, and the node does not exist.
func TestQuotaPermissionOfManyLongPathsIsRefused(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	path := quotaPath
	for range 250 {
		path += "/" + strings.Repeat("x", 100)
		p.mk(path, 0)
	}
	path += "/" + limitName
	p.want(p.make(path, "count=1,bytes=1"), wire.ErrOK, "limits")
	req := &wire.SetDataRequest{Path: path, Data: []byte("count=1,bytes=1"), Version: -1}
	ops := slices.Repeat([]wire.MultiOp{{Op: wire.OpSetData, Req: req}}, 40)
	results := p.multi(ops...)
	if last := results[len(results)-1].Err; last == wire.ErrOK {
		t.Errorf("the multi was not refused after %d steps", w.tree.steps)
	}
	w.check()
}

// TestQuotaUsageInRandomHistories checks the usage after random changes and after a restore.
func TestQuotaUsageInRandomHistories(t *testing.T) {
	for seed := range uint64(10) {
		w := newHarness(t, Config{Rand: seededRand(byte(seed))})
		p := w.dial()
		p.setQuota("/a", "count=1")
		r := &random{rand.New(rand.NewPCG(seed, 1)), w}
		for i := range 400 {
			r.step()
			if i == 200 {
				w.shadow = restored(t, w.tree.cfg, w.tree)
			}
			if i%20 != 0 {
				continue
			}
			var want quota
			want.add(0, 0)
			if n := w.tree.nodes.get("/a"); n != nil {
				n.walk(func(n *node) bool { want.add(1, int64(len(n.data()))); return true })
			}
			for _, tree := range []*Tree{w.tree, w.shadow} {
				n := tree.nodes.get(quotaPath + "/a/" + statsName)
				if n != nil && tree.nodes.get(quotaPath+"/a/"+limitName) != nil && n.data() != string(want.encode()) {
					t.Fatalf("seed %d, step %d: %s, want %s", seed, i, n.data(), want.encode())
				}
			}
		}
		checkInvariants(t, w.tree)
		w.check()
	}
}

// TestQuotaTextIsBounded: the server parses the text of a quota when it counts, so a long text
// would delay other clients.
func TestQuotaTextIsBounded(t *testing.T) {
	p := newHarness(t, Config{}).dial()
	long := strings.Repeat("count=1,", maxQuota/8)
	p.mk(quotaPath+"/a", 0)
	p.want(p.make(quotaPath+"/a/"+limitName, long+"bytes=1"), wire.ErrBadArguments, "long limits")
	p.want(p.make(quotaPath+"/a/"+limitName, long), wire.ErrOK, "limits of the maximum length")
	p.want(p.make(quotaPath+"/a/"+statsName, ""), wire.ErrOK, "statistics")
	p.want(p.set(quotaPath+"/a/"+statsName, long+"bytes=1", -1), wire.ErrBadArguments, "long statistics")
	p.want(p.set(quotaPath+"/a/"+statsName, "a=,b=1,c=1,d=1,e=1,f=1,g=1,h=1,i=1", -1), wire.ErrBadArguments, "many names")
	p.mk("/a", 0)
	if got := p.usage("/a"); got != "count=1,bytes=1" {
		t.Errorf("used %q", got)
	}
}

// TestQuotaUsageInMulti checks that a multi that creates the same usage node repeatedly stores the
// current usage each time.
func TestQuotaUsageInMulti(t *testing.T) {
	p := newHarness(t, Config{}).dial()
	for _, path := range []string{"/a", "/a/b", "/a/b/c", quotaPath + "/a"} {
		p.mk(path, 0)
	}
	stats := quotaPath + "/a/" + statsName
	create := wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: stats, Data: []byte("count=0"), ACL: openACL()}}
	ops := []wire.MultiOp{create}
	for range 1000 {
		ops = append(ops, opDelete(stats, -1), create)
	}
	if got := codes(p.multi(append(ops, opDelete("/a/b/c", -1), opDelete(stats, -1), create)...)); slices.Max(got) != wire.ErrOK || slices.Min(got) != wire.ErrOK {
		t.Errorf("results %v", got)
	}
	if got := p.usage("/a"); got != "count=2,bytes=2" {
		t.Errorf("used %q", got)
	}
	checkInvariants(t, p.w.tree)
}
