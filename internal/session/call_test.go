package session

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

func TestRequestsInOrderOfSubmission(t *testing.T) {
	r := newRig(t, nil)
	a, b := r.submit(getA), r.submit(syncA) // before there is a connection
	reqs := r.connect(7)
	c := r.submit(getA)
	reqs = append(reqs, r.requests()...)
	if len(reqs) != 3 || reqs[0].Op != wire.OpGetData || reqs[1].Op != wire.OpSync || reqs[2].Xid != 3 {
		t.Fatalf("%+v", reqs)
	}
	sentAt := r.now
	r.take()
	r.now += time.Millisecond
	r.reply(1, 10, 0, &wire.GetDataResponse{Data: []byte("x"), Stat: wire.Stat{Version: 3}})
	r.reply(2, 11, 0, &wire.SyncResponse{Path: "/a"})
	r.reply(3, 12, wire.ErrNoNode, nil)
	n := r.take()
	if len(n) != 3 || n[0].Call != a || n[1].Call != b || n[2].Call != c {
		t.Fatalf("%+v", n)
	}
	if res := a.Result; string(res.Data) != "x" || res.Stat.Version != 3 || res.Zxid != 10 || res.Applied != Yes ||
		res.Sent != sentAt || res.Received != r.now || res.Conn != 1 || res.Err() != nil {
		t.Fatalf("%+v", res)
	}
	if c.Result.Err() != wire.ErrNoNode || c.Result.Applied != No {
		t.Fatalf("%+v", c.Result)
	}
}

func TestLostConnectionLeavesUnknown(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	sentCall := r.submit(getA)
	r.requests()
	waiting := r.submit(syncA)
	r.take()
	r.core.Lost(r.gen, errors.New("cut"), r.now)
	r.wantFail(sentCall, ErrConnectionLost, Unknown)
	n := r.take()
	if len(n) != 2 || n[0].Call != sentCall || n[1].State.State != Disconnected || n[1].State.Err == nil {
		t.Fatalf("%+v", n)
	}
	if reqs := r.connect(7); len(reqs) != 1 || reqs[0].Op != wire.OpSync {
		t.Fatalf("%+v", reqs)
	}
	r.reply(2, 5, 0, &wire.SyncResponse{Path: "/a"})
	if waiting.Result.Applied != Yes || waiting.Result.Conn != 2 {
		t.Fatalf("%+v", waiting.Result)
	}
}

// TestMovedSessionEndsConnection checks that the core leaves a server that refuses a request
// because the session has moved to another server. ZooKeeper 3.4 keeps the connection open if
// the request is a multi.
func TestMovedSessionEndsConnection(t *testing.T) {
	multi := Op{Code: wire.OpMulti, Sub: []Op{{Code: wire.OpCheck, Path: "/a"}, {Code: wire.OpCheck, Path: "/b"}}}
	for _, ops := range [][]Op{{multi}, {batchableDelete("/a/x"), batchableDelete("/b/x")}, {syncA}} {
		r := newRig(t, nil)
		r.connect(7)
		var refused []*Call
		for _, op := range ops {
			refused = append(refused, r.submit(op))
		}
		r.requests()
		after := r.submit(getA)
		r.requests()
		if ops[0].Code == wire.OpSync {
			r.reply(1, 40, wire.ErrSessionMoved, nil)
		} else {
			r.reply(1, 40, 0, failed(2, 0, wire.ErrSessionMoved))
		}
		if err := refused[0].Result.Err(); err != wire.ErrSessionMoved || refused[0].Result.Applied != No {
			t.Errorf("%s: %v", ops[0].Code, err)
		}
		r.wantFail(after, ErrConnectionLost, Unknown)
		r.wantLost(wire.ErrSessionMoved)
	}
}

