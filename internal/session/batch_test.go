package session

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

func batchableCreate(path string) Op {
	return Op{Code: wire.OpCreate2, Path: path, Data: []byte("me"), Mode: wire.ModeEphemeralSequential, Batchable: true}
}

func batchableDelete(path string) Op {
	return Op{Code: wire.OpDelete, Path: path, Version: -1, Batchable: true}
}

func batchableList(path string) Op { return Op{Code: wire.OpGetChildren2, Path: path, Batchable: true} }

// paths returns the operations of a batch as "code path".
func paths(t *testing.T, f sentFrame) (list []string) {
	t.Helper()
	rd := jute.NewReader(f.body)
	var ops []wire.MultiOp
	switch f.Op {
	case wire.OpMulti:
		var m wire.MultiRequest
		m.Decode(rd)
		ops = m.Ops
	case wire.OpMultiRead:
		var m wire.MultiReadRequest
		m.Decode(rd)
		ops = m.Ops
	default:
		rec := wire.NewRequest(f.Op)
		rec.Decode(rd)
		ops = []wire.MultiOp{{Op: f.Op, Req: rec}}
	}
	for _, op := range ops {
		switch q := op.Req.(type) {
		case *wire.CreateRequest:
			list = append(list, "+"+q.Path)
		case *wire.DeleteRequest:
			list = append(list, "-"+q.Path)
		case *wire.GetChildrenRequest:
			list = append(list, "?"+q.Path)
		case *wire.GetChildren2Request:
			list = append(list, "?"+q.Path)
		default:
			list = append(list, op.Op.String())
		}
	}
	return list
}

// wantSent checks the requests that are written, each as text of paths.
func (r *rig) wantSent(want ...string) []sentFrame {
	r.t.Helper()
	reqs := r.requests()
	var got []string
	for _, f := range reqs {
		got = append(got, fmt.Sprint(f.Op, paths(r.t, f)))
	}
	if !slices.Equal(got, want) {
		r.t.Fatalf("sent %q, want %q", got, want)
	}
	return reqs
}

func TestSingleBatchableCallIsSentUnchanged(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	r.submit(batchableCreate("/l/a-"))
	r.wantSent("create2 [+/l/a-]")
	r.submit(batchableList("/l"))
	r.wantSent("getChildren2 [?/l]")
	r.submit(batchableCreate("/l/a-"))
	r.submit(batchableList("/l"))
	r.wantSent("create2 [+/l/a-]", "getChildren2 [?/l]")
	if r.core.BatchedCalls() != 0 {
		t.Fatalf("%d batched calls", r.core.BatchedCalls())
	}
}

func TestQueuedCallsAreSentInBatches(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	var calls []*Call
	for _, op := range []Op{
		batchableCreate("/a/x-"), batchableList("/a"), batchableCreate("/b/x-"), batchableList("/b"), batchableDelete("/c/x-1"),
	} {
		calls = append(calls, r.submit(op))
	}
	r.wantSent("multi [+/a/x- +/b/x- -/c/x-1]", "multiRead [?/a ?/b]")
	sentAt := r.now
	r.take()
	r.now += time.Millisecond
	r.reply(1, 40, 0, &wire.MultiResponse{Results: []wire.MultiResult{
		{Op: wire.OpCreate, Resp: &wire.CreateResponse{Path: "/a/x-0000000001"}},
		{Op: wire.OpCreate, Resp: &wire.CreateResponse{Path: "/b/x-0000000005"}},
		{Op: wire.OpDelete},
	}})
	r.reply(2, 41, 0, &wire.MultiResponse{Results: []wire.MultiResult{
		{Op: wire.OpGetChildren, Resp: &wire.GetChildrenResponse{Children: []string{"x-0000000001"}}},
		{Op: wire.OpError, Err: wire.ErrNoNode},
	}})
	var told []*Call
	for _, n := range r.take() {
		told = append(told, n.Call)
	}
	if want := []*Call{calls[0], calls[2], calls[4], calls[1], calls[3]}; !slices.Equal(told, want) {
		t.Fatal("not delivered in wire order")
	}
	for i, path := range map[int]string{0: "/a/x-0000000001", 2: "/b/x-0000000005"} {
		res := calls[i].Result
		want := wire.Stat{Czxid: 40, Mzxid: 40, Pzxid: 40, EphemeralOwner: 7, DataLength: 2}
		if res.Err() != nil || res.Applied != Yes || res.Path != path || res.Stat != want || res.Zxid != 40 ||
			res.Sent != sentAt || res.Received != r.now || res.Conn != 1 {
			t.Errorf("create %d: %+v", i, res)
		}
	}
	if res := calls[4].Result; res.Err() != nil || res.Applied != Yes || res.Zxid != 40 {
		t.Errorf("delete: %+v", res)
	}
	if res := calls[1].Result; res.Err() != nil || len(res.Strings) != 1 || res.Zxid != 41 {
		t.Errorf("listing: %+v", res)
	}
	// A failed read does not fail the others, and rolls back nothing.
	if res := calls[3].Result; res.Err() != wire.ErrNoNode || res.Applied != No {
		t.Errorf("failed listing: %+v", res)
	}
}

