package tree

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

func opCreate(path string, mode wire.CreateMode) wire.MultiOp {
	return wire.MultiOp{Op: wire.OpCreate, Req: &wire.CreateRequest{Path: path, ACL: openACL(), Flags: mode}}
}

func opDelete(path string, version int32) wire.MultiOp {
	return wire.MultiOp{Op: wire.OpDelete, Req: &wire.DeleteRequest{Path: path, Version: version}}
}

func opSet(path string, version int32) wire.MultiOp {
	return wire.MultiOp{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: path, Data: []byte("m"), Version: version}}
}

func opCheck(path string, version int32) wire.MultiOp {
	return wire.MultiOp{Op: wire.OpCheck, Req: &wire.CheckVersionRequest{Path: path, Version: version}}
}

// multi runs operations and returns the results.
func (p *peer) multi(ops ...wire.MultiOp) []wire.MultiResult {
	p.w.tb.Helper()
	var resp wire.MultiResponse
	p.want(p.ask(wire.OpMulti, &wire.MultiRequest{Ops: ops}, &resp), wire.ErrOK, "multi")
	if len(resp.Results) != len(ops) {
		p.w.tb.Fatalf("%d results of %d operations", len(resp.Results), len(ops))
	}
	return resp.Results
}

// codes returns the errors of the results.
func codes(results []wire.MultiResult) []wire.ErrCode {
	var list []wire.ErrCode
	for _, r := range results {
		list = append(list, r.Err)
	}
	return list
}

// TestMultiIsAtomic checks that each multi succeeds or fails as a whole, and the codes of its
// results.
func TestMultiIsAtomic(t *testing.T) {
	const skipped = wire.ErrRuntimeInconsistency
	type row struct {
		name string
		ops  []wire.MultiOp
		want []wire.ErrCode
	}
	for _, tt := range []row{
		{"empty", nil, nil},
		{"create and child", []wire.MultiOp{opCreate("/n", 0), opCreate("/n/c", 0)}, []wire.ErrCode{0, 0}},
		{"create and delete", []wire.MultiOp{opCreate("/n", 0), opDelete("/n", 0)}, []wire.ErrCode{0, 0}},
		{"delete and create", []wire.MultiOp{opDelete("/a/b", -1), opCreate("/a/b", 0), opCheck("/a/b", 0)}, []wire.ErrCode{0, 0, 0}},
		{"delete child, then parent", []wire.MultiOp{opDelete("/a/b", -1), opDelete("/a", -1)}, []wire.ErrCode{0, 0}},
		{"versions count inside", []wire.MultiOp{opSet("/a", 0), opSet("/a", 1), opCheck("/a", 2)}, []wire.ErrCode{0, 0, 0}},
		{"first fails", []wire.MultiOp{opCheck("/a", 9), opCreate("/n", 0)}, []wire.ErrCode{wire.ErrBadVersion, skipped}},
		{"last fails", []wire.MultiOp{opCreate("/n", 0), opSet("/a", -1), opDelete("/a/b", -1), opCheck("/none", -1)},
			[]wire.ErrCode{0, 0, 0, wire.ErrNoNode}},
		{"middle fails", []wire.MultiOp{opCreate("/n", 0), opDelete("/a", -1), opCheck("/none", -1)},
			[]wire.ErrCode{0, wire.ErrNotEmpty, skipped}},
		{"created twice", []wire.MultiOp{opCreate("/n", 0), opCreate("/n", 0)}, []wire.ErrCode{0, wire.ErrNodeExists}},
		{"child of a deleted node", []wire.MultiOp{opDelete("/a/b", -1), opCreate("/a/b/c", 0)}, []wire.ErrCode{0, wire.ErrNoNode}},
		{"deleted twice", []wire.MultiOp{opDelete("/a/b", -1), opDelete("/a/b", -1)}, []wire.ErrCode{0, wire.ErrNoNode}},
		{"set after delete", []wire.MultiOp{opDelete("/a/b", -1), opSet("/a/b", -1)}, []wire.ErrCode{0, wire.ErrNoNode}},
		{"not empty inside", []wire.MultiOp{opCreate("/a/b/c", 0), opDelete("/a/b", -1)}, []wire.ErrCode{0, wire.ErrNotEmpty}},
		{"below an ephemeral", []wire.MultiOp{opCreate("/e", wire.ModeEphemeral), opCreate("/e/c", 0)},
			[]wire.ErrCode{0, wire.ErrNoChildrenForEphemerals}},
		{"old version inside", []wire.MultiOp{opSet("/a", 0), opCheck("/a", 0)}, []wire.ErrCode{0, wire.ErrBadVersion}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, watcher, p := newWatchHarness(t, Config{})
			watcher.addWatch("/", wire.AddWatchPersistentRecursive)
			before, zxid := stateWithoutZxid(w.tree), w.tree.Zxid()
			results := p.multi(tt.ops...)
			if !slices.Equal(codes(results), tt.want) {
				t.Errorf("codes %v, want %v", codes(results), tt.want)
			}
			if w.tree.Zxid() != zxid+1 {
				t.Errorf("took %d transactions", w.tree.Zxid()-zxid)
			}
			failed := slices.ContainsFunc(tt.want, func(c wire.ErrCode) bool { return c != wire.ErrOK })
			for i, r := range results {
				if failed != (r.Op == wire.OpError) {
					t.Errorf("result %d is of kind %s", i, r.Op)
				}
			}
			if failed {
				if !bytes.Equal(stateWithoutZxid(w.tree), before) {
					t.Error("a failed multi left something behind")
				}
				watcher.wantEvents()
			}
			w.check()
		})
	}
}

