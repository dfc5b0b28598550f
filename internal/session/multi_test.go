package session

import (
	"testing"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

var (
	multiOps = []Op{
		{Code: wire.OpCheck, Path: "/c", Version: -1},
		{Code: wire.OpCreate, Path: "/p/", Data: []byte("d"), Mode: wire.ModeEphemeralSequential},
		{Code: wire.OpCreateContainer, Path: "/k", Mode: wire.ModeContainer},
		{Code: wire.OpSetData, Path: "/s", Version: 2},
		{Code: wire.OpDelete, Path: "/d", Version: 1},
	}
	multiOK = wire.MultiResponse{Results: []wire.MultiResult{
		{Op: wire.OpCheck},
		{Op: wire.OpCreate, Resp: &wire.CreateResponse{Path: "/p/0000000001"}},
		{Op: wire.OpCreate2, Resp: &wire.Create2Response{Path: "/k", Stat: wire.Stat{Czxid: 8}}},
		{Op: wire.OpSetData, Resp: &wire.SetDataResponse{Stat: wire.Stat{Version: 3}}},
		{Op: wire.OpDelete},
	}}
)

// answerMulti sends one multi and answers it.
func answerMulti(t *testing.T, op Op, resp wire.Record) (*rig, *Call) {
	t.Helper()
	r := newRig(t, nil)
	r.connect(7)
	call := r.submit(op)
	reqs := r.requests()
	if len(reqs) != 1 {
		t.Fatalf("%+v", reqs)
	}
	r.reply(1, 9, 0, resp)
	return r, call
}

func TestMultiIsEncodedAsByPackageWire(t *testing.T) {
	var got wire.MultiRequest
	rd := jute.NewReader((&Op{Code: wire.OpMulti, Sub: multiOps}).appendTo(nil))
	got.Decode(rd)
	if err := rd.Finish(); err != nil || len(got.Ops) != len(multiOps) {
		t.Fatalf("%v, %+v", err, got)
	}
	create := got.Ops[1].Req.(*wire.CreateRequest)
	if create.Path != "/p/" || string(create.Data) != "d" || create.Flags != wire.ModeEphemeralSequential ||
		len(create.ACL) != 1 || create.ACL[0].Perms != wire.PermAll {
		t.Fatalf("%+v", create)
	}
}

func TestMultiSucceeds(t *testing.T) {
	_, call := answerMulti(t, Op{Code: wire.OpMulti, Sub: multiOps}, &multiOK)
	sub := call.Result.Sub
	if call.Result.Err() != nil || call.Result.Applied != Yes || len(sub) != 5 ||
		sub[1].Path != "/p/0000000001" || sub[2].Stat.Czxid != 8 || sub[3].Stat.Version != 3 {
		t.Fatalf("%+v", call.Result)
	}
}

func TestMultiFailsAsAWhole(t *testing.T) {
	fail := func(code wire.ErrCode) wire.MultiResult { return wire.MultiResult{Op: wire.OpError, Err: code} }
	_, call := answerMulti(t, Op{Code: wire.OpMulti, Sub: multiOps}, &wire.MultiResponse{Results: []wire.MultiResult{
		fail(0), fail(0), fail(wire.ErrNodeExists), fail(-2), fail(-2)}})
	res := call.Result
	if res.Code != wire.ErrNodeExists || res.Failed != 2 || res.Applied != No {
		t.Fatalf("%+v", res)
	}
	for i, s := range res.Sub {
		want := wire.ErrRuntimeInconsistency
		if i == 2 {
			want = wire.ErrNodeExists
		}
		if s.Code != want {
			t.Fatalf("result %d: %v, want %v", i, s.Code, want)
		}
	}
}

func TestMultiRead(t *testing.T) {
	op := Op{Code: wire.OpMultiRead, Sub: []Op{getA, {Code: wire.OpGetChildren, Path: "/b"}, {Code: wire.OpGetData, Path: "/no"}}}
	_, call := answerMulti(t, op, &wire.MultiResponse{Results: []wire.MultiResult{
		{Op: wire.OpGetData, Resp: &wire.GetDataResponse{Data: []byte("v"), Stat: wire.Stat{Version: 1}}},
		{Op: wire.OpGetChildren, Resp: &wire.GetChildrenResponse{Children: []string{"x"}}},
		{Op: wire.OpError, Err: wire.ErrNoNode}}})
	sub := call.Result.Sub
	if call.Result.Err() != nil || string(sub[0].Data) != "v" || sub[1].Children[0] != "x" || sub[2].Code != wire.ErrNoNode {
		t.Fatalf("%+v", call.Result)
	}
}

func TestEmptyMulti(t *testing.T) {
	_, call := answerMulti(t, Op{Code: wire.OpMulti}, &wire.MultiResponse{})
	if call.Result.Err() != nil || call.Result.Applied != Yes {
		t.Fatalf("%+v", call.Result)
	}
}

func TestMismatchedMultiAnswersAreRefused(t *testing.T) {
	for name, results := range map[string][]wire.MultiResult{
		"too few":    multiOK.Results[:4],
		"too many":   append(append([]wire.MultiResult(nil), multiOK.Results...), wire.MultiResult{Op: wire.OpDelete}),
		"wrong kind": {{Op: wire.OpDelete}, multiOK.Results[1], multiOK.Results[2], multiOK.Results[3], multiOK.Results[4]},
	} {
		t.Run(name, func(t *testing.T) {
			r, call := answerMulti(t, Op{Code: wire.OpMulti, Sub: multiOps}, &wire.MultiResponse{Results: results})
			r.wantLost(ErrProtocol)
			r.wantFail(call, ErrConnectionLost, Unknown)
			if len(call.Result.Sub) != 0 || call.Result.Conn != 1 {
				t.Fatalf("%+v", call.Result)
			}
		})
	}
}