// TestMovedSessionIsClosed checks that such an answer does not keep the core from closing the
// session: the servers do not ask whether a session that is to be closed has moved.
func TestMovedSessionIsClosed(t *testing.T) {
	multi := Op{Code: wire.OpMulti, Sub: []Op{{Code: wire.OpCheck, Path: "/a"}, {Code: wire.OpCheck, Path: "/b"}}}
	r := newRig(t, nil)
	r.connect(7)
	r.submit(multi)
	r.requests()
	r.core.Close(r.now)
	r.reply(1, 40, 0, failed(2, 0, wire.ErrSessionMoved))
	if reqs := r.requests(); len(reqs) != 1 || reqs[0].Op != wire.OpCloseSession {
		t.Fatalf("%+v", reqs)
	}
	r.reply(2, 41, 0, nil)
	n := r.take()
	if last := n[len(n)-1].State; last.State != Closed || last.Err != nil {
		t.Errorf("%+v", last)
	}
}

func TestNoRequestRunsInALaterSession(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	r.core.Lost(r.gen, errors.New("cut"), r.now)
	old := r.core.epoch
	waiting := r.submit(getA)
	r.dial()
	r.greet(wire.ConnectResponse{Password: make([]byte, 16)})
	r.wantFail(waiting, ErrSessionExpired, No)

	// A caller that has not received the notice means the old session.
	late := &Call{Op: getA}
	r.core.Submit(late, old)
	r.wantFail(late, ErrSessionExpired, No)

	next := r.submit(syncA)
	reqs := r.connect(8)
	if len(reqs) != 1 || reqs[0].Op != wire.OpSync {
		t.Fatalf("%+v", reqs)
	}
	n := r.take()
	if n[len(n)-2].State.State != Expired && n[len(n)-1].State.Epoch != old+1 {
		t.Fatalf("%+v", n)
	}
	r.reply(reqs[0].Xid, 1, 0, &wire.SyncResponse{Path: "/a"})
	if next.Result.Applied != Yes {
		t.Fatalf("%+v", next.Result)
	}
}

func TestOnlyUnsentCallsAreWithdrawn(t *testing.T) {
	r := newRig(t, nil)
	a, b, c := r.submit(getA), r.submit(syncA), r.submit(getA)
	if !r.core.Withdraw(b) || r.core.Withdraw(b) {
		t.Fatal("not withdrawn exactly once")
	}
	reqs := r.connect(7)
	if len(reqs) != 2 || r.core.Withdraw(a) || r.core.Withdraw(c) {
		t.Fatalf("%+v", reqs)
	}
	r.take()
	r.reply(1, 1, wire.ErrNoNode, nil)
	r.reply(2, 1, wire.ErrNoNode, nil)
	if n := r.take(); len(n) != 2 || n[0].Call != a || n[1].Call != c {
		t.Fatalf("%+v", n)
	}
}

func TestInvalidOperationsAreNotSent(t *testing.T) {
	r := newRig(t, func(c *Config) { c.MaxRequest = 1000 })
	r.connect(7)
	for _, row := range []struct {
		op   Op
		want error
	}{
		{Op{}, ErrInvalidOp},
		{Op{Code: wire.OpCheck, Path: "/a"}, ErrInvalidOp},
		{Op{Code: wire.OpPing}, ErrInvalidOp},
		{Op{Code: wire.OpCloseSession}, ErrInvalidOp},
		{Op{Code: wire.OpMulti, Sub: []Op{{Code: wire.OpMulti}}}, ErrInvalidOp},
		{Op{Code: wire.OpMulti, Sub: []Op{getA}}, ErrInvalidOp},
		{Op{Code: wire.OpMultiRead, Sub: []Op{{Code: wire.OpDelete, Path: "/a"}}}, ErrInvalidOp},
		{Op{Code: wire.OpSetData, Path: "/a", Data: make([]byte, 1000)}, ErrTooLarge},
		{Op{Code: wire.OpMulti, Sub: []Op{{Code: wire.OpSetData, Path: "/a", Data: make([]byte, 980)}}}, ErrTooLarge},
	} {
		call := r.submit(row.op)
		r.wantFail(call, row.want, No)
	}
	if reqs := r.requests(); len(reqs) != 0 {
		t.Fatalf("sent %+v", reqs)
	}
	// 8 header, 4+2 path, 4 length, 4 version: the largest that fits.
	r.submit(Op{Code: wire.OpSetData, Path: "/a", Data: make([]byte, 1000-22)})
	if out := r.output(); len(out) != 1 || len(out[0]) != 1000 {
		t.Fatalf("%d frames", len(out))
	}
	r.wantFail(r.submit(Op{Code: wire.OpSetData, Path: "/a", Data: make([]byte, 1000-21)}), ErrTooLarge, No)
}

