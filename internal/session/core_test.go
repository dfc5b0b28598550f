package session

import (
	"errors"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// A server without a quorum refuses to close a session, whose ephemeral znodes then
// stay. Close must not report that they are gone.
func TestRefusedCloseReportsError(t *testing.T) {
	for _, row := range []struct {
		code wire.ErrCode
		over bool
	}{
		{wire.ErrOK, true},
		{wire.ErrSessionExpired, true},
		{wire.ErrNotReadOnly, false},
		{wire.ErrSessionMoved, false},
		{wire.ErrThrottled, false},
	} {
		r := newRig(t, nil)
		r.connect(7)
		r.core.Close(r.now)
		sent := r.requests()
		if len(sent) != 1 || sent[0].Op != wire.OpCloseSession {
			t.Fatalf("%+v", sent)
		}
		r.reply(sent[0].Xid, 1, row.code, nil)
		if !r.core.Ended() {
			t.Fatalf("%v: not ended", row.code)
		}
		r.take()
		last := r.notices[len(r.notices)-1].State
		if last.State != Closed || (last.Err == nil) != row.over {
			t.Errorf("answer %d: state %d, error %v", row.code, last.State, last.Err)
		}
		if !row.over && !errors.Is(last.Err, row.code) {
			t.Errorf("answer %d is not in %v", row.code, last.Err)
		}
	}
}

// The negotiated timeout of an expired session must not shorten the dial timeout of
// the next servers.
func TestDialTimeoutOfNewSessionIsTheRequestedOne(t *testing.T) {
	r := newRig(t, func(c *Config) { c.Servers = []string{"10.0.0.1:1"} })
	r.timeout = 10 // ms
	r.connect(7)
	r.core.Lost(r.gen, ErrTimeout, r.now)
	r.dial()
	r.greet(wire.ConnectResponse{Password: make([]byte, 16)})
	r.wantStates(Connected, Disconnected, Expired)
	at, _ := r.core.NextTimer()
	r.now = at
	d, ok := r.core.WantDial(r.now)
	if !ok || d.Deadline-r.now != 6*time.Second {
		t.Fatalf("%t: %v for the new session's handshake, want what was asked for, 6s", ok, d.Deadline-r.now)
	}
}

// A multi whose results are failures without an error code was neither executed nor
// refused. Its outcome is unknown.
func TestMultiFailureWithoutCodeIsProtocolError(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	call := r.submit(Op{Code: wire.OpMulti, Sub: []Op{{Code: wire.OpDelete, Path: "/a"}, {Code: wire.OpDelete, Path: "/b"}}})
	sent := r.requests()
	r.reply(sent[0].Xid, 1, 0, &wire.MultiResponse{Results: []wire.MultiResult{
		{Op: wire.OpError, Resp: &wire.ErrorResponse{}}, {Op: wire.OpError, Resp: &wire.ErrorResponse{}},
	}})
	if call.Result.Applied == Yes {
		t.Fatal("a multi with failures only counts as applied")
	}
	r.wantLost(ErrProtocol)
	r.wantFail(call, ErrConnectionLost, Unknown)
}

// TestReadFailureWithoutCodeIsProtocolError checks that a failure without an error code is not
// taken for an empty znode or an empty list of children, in one reading multi and in a batch.
func TestReadFailureWithoutCodeIsProtocolError(t *testing.T) {
	list := func(path string) Op { return Op{Code: wire.OpGetChildren, Path: path} }
	for name, ops := range map[string][]Op{
		"data":     {{Code: wire.OpMultiRead, Sub: []Op{getA, getA}}},
		"children": {{Code: wire.OpMultiRead, Sub: []Op{list("/a"), list("/b")}}},
		"batch":    {batchableList("/a"), batchableList("/b")},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.connect(7)
			var calls []*Call
			for _, op := range ops {
				calls = append(calls, r.submit(op))
			}
			sent := r.requests()
			if len(sent) != 1 || sent[0].Op != wire.OpMultiRead {
				t.Fatalf("%+v", sent)
			}
			none := wire.MultiResult{Op: wire.OpError, Resp: &wire.ErrorResponse{}}
			r.reply(sent[0].Xid, 1, 0, &wire.MultiResponse{Results: []wire.MultiResult{none, none}})
			r.wantLost(ErrProtocol)
			for _, call := range calls {
				r.wantFail(call, ErrConnectionLost, Unknown)
			}
		})
	}
}

// An ACL may suppress an event. The next answer tells the kind of the watch: as an
// exists watch, it would report an old creation.
func TestExistsWatchBecomesADataWatch(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	for _, code := range []wire.ErrCode{wire.ErrNoNode, wire.ErrOK} {
		r.submit(Op{Code: wire.OpExists, Path: "/a", Watch: true})
		sent := r.requests()
		r.reply(sent[0].Xid, 1, code, &wire.ExistsResponse{})
	}
	if k := r.core.watches.paths["/a"]; k != dataWatch {
		t.Errorf("after a hit: %b, want a data watch alone", k)
	}
	r.submit(Op{Code: wire.OpExists, Path: "/a", Watch: true})
	r.reply(r.requests()[0].Xid, 1, wire.ErrNoNode, nil)
	if k := r.core.watches.paths["/a"]; k != existWatch {
		t.Errorf("after a miss: %b, want an exists watch alone", k)
	}
}