func TestConflictingCallsAreNotBatched(t *testing.T) {
	open := batchableCreate("/b/x-")
	open.Batchable = false
	container := batchableCreate("/b/x-")
	container.Code, container.Mode = wire.OpCreateContainer, wire.ModeContainer
	watching := batchableList("/b")
	watching.Watch = true
	check := Op{Code: wire.OpMulti, Batchable: true, Sub: []Op{{Code: wire.OpCheck, Path: "/b"}}}
	for _, row := range []struct {
		name string
		ops  []Op
		want []string
	}{
		{"two creates of one parent", []Op{batchableCreate("/l/a-"), batchableCreate("/l/b-")},
			[]string{"create2 [+/l/a-]", "create2 [+/l/b-]"}},
		{"nor among others", []Op{batchableCreate("/l/a-"), batchableCreate("/m/a-"), batchableCreate("/l/b-"), batchableCreate("/m/b-")},
			[]string{"multi [+/l/a- +/m/a-]", "multi [+/l/b- +/m/b-]"}},
		{"of the root", []Op{batchableCreate("/a-"), batchableCreate("/b-")}, []string{"create2 [+/a-]", "create2 [+/b-]"}},
		{"inside a call", []Op{batchableCreate("/l/a-"), {Code: wire.OpMulti, Batchable: true,
			Sub: []Op{{Code: wire.OpCreate, Path: "/m/a"}, {Code: wire.OpCreate, Path: "/l/b"}}}},
			[]string{"create2 [+/l/a-]", "multi [+/m/a +/l/b]"}},
		{"one znode", []Op{batchableDelete("/l/a"), batchableDelete("/l/a")}, []string{"delete [-/l/a]", "delete [-/l/a]"}},
		{"a child behind its parent", []Op{batchableCreate("/l/a"), batchableDelete("/l/a/b")}, []string{"create2 [+/l/a]", "delete [-/l/a/b]"}},
		{"a parent behind its child", []Op{batchableDelete("/l/a"), batchableDelete("/l")}, []string{"delete [-/l/a]", "delete [-/l]"}},
		{"ahead of a listing", []Op{batchableList("/l"), batchableDelete("/m/a"), batchableDelete("/l/a")},
			[]string{"delete [-/m/a]", "getChildren2 [?/l]", "delete [-/l/a]"}},
		{"of what is listed", []Op{batchableList("/l"), batchableDelete("/l")}, []string{"getChildren2 [?/l]", "delete [-/l]"}},
		{"of the root's children", []Op{batchableList("/"), batchableDelete("/l")}, []string{"getChildren2 [?/]", "delete [-/l]"}},
		{"unmarked", []Op{batchableCreate("/a/x-"), open, batchableCreate("/c/x-")},
			[]string{"create2 [+/a/x-]", "create2 [+/b/x-]", "create2 [+/c/x-]"}},
		{"containers", []Op{batchableCreate("/a/x-"), container}, []string{"create2 [+/a/x-]", "createContainer [+/b/x-]"}},
		{"watches", []Op{batchableList("/a"), watching}, []string{"getChildren2 [?/a]", "getChildren2 [?/b]"}},
		{"checks", []Op{batchableDelete("/a"), check}, []string{"delete [-/a]", "multi [check]"}},
		{"an empty multi", []Op{batchableDelete("/a"), {Code: wire.OpMulti, Batchable: true}}, []string{"delete [-/a]", "multi []"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRig(t, nil)
			r.connect(7)
			for _, op := range row.ops {
				r.submit(op)
			}
			r.wantSent(row.want...)
		})
	}
}

