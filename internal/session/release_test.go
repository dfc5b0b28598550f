package session

import (
	"errors"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

var (
	createSeq    = Op{Code: wire.OpCreate2, Path: "/l/n-", Data: []byte("d"), Mode: wire.ModeEphemeralSequential}
	containerL   = Op{Code: wire.OpCreateContainer, Path: "/l", Mode: wire.ModeContainer}
	addRecursive = Op{Code: wire.OpAddWatch, Path: "/l", WatchMode: wire.AddWatchPersistentRecursive}
)

// wantOps checks which requests the core sends.
func (r *rig) wantOps(sent []sentFrame, want ...wire.OpCode) {
	r.t.Helper()
	for i, f := range sent {
		if i >= len(want) || f.Op != want[i] {
			r.t.Fatalf("request %d is %v, want %v", i, f.Op, want)
		}
	}
	if len(sent) != len(want) {
		r.t.Fatalf("%d requests, want %v", len(sent), want)
	}
}

// old returns a rig whose core has learned that its server is of ZooKeeper 3.4.
func old(t *testing.T, change func(*Config)) *rig {
	r := newRig(t, change)
	r.connect(7)
	r.submit(createSeq)
	r.reply(r.requests()[0].Xid, 0, wire.ErrUnimplemented, nil)
	r.wantLost(ErrOldServer)
	sent := r.connect(7)
	r.wantOps(sent, wire.OpExists)
	r.reply(sent[0].Xid, 41, wire.ErrNoNode, nil)
	r.take()
	return r
}

func TestOldServerGetsCreateInsteadOfCreate2(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	call, read, later := r.submit(createSeq), r.submit(getA), r.submit(syncA)
	sent := r.requests()
	r.wantOps(sent, wire.OpCreate2, wire.OpGetData, wire.OpSync)
	r.reply(sent[0].Xid, 0, wire.ErrUnimplemented, nil)
	r.wantFail(call, ErrConnectionLost, No)
	r.wantFail(read, ErrConnectionLost, No)
	r.wantFail(later, ErrConnectionLost, Unknown)
	if !call.Result.Resend || !read.Result.Resend || later.Result.Resend {
		t.Fatalf("resend: %v, %v, %v; want true, true, false", call.Result.Resend, read.Result.Resend, later.Result.Resend)
	}
	r.wantLost(ErrOldServer)
	r.connect(7)

	call.Reset()
	again := r.submit(createSeq)
	sent = r.requests()
	r.wantOps(sent, wire.OpCreate)
	r.reply(r.core.releaseCall.xid, 50, wire.ErrNoNode, nil)
	r.reply(sent[0].Xid, 51, 0, &wire.CreateResponse{Path: "/l/n-0000000003"})
	want := wire.Stat{Czxid: 51, Mzxid: 51, Pzxid: 51, EphemeralOwner: 7, DataLength: 1}
	if res := again.Result; res.Err() != nil || res.Path != "/l/n-0000000003" || res.Stat != want {
		t.Fatalf("%+v", res)
	}
	existing := r.submit(createSeq)
	r.reply(r.requests()[0].Xid, 52, wire.ErrNodeExists, nil)
	if res := existing.Result; res.Err() != wire.ErrNodeExists || res.Stat != (wire.Stat{}) {
		t.Fatalf("a create that failed has a Stat: %+v", res)
	}
}

// ZooKeeper 3.4 answers that it does not know a request before it has answered the requests
// ahead of that one.
func TestUnimplementedAnswerMayOvertakeOthers(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	first, call := r.submit(syncA), r.submit(containerL)
	sent := r.requests()
	r.reply(sent[1].Xid, 0, wire.ErrUnimplemented, nil)
	r.wantLost(ErrOldServer)
	r.wantFail(first, ErrConnectionLost, Unknown)
	r.wantFail(call, ErrConnectionLost, No)
	r.connect(7)
	again := r.submit(containerL)
	if res := again.Result; res.Err() != wire.ErrUnimplemented || res.Applied != No {
		t.Fatalf("%+v", res)
	}
	r.wantOps(r.requests())
}

// The refusal of other requests than unknown ones says nothing about the server.
func TestConfiguredRefusalsDoNotMakeServersOld(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	for _, op := range []Op{
		{Code: wire.OpCreateTTL, Path: "/t", Mode: wire.ModePersistentTTL, TTL: 1},
		{Code: wire.OpReconfig, Members: &wire.ReconfigRequest{}},
		getA,
	} {
		call := r.submit(op)
		r.reply(r.requests()[0].Xid, 5, wire.ErrUnimplemented, nil)
		if call.Result.Err() != wire.ErrUnimplemented || r.core.release != newest || r.core.Live() == 0 {
			t.Fatalf("%v: %+v, release %d", op.Code, call.Result, r.core.release)
		}
	}
}

func TestEachReleaseRefusesOnlyWhatItDoesNotKnow(t *testing.T) {
	for _, row := range []struct {
		op    Op
		knows release
	}{{containerL, release34}, {addRecursive, release35}, {Op{Code: wire.OpWhoAmI}, release36}} {
		r := newRig(t, nil)
		r.connect(7)
		call := r.submit(row.op)
		r.reply(r.requests()[0].Xid, 5, wire.ErrUnimplemented, nil)
		if call.Result.Err() != wire.ErrUnimplemented || call.Result.Applied != No || r.core.release != row.knows {
			t.Fatalf("%v: %+v, release %d", row.op.Code, call.Result, r.core.release)
		}
		r.connect(7)
		for _, op := range []Op{containerL, addRecursive, {Code: wire.OpWhoAmI}, getA} {
			call := r.submit(op)
			if refused := call.Result.Code == wire.ErrUnimplemented; refused != (op.since() > row.knows) {
				t.Errorf("after %v, %v is refused: %v", row.op.Code, op.Code, refused)
			}
		}
	}
}

func TestUpgradedServerGetsNewRequestsAgain(t *testing.T) {
	r := old(t, nil)
	r.submit(createSeq)
	r.wantOps(r.requests(), wire.OpCreate)
	r.core.Lost(r.gen, errors.New("restarted"), r.now)
	sent := r.connect(7)
	r.wantOps(sent, wire.OpExists)
	r.reply(sent[0].Xid, 60, 0, &wire.ExistsResponse{})
	r.submit(createSeq)
	r.submit(containerL)
	r.wantOps(r.requests(), wire.OpCreate2, wire.OpCreateContainer)
	r.core.Lost(r.gen, errors.New("cut"), r.now)
	r.wantOps(r.connect(7)) // nothing more is asked
}

// During a rolling upgrade, the requests of a client may still reach old servers.
func TestNewRequestsWaitUntilEveryOldServerIsUpgraded(t *testing.T) {
	r := old(t, func(cfg *Config) { cfg.Servers, cfg.KeepOrder = []string{"a:1", "b:1"}, true }) // a, then b
	for _, row := range []struct {
		server string
		answer wire.ErrCode
		create wire.OpCode
	}{
		{"a:1", wire.ErrOK, wire.OpCreate},
		{"b:1", wire.ErrNoNode, wire.OpCreate},
		{"a:1", wire.ErrOK, wire.OpCreate},
		{"b:1", wire.ErrOK, wire.OpCreate2},
	} {
		r.core.Lost(r.gen, errors.New("restarted"), r.now)
		sent := r.connect(7)
		r.wantOps(sent, wire.OpExists)
		if r.server != row.server {
			t.Fatalf("connected to %s, want %s", r.server, row.server)
		}
		var body wire.Record
		if row.answer == wire.ErrOK {
			body = &wire.ExistsResponse{}
		}
		r.reply(sent[0].Xid, 60, row.answer, body)
		r.submit(createSeq)
		r.wantOps(r.requests(), row.create)
	}
}

// Servers before 3.6 cannot set a persistent watch again. Its users must learn that it has ended.
func TestPersistentWatchEndsOnOldServer(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	r.submit(addRecursive)
	r.reply(r.requests()[0].Xid, 5, 0, &wire.ErrorResponse{})
	r.submit(Op{Code: wire.OpGetData, Path: "/a", Watch: true})
	r.reply(r.requests()[0].Xid, 5, 0, &wire.GetDataResponse{})
	r.core.Lost(r.gen, errors.New("downgraded"), r.now)
	r.wantOps(r.connect(7), wire.OpSetWatches2)
	r.reply(wire.XidSetWatches, 0, wire.ErrUnimplemented, nil)
	r.wantLost(ErrRefused)
	r.take()
	r.wantOps(r.connect(7), wire.OpSetWatches, wire.OpExists)
	var events []Event
	for _, n := range r.take() {
		if n.Kind == NoticeEvent {
			events = append(events, n.Event)
		}
	}
	if len(events) != 1 || events[0].Type != wire.EventPersistentWatchRemoved || events[0].Path != "/l" {
		t.Fatalf("%+v", events)
	}
}

// A read-only server is no exception.
func TestPersistentWatchEndsOnOldReadOnlyServer(t *testing.T) {
	r := newRig(t, func(c *Config) { c.ReadOnly = true })
	r.connect(7)
	r.submit(addRecursive)
	r.reply(r.requests()[0].Xid, 5, 0, &wire.ErrorResponse{})
	r.submit(Op{Code: wire.OpMultiRead, Sub: []Op{getA}})
	r.reply(r.requests()[0].Xid, 5, wire.ErrUnimplemented, nil)
	waiting := r.submit(addRecursive)
	r.take()
	r.dial()
	w := r.welcome(7)
	w.ReadOnly = true
	r.greet(w)
	notices := r.take()
	if len(notices) != 2 || notices[0].State.State != ConnectedReadOnly ||
		notices[1].Event.Type != wire.EventPersistentWatchRemoved || notices[1].Event.Path != "/l" {
		t.Fatalf("%+v", notices)
	}
	if waiting.Result.Err() != wire.ErrUnimplemented {
		t.Fatalf("%+v", waiting.Result)
	}
}

// The result of a request that the server does not know precedes the end of the connection,
// and of the client.
func TestRefusalPrecedesEndOfConnection(t *testing.T) {
	for name, op := range map[string]Op{
		"one":   addRecursive,
		"batch": {Code: wire.OpMultiRead},
	} {
		for _, closing := range []bool{false, true} {
			r := newRig(t, nil)
			r.connect(7)
			last := Disconnected
			if op.Code == wire.OpMultiRead {
				r.submit(batchableList("/a"))
				r.submit(batchableList("/b"))
			} else {
				r.submit(op)
			}
			first := r.requests()[0]
			if first.Op != op.Code {
				t.Fatalf("%s: request %v", name, first.Op)
			}
			if closing {
				r.core.Close(r.now)
				last = Closed
			}
			r.take()
			r.reply(first.Xid, 5, wire.ErrUnimplemented, nil)
			notices := r.take()
			end := len(notices) - 1
			for _, n := range notices[:end] {
				if n.Kind != NoticeReply {
					t.Errorf("%s, closing %v: %+v", name, closing, notices)
				}
			}
			if end < 1 || notices[end].Kind != NoticeState || notices[end].State.State != last {
				t.Errorf("%s, closing %v: %+v", name, closing, notices)
			}
		}
	}
}

// A multi with an operation that the server does not know cannot be decoded.
func TestMalformedMultiWithContainerIsUnimplemented(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	with := Op{Code: wire.OpMulti, Sub: []Op{containerL}}
	call := r.submit(with)
	r.reply(r.requests()[0].Xid, 5, wire.ErrMarshalling, nil)
	if res := call.Result; res.Err() != wire.ErrUnimplemented || res.Applied != No || r.core.release != release34 {
		t.Fatalf("%+v", res)
	}
	if again := r.submit(with); again.Result.Err() != wire.ErrUnimplemented {
		t.Fatalf("%+v", again.Result)
	}
	r.wantOps(r.requests())
}