func TestWriteSizeIsLimited(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	for range 300 {
		r.submit(Op{Code: wire.OpSetData, Path: "/a", Data: make([]byte, 1000)})
	}
	last := r.submit(getA)
	b := r.core.TakeOutput(nil, r.now)
	if len(b) < maxWrite || len(b) > maxWrite+2000 {
		t.Fatalf("a write of %d bytes", len(b))
	}
	if !r.core.HasOutput() || !r.core.Withdraw(last) {
		t.Fatal("all was encoded at once")
	}
}

func TestXidWrapsAroundToOne(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	r.core.xid = math.MaxInt32 - 1
	r.submit(getA)
	r.submit(getA)
	reqs := r.requests()
	if reqs[0].Xid != math.MaxInt32 || reqs[1].Xid != 1 {
		t.Fatalf("%+v", reqs)
	}
	r.reply(math.MaxInt32, 1, wire.ErrNoNode, nil)
	r.reply(1, 1, wire.ErrNoNode, nil)
	if r.core.Live() == 0 {
		t.Fatal("lost")
	}
}

func TestCallIsUsedAgain(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	r.take()
	call := &Call{Op: Op{Code: wire.OpMulti, Sub: []Op{{Code: wire.OpDelete, Path: "/a"}}}}
	for i := int32(1); i <= 3; i++ {
		r.core.Submit(call, 0)
		r.requests()
		r.reply(i, int64(i), 0, &wire.MultiResponse{Results: []wire.MultiResult{{Op: wire.OpDelete}}})
		if len(call.Result.Sub) != 1 || call.Result.Zxid != int64(i) {
			t.Fatalf("%+v", call.Result)
		}
		if n := r.take(); len(n) != 1 || n[0].Call != call {
			t.Fatalf("%+v", n)
		}
	}
	call.Reset()
	if call.Op.Path != "" || call.Result.Sub == nil || len(call.Result.Sub) != 0 {
		t.Fatalf("%+v", call)
	}
}