func TestBatchSizeIsLimited(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxRequest = 300 })
	r.connect(7)
	for i := range 9 {
		r.submit(batchableDelete(fmt.Sprintf("/l%d/%040d", i, i)))
	}
	reqs := r.requests()
	n := 0
	for _, f := range reqs {
		if headerSize+len(f.body) > 300 {
			t.Errorf("a request of %d bytes", headerSize+len(f.body))
		}
		n += len(paths(t, f))
	}
	if n != 9 || len(reqs) >= 9 {
		t.Fatalf("%d deletes in %d requests", n, len(reqs))
	}
	for i := range maxBatchOps + 1 {
		r.submit(batchableDelete(fmt.Sprintf("/l%d/x", i)))
	}
	for _, f := range r.requests() {
		if len(paths(t, f)) > maxBatchOps {
			t.Errorf("%d operations in a request", len(paths(t, f)))
		}
	}
}

// failed is the answer to a multi of n operations of which the one at this index
// failed.
func failed(n, at int, code wire.ErrCode) *wire.MultiResponse {
	m := &wire.MultiResponse{}
	for i := range n {
		res := wire.MultiResult{Op: wire.OpError}
		switch {
		case i == at:
			res.Err = code
		case i > at:
			res.Err = wire.ErrRuntimeInconsistency
		}
		m.Results = append(m.Results, res)
	}
	return m
}

func TestFailedCallRollsBackItsBatch(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	var calls []*Call
	for _, path := range []string{"/a/x", "/b/x", "/c/x"} {
		calls = append(calls, r.submit(batchableDelete(path)))
	}
	r.requests()
	r.reply(1, 40, 0, failed(3, 1, wire.ErrNoNode))
	for i, want := range []wire.ErrCode{wire.ErrRuntimeInconsistency, wire.ErrNoNode, wire.ErrRuntimeInconsistency} {
		if res := calls[i].Result; res.Err() != want || res.Applied != No {
			t.Errorf("call %d: %v, applied %d; want %v and surely not", i, res.Err(), res.Applied, want)
		}
	}
}

// A server may refuse a batch because of the sum of its operations, of which each one is permitted.
func TestCallOfBatchAboveLimitIsRepeated(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	a, b := r.submit(batchableDelete("/a/x")), r.submit(batchableDelete("/b/x"))
	r.requests()
	r.reply(1, 40, 0, failed(2, 1, wire.ErrQuotaExceeded))
	for _, call := range []*Call{a, b} {
		if res := call.Result; res.Err() != wire.ErrRuntimeInconsistency || res.Applied != No {
			t.Errorf("%s: %v, applied %d", call.Op.Path, res.Err(), res.Applied)
		}
	}
}

// Other clients decide how large a listing is, so one that is too large fails only the call that
// it answers. The calls of a batch are repeated one by one.
func TestReplyTooLargeFailsItsCallOnly(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	big, next := r.submit(Op{Code: wire.OpGetChildren2, Path: "/a", Watch: true}), r.submit(syncA)
	sent := r.requests()
	r.core.ReplyTooLarge(r.gen, wire.ReplyHeader{Xid: sent[0].Xid, Zxid: 40}, r.now)
	r.wantFail(big, ErrReplyTooLarge, No)
	r.reply(sent[1].Xid, 40, 0, &wire.SyncResponse{Path: "/"})
	if err := next.Result.Err(); err != nil {
		t.Fatal(err)
	}
	a, b := r.submit(batchableList("/a")), r.submit(batchableList("/b"))
	sent = r.requests()
	r.wantOps(sent, wire.OpMultiRead)
	r.core.ReplyTooLarge(r.gen, wire.ReplyHeader{Xid: sent[0].Xid, Zxid: 40}, r.now)
	for _, call := range []*Call{a, b} {
		if res := call.Result; res.Err() != wire.ErrRuntimeInconsistency || res.Applied != No {
			t.Errorf("%s: %v, applied %d", call.Op.Path, res.Err(), res.Applied)
		}
	}
	if r.core.State() != Connected {
		t.Fatalf("state %d", r.core.State())
	}
}

func TestOtherFrameTooLargeEndsConnection(t *testing.T) {
	for name, h := range map[string]wire.ReplyHeader{
		"answer to a write": {Xid: 1}, "answer to a later request": {Xid: 2}, "event": {Xid: wire.XidEvent}, "ping": {Xid: wire.XidPing},
		"error": {Xid: 1, Err: wire.ErrNoNode},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.connect(7)
			r.submit(createSeq)
			r.submit(batchableList("/a"))
			r.requests()
			r.core.ReplyTooLarge(r.gen, h, r.now)
			r.wantLost(ErrProtocol)
		})
	}
}