// stateWithoutZxid returns the state without the zxid of the last transaction.
func stateWithoutZxid(t *Tree) []byte {
	b := t.AppendSnapshot(nil)
	clear(b[len(snapshotMark)+1:][:8])
	return b
}

func TestMultiResults(t *testing.T) {
	w := newHarness(t, Config{ExtendedTypes: true})
	p := w.dial()
	create := func(path string, mode wire.CreateMode) *wire.CreateRequest {
		return &wire.CreateRequest{Path: path, ACL: openACL(), Flags: mode}
	}
	results := p.multi(
		opCreate("/a", 0),
		wire.MultiOp{Op: wire.OpCreate2, Req: create("/b", wire.ModePersistent)},
		wire.MultiOp{Op: wire.OpCreateContainer, Req: create("/c", wire.ModeContainer)},
		wire.MultiOp{Op: wire.OpCreateTTL, Req: &wire.CreateTTLRequest{Path: "/t", ACL: openACL(), Flags: wire.ModePersistentTTL, TTL: 5}},
		opSet("/a", 0),
		opCreate("/a/c", 0),
		opSet("/a", 1),
		opCheck("/a", 2),
		opDelete("/b", 0),
	)
	kinds := []wire.OpCode{wire.OpCreate, wire.OpCreate2, wire.OpCreate2, wire.OpCreate2, wire.OpSetData,
		wire.OpCreate, wire.OpSetData, wire.OpCheck, wire.OpDelete}
	zxid := w.tree.Zxid()
	for i, r := range results {
		if r.Op != kinds[i] {
			t.Errorf("result %d is of kind %s, want %s", i, r.Op, kinds[i])
		}
		switch resp := r.Resp.(type) {
		case *wire.Create2Response:
			if resp.Stat.Czxid != zxid || resp.Stat.EphemeralOwner != 0 {
				t.Errorf("result %d: stat %+v", i, resp.Stat)
			}
		case *wire.SetDataResponse:
			// The Stat is the one after this operation, not after the multi.
			if want := int32(i-4) / 2; resp.Stat.NumChildren != want || resp.Stat.Version != want+1 || resp.Stat.Mzxid != zxid {
				t.Errorf("result %d: stat %+v", i, resp.Stat)
			}
		}
	}
	w.check()
}