func TestAnswersAreDecoded(t *testing.T) {
	stat := wire.Stat{Czxid: 3, Version: 4}
	acl := []wire.ACL{{Perms: wire.PermRead, Scheme: "world", ID: "anyone"}}
	long := strings.Repeat("n", 300)
	for _, row := range []struct {
		op   Op
		body wire.Record
		ok   func(*Result) bool
	}{
		{Op{Code: wire.OpCreate, Path: "/a"}, &wire.CreateResponse{Path: "/a0"}, func(r *Result) bool { return r.Path == "/a0" }},
		{Op{Code: wire.OpCreate2, Path: "/a"}, &wire.Create2Response{Path: "/a", Stat: stat}, func(r *Result) bool { return r.Path == "/a" && r.Stat == stat }},
		{Op{Code: wire.OpCreateContainer, Path: "/a", Mode: 4}, &wire.Create2Response{Path: "/a", Stat: stat}, func(r *Result) bool { return r.Stat == stat }},
		{Op{Code: wire.OpCreateTTL, Path: "/a", Mode: 5, TTL: 9}, &wire.Create2Response{Path: "/a", Stat: stat}, func(r *Result) bool { return r.Stat == stat }},
		{Op{Code: wire.OpDelete, Path: "/a"}, nil, func(r *Result) bool { return r.Zxid == 9 }},
		{Op{Code: wire.OpExists, Path: "/a"}, &wire.ExistsResponse{Stat: stat}, func(r *Result) bool { return r.Stat == stat }},
		{getA, &wire.GetDataResponse{Stat: stat}, func(r *Result) bool { return r.Data == nil && r.Stat == stat }},
		{getA, &wire.GetDataResponse{Data: []byte{}}, func(r *Result) bool { return r.Data != nil && len(r.Data) == 0 }},
		{Op{Code: wire.OpSetData, Path: "/a"}, &wire.SetDataResponse{Stat: stat}, func(r *Result) bool { return r.Stat == stat }},
		{Op{Code: wire.OpGetACL, Path: "/a"}, &wire.GetACLResponse{ACL: acl, Stat: stat}, func(r *Result) bool { return r.ACL[0] == acl[0] && r.Stat == stat }},
		{Op{Code: wire.OpSetACL, Path: "/a", ACL: acl}, &wire.SetACLResponse{Stat: stat}, func(r *Result) bool { return r.Stat == stat }},
		{Op{Code: wire.OpGetChildren, Path: "/a"}, &wire.GetChildrenResponse{Children: []string{long}}, func(r *Result) bool { return r.Strings[0] == long }},
		{Op{Code: wire.OpGetChildren2, Path: "/a"}, &wire.GetChildren2Response{Children: []string{"b"}, Stat: stat}, func(r *Result) bool { return r.Strings[0] == "b" && r.Stat == stat }},
		{syncA, &wire.SyncResponse{Path: "/a"}, func(r *Result) bool { return r.Path == "/a" }},
		{Op{Code: wire.OpGetEphemerals, Path: "/"}, &wire.GetEphemeralsResponse{Ephemerals: []string{"/e"}}, func(r *Result) bool { return r.Strings[0] == "/e" }},
		{Op{Code: wire.OpGetAllChildrenNumber, Path: "/"}, &wire.GetAllChildrenNumberResponse{TotalNumber: 5}, func(r *Result) bool { return r.Count == 5 }},
		{Op{Code: wire.OpWhoAmI}, &wire.WhoAmIResponse{ClientInfo: []wire.ClientInfo{{AuthScheme: "ip", User: "u"}}}, func(r *Result) bool { return r.Users[0].User == "u" }},
		{Op{Code: wire.OpAddWatch, Path: "/a"}, &wire.ErrorResponse{}, func(r *Result) bool { return r.Applied == Yes }},
		{Op{Code: wire.OpCheckWatches, Path: "/a", Type: 3}, nil, func(r *Result) bool { return r.Applied == Yes }},
	} {
		t.Run(row.op.Code.String(), func(t *testing.T) {
			r := newRig(t, nil)
			r.connect(7)
			call := r.submit(row.op)
			r.requests() // decodes the sent requests
			r.reply(1, 9, 0, row.body)
			if r.core.Live() == 0 || call.Result.Err() != nil || !row.ok(&call.Result) {
				t.Fatalf("%+v, failures %v", call.Result, r.core.Failures())
			}
			// One byte more or less is not a valid answer.
			for _, cut := range []int{-1, 1} {
				r.submit(row.op)
				xid := r.requests()[0].Xid
				h := wire.ReplyHeader{Xid: xid, Zxid: 9}
				b := h.Append(nil)
				if row.body != nil {
					b = row.body.Append(b)
				}
				if cut < 0 && row.body == nil {
					continue
				}
				r.frame(append(b, 0)[:len(b)+cut])
				r.wantLost(ErrProtocol)
				r.connect(7)
			}
		})
	}
}

func TestOutcomeOfCodes(t *testing.T) {
	for code, want := range map[wire.ErrCode]Outcome{
		wire.ErrOK: Yes, wire.ErrNoNode: No, wire.ErrSessionExpired: No, wire.ErrMarshalling: No, wire.ErrThrottled: No,
		wire.ErrSystem: Unknown, wire.ErrConnectionLoss: Unknown, wire.ErrOperationTimeout: Unknown, wire.ErrRequestTimeout: Unknown,
	} {
		if got := outcomeOf(code); got != want {
			t.Errorf("%v: %d, want %d", code, got, want)
		}
	}
}