func TestMultiIsBatchedAsAWhole(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	swap := func(l string) *Call {
		return r.submit(Op{Code: wire.OpMulti, Batchable: true, Sub: []Op{
			{Code: wire.OpCreate, Path: l + "/y-", Mode: wire.ModeEphemeralSequential}, {Code: wire.OpDelete, Path: l + "/x"}}})
	}
	a, b := swap("/a"), swap("/b")
	r.wantSent("multi [+/a/y- -/a/x +/b/y- -/b/x]")
	r.reply(1, 40, 0, &wire.MultiResponse{Results: []wire.MultiResult{
		{Op: wire.OpCreate, Resp: &wire.CreateResponse{Path: "/a/y-1"}}, {Op: wire.OpDelete},
		{Op: wire.OpCreate, Resp: &wire.CreateResponse{Path: "/b/y-1"}}, {Op: wire.OpDelete},
	}})
	for call, path := range map[*Call]string{a: "/a/y-1", b: "/b/y-1"} {
		if res := call.Result; res.Err() != nil || len(res.Sub) != 2 || res.Sub[0].Path != path || res.Zxid != 40 || res.Path != "" {
			t.Errorf("%+v", res)
		}
	}
	a, b = swap("/a"), swap("/b")
	r.requests()
	r.reply(2, 41, 0, failed(4, 3, wire.ErrNoNode))
	if res := a.Result; res.Err() != wire.ErrRuntimeInconsistency || res.Applied != No || len(res.Sub) != 0 {
		t.Errorf("the other: %+v", res)
	}
	if res := b.Result; res.Err() != wire.ErrNoNode || res.Applied != No || res.Failed != 1 || len(res.Sub) != 2 || res.Sub[1].Code != wire.ErrNoNode {
		t.Errorf("the one that failed: %+v", res)
	}
}

func TestErrorOfWholeBatch(t *testing.T) {
	for code, want := range map[wire.ErrCode]wire.ErrCode{
		wire.ErrMarshalling:   wire.ErrRuntimeInconsistency, // one of them may be the malformed one
		wire.ErrNoAuth:        wire.ErrRuntimeInconsistency,
		wire.ErrThrottled:     wire.ErrThrottled,
		wire.ErrSessionMoved:  wire.ErrSessionMoved,
		wire.ErrSystem:        wire.ErrSystem,
		wire.ErrNotReadOnly:   wire.ErrNotReadOnly,
		wire.ErrUnimplemented: wire.ErrRuntimeInconsistency,
	} {
		r := newRig(t, nil)
		r.connect(7)
		a, b := r.submit(batchableDelete("/a/x")), r.submit(batchableDelete("/b/x"))
		r.requests()
		r.reply(1, 40, code, nil)
		for _, call := range []*Call{a, b} {
			if res := call.Result; res.Err() != want || res.Applied != outcomeOf(code) {
				t.Errorf("%v: %v, applied %d; want %v", code, res.Err(), res.Applied, want)
			}
		}
	}
}

func TestUnknownOutcomeOfBatchIsUnknownForEachCall(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	a, b := r.submit(batchableDelete("/a/x")), r.submit(batchableCreate("/b/x-"))
	r.requests()
	r.core.Lost(r.gen, errors.New("cut"), r.now)
	r.wantFail(a, ErrConnectionLost, Unknown)
	r.wantFail(b, ErrConnectionLost, Unknown)
	r.connect(7)
	a, b = r.submit(batchableDelete("/a/x")), r.submit(batchableCreate("/b/x-"))
	r.requests()
	r.reply(2, 40, 0, failed(1, 0, wire.ErrNoNode)) // one result for two: malformed
	r.wantLost(ErrProtocol)
	r.wantFail(a, ErrConnectionLost, Unknown)
	r.wantFail(b, ErrConnectionLost, Unknown)
	if b.Result.Conn != 2 || b.Result.Path != "" {
		t.Fatalf("%+v", b.Result)
	}
}