func TestMultiNumbersSequentialNodes(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mk("/q", 0)
	results := p.multi(
		opCreate("/q/a-", wire.ModeEphemeralSequential), opCreate("/q/plain", 0), opDelete("/q/plain", -1),
		opCreate("/q/b-", wire.ModeEphemeralSequential),
	)
	for i, want := range map[int]string{0: "/q/a-0000000000", 3: "/q/b-0000000002"} {
		if got := results[i].Resp.(*wire.CreateResponse).Path; got != want {
			t.Errorf("result %d: %q, want %q", i, got, want)
		}
	}
	// A failed multi does not advance the counter.
	p.multi(opCreate("/q/c-", wire.ModeEphemeralSequential), opCheck("/none", -1))
	if got := p.mk("/q/d-", wire.ModeEphemeralSequential); got != "/q/d-0000000003" {
		t.Errorf("after a failed multi: %q", got)
	}
	w.check()
}

func TestMultiNeedsPermissions(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	p.mkACL("/locked", wire.ACL{Perms: wire.PermCreate, Scheme: "world", ID: "anyone"})
	for _, tt := range []struct {
		op   wire.MultiOp
		want wire.ErrCode
	}{
		{opCheck("/locked", -1), wire.ErrNoAuth},
		{opSet("/locked", -1), wire.ErrNoAuth},
		{opCreate("/locked/a", 0), wire.ErrOK},
		{opDelete("/locked/a", -1), wire.ErrNoAuth},
	} {
		if got := codes(p.multi(tt.op)); got[0] != tt.want {
			t.Errorf("%s: %s, want %s", tt.op.Op, got[0].Name(), tt.want.Name())
		}
	}
	w.check()
}

func TestMalformedMultisAreRefused(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	good := (&wire.MultiRequest{Ops: []wire.MultiOp{opCreate("/n", 0)}}).Append(nil)
	for name, body := range map[string][]byte{
		"no body":      nil,
		"no end":       good[:len(good)-9],
		"nested":       {0, 0, 0, 14, 0, 255, 255, 255, 255},
		"read":         {0, 0, 0, 4, 0, 255, 255, 255, 255},
		"setACL":       {0, 0, 0, 7, 0, 255, 255, 255, 255},
		"closeSession": {255, 255, 255, 245, 0, 255, 255, 255, 255},
	} {
		zxid := w.tree.Zxid()
		if r := p.call(wire.OpMulti, raw(body)); r.Err != wire.ErrMarshalling || r.Zxid != zxid+1 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if c := w.tree.Counts(); c.Nodes != 4 || p.closed {
		t.Errorf("counts %+v, closed %v", c, p.closed)
	}
	w.check()
}

func TestMultiReadReportsEachResult(t *testing.T) {
	w, _, p := newWatchHarness(t, Config{})
	p.mkACL("/locked", wire.ACL{Perms: wire.PermAdmin, Scheme: "world", ID: "anyone"})
	var resp wire.MultiResponse
	err := p.ask(wire.OpMultiRead, &wire.MultiReadRequest{Ops: []wire.MultiOp{
		{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: "/a", Watch: true}},
		{Op: wire.OpGetChildren, Req: &wire.GetChildrenRequest{Path: "/a", Watch: true}},
		{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: "/none"}},
		{Op: wire.OpGetChildren, Req: &wire.GetChildrenRequest{Path: "/locked"}},
		{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: "/a/b"}},
	}}, &resp)
	p.want(err, wire.ErrOK, "multiRead")
	if want := []wire.ErrCode{0, 0, wire.ErrNoNode, wire.ErrNoAuth, 0}; !slices.Equal(codes(resp.Results), want) {
		t.Errorf("codes %v, want %v", codes(resp.Results), want)
	}
	if d := resp.Results[0].Resp.(*wire.GetDataResponse); string(d.Data) != "x" || d.Stat != w.tree.nodes.get("/a").stat() {
		t.Errorf("first result %+v", d)
	}
	if c := resp.Results[1].Resp.(*wire.GetChildrenResponse); !slices.Equal(c.Children, []string{"b"}) {
		t.Errorf("second result %+v", c)
	}
	if n := w.tree.Counts().Watches; n != 0 {
		t.Errorf("a multiRead set %d watches, want none", n)
	}
	bad := raw((&wire.MultiRequest{Ops: []wire.MultiOp{opCheck("/a", 0)}}).Append(nil))
	p.want(p.call(wire.OpMultiRead, bad).Err, wire.ErrMarshalling, "a write in a multiRead")
}