func TestBatchWindowLimitsUnansweredCalls(t *testing.T) {
	r := newRig(t, func(c *Config) { c.BatchWindow = 2 })
	r.connect(7)
	for _, l := range []string{"/a", "/b"} {
		r.submit(batchableDelete(l + "/x"))
		r.wantSent("delete [-" + l + "/x]")
	}
	kept := r.submit(batchableDelete("/c/x"))
	r.submit(batchableDelete("/d/x"))
	if r.core.HasOutput() {
		t.Fatal("the third call is not kept back")
	}
	r.wantSent()
	r.reply(1, 1, 0, nil)
	if !r.core.HasOutput() {
		t.Fatal("an answer releases no call")
	}
	if !r.core.Withdraw(kept) {
		t.Fatal("a call that is kept back cannot be withdrawn")
	}
	r.submit(batchableDelete("/e/x"))
	r.wantSent("multi [-/d/x -/e/x]")

	// A call that is not batchable does not wait, and the calls queued before it are
	// sent first.
	r.submit(batchableDelete("/f/x"))
	r.submit(batchableDelete("/g/x"))
	r.wantSent()
	r.submit(syncA)
	r.submit(batchableDelete("/h/x"))
	r.wantSent("multi [-/f/x -/g/x]", "sync [sync]")
	if r.core.HasOutput() {
		t.Fatal("the call after it is not kept back")
	}

	// On the next connection, no request is unanswered.
	r.core.Lost(r.gen, errors.New("cut"), r.now)
	reqs := r.connect(7)
	if len(reqs) != 1 || reqs[0].Op != wire.OpDelete {
		t.Fatalf("%+v", reqs)
	}
	r.submit(batchableDelete("/i/x"))
	r.wantSent("delete [-/i/x]")
}

func TestServersWithoutMultiRead(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	a, b := r.submit(batchableList("/a")), r.submit(batchableList("/b"))
	r.wantSent("multiRead [?/a ?/b]")
	waiting := r.submit(batchableList("/c"))
	r.reply(1, 40, wire.ErrUnimplemented, nil)
	for _, call := range []*Call{a, b} {
		if res := call.Result; res.Err() != wire.ErrRuntimeInconsistency || res.Applied != No {
			t.Errorf("%+v", res)
		}
	}
	r.wantLost(ErrOldServer)
	r.dial()
	r.greet(r.welcome(7))
	r.submit(batchableList("/a"))
	r.wantSent("exists [exists]", "getChildren2 [?/c]", "getChildren2 [?/a]")
	r.reply(2, 41, wire.ErrOK, &wire.ExistsResponse{})
	r.reply(3, 41, wire.ErrNoNode, nil)
	if waiting.Result.Err() != wire.ErrNoNode {
		t.Fatalf("%+v", waiting.Result)
	}
	r.core.Lost(r.gen, errors.New("cut"), r.now)
	r.connect(7)
	r.submit(batchableList("/a"))
	r.submit(batchableList("/b"))
	r.wantSent("getChildren2 [?/a]", "getChildren2 [?/b]")
}

// An answer that is longer than the client accepts ends the connection. If the
// listings were batched again each time, they would never be answered.
func TestUnansweredListingsAreRepeatedWithoutBatch(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	ask := func(want ...string) {
		t.Helper()
		r.submit(batchableList("/a"))
		r.submit(batchableList("/b"))
		r.wantSent(want...)
		r.core.Lost(r.gen, errors.New("frame too long"), r.now)
		r.connect(7)
	}
	ask("multiRead [?/a ?/b]")
	ask("getChildren2 [?/a]", "getChildren2 [?/b]")
	ask("multiRead [?/a ?/b]")
}

func TestCloseSendsCallsKeptBack(t *testing.T) {
	r := newRig(t, func(c *Config) { c.BatchWindow = 1 })
	r.connect(7)
	r.submit(batchableDelete("/a/x"))
	r.requests()
	r.submit(batchableDelete("/b/x"))
	r.core.Close(r.now)
	r.wantSent("delete [-/b/x]", "closeSession [closeSession]")
}

func TestIdleBatcherFreesMemory(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	for i := range 10 {
		r.submit(batchableDelete(fmt.Sprintf("/l%d/x", i)))
	}
	r.requests()
	if cap(r.core.batcher.writes) == 0 {
		t.Fatal("nothing was batched")
	}
	for range 100 {
		r.submit(syncA)
		r.requests()
	}
	if j := &r.core.batcher; cap(j.writes) > 0 || j.paths != nil {
		t.Errorf("memory for %d calls is kept", cap(j.writes))
	}
	r.submit(batchableDelete("/a/x"))
	r.submit(batchableDelete("/b/x"))
	r.wantSent("multi [-/a/x -/b/x]")
}