// TestMultiOfCreatesAllocatesLittle checks how much memory a create in a multi allocates. All other
// clients wait for the multi, which also assists the garbage collector in proportion to its
// allocations.
func TestMultiOfCreatesAllocatesLittle(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	var m wire.MultiRequest
	for i := range maxOps {
		m.Ops = append(m.Ops, opCreate(fmt.Sprint("/", i), wire.ModePersistent))
	}
	frame := wire.AppendRequest(nil, 1, wire.OpMulti, &m)[4:]
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w.tree.Request(p.id, frame, w.now, &w.out)
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / maxOps; n > 1100 {
		t.Errorf("a create allocates %d bytes, want at most 1100", n)
	}
	if n := w.tree.Counts().Nodes; n != 4+maxOps {
		t.Errorf("%d nodes, want %d", n, 4+maxOps)
	}
}

// TestMultiCountsVisitsToAncestors checks that a multi is refused if its changes visit too many
// ancestors, and that a multi of the maximum length below ordinary paths is not.
func TestMultiCountsVisitsToAncestors(t *testing.T) {
	const deep = 500
	bound := func(walks int) int { return partSteps / (walks * (deep - fewAncestors) / ancestorsPerStep) }
	for _, tt := range []struct {
		name      string
		names     int
		quota     bool
		recursive bool
		most      int // permitted changes
	}{
		{"ordinary", fewAncestors, true, true, maxOps},
		{"without quotas and recursive watches", deep, false, false, bound(1)},
		{"with a quota", deep, true, false, bound(3)},
		{"with both", deep, true, true, bound(5)},
	} {
		w := newHarness(t, Config{MaxFrame: 8 << 20})
		p, path := w.dial(), ""
		for range tt.names {
			path = p.mk(path+"/d", 0)
		}
		if tt.quota {
			p.mk(quotaPath+"/q", 0)
			limit := &wire.CreateRequest{Path: quotaPath + "/q/" + limitName, Data: []byte("count=1"), ACL: openACL()}
			p.want(p.call(wire.OpCreate, limit).Err, wire.ErrOK, "create a quota")
		}
		if tt.recursive {
			p.addWatch("/elsewhere", wire.AddWatchPersistentRecursive)
		}
		got := codes(p.multi(slices.Repeat([]wire.MultiOp{opSet(path, -1)}, min(tt.most*21/20+1, maxOps))...))
		if at := slices.Index(got, wire.ErrQuotaExceeded); at < tt.most && at >= 0 || at < 0 && tt.most < maxOps {
			t.Errorf("%s: refused at %d, want %d", tt.name, at, tt.most)
		}
		w.check()
	}
}

// TestEndOfDeepNodesCountsVisitsToAncestors checks that a session with nodes below deep paths
// ends in parts.
func TestEndOfDeepNodesCountsVisitsToAncestors(t *testing.T) {
	const nodes, deep = 1000, 500
	w := newHarness(t, Config{})
	p, top, path := w.dial(), w.dial(), ""
	for range deep {
		path = top.mk(path+"/d", 0)
	}
	for i := range nodes {
		p.mk(fmt.Sprint(path, "/", i), wire.ModeEphemeral)
	}
	p.send(7, wire.OpCloseSession, nil)
	if parts, want := w.runParts(), nodes*deep/2/ancestorsPerStep/partSteps; parts < want || !p.closed {
		t.Errorf("%d parts, want at least %d; closed: %v", parts, want, p.closed)
	}
	w.check()
}
