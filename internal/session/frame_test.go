package session

import (
	"testing"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

func TestMalformedAnswersEndTheConnection(t *testing.T) {
	for name, send := range map[string]func(*rig){
		"no request":           func(r *rig) { r.reply(1, 5, wire.ErrNoNode, nil); r.reply(2, 5, wire.ErrNoNode, nil) },
		"later request":        func(r *rig) { r.reply(2, 5, wire.ErrNoNode, nil) },
		"same answer twice":    func(r *rig) { r.reply(1, 5, wire.ErrNoNode, nil); r.reply(1, 5, wire.ErrNoNode, nil) },
		"unknown special xid":  func(r *rig) { r.reply(-3, 5, 0, nil) },
		"xid 0":                func(r *rig) { r.reply(0, 5, 0, nil) },
		"ping not sent":        func(r *rig) { r.reply(wire.XidPing, 5, 0, nil) },
		"auth not sent":        func(r *rig) { r.reply(wire.XidAuth, 0, 0, nil) },
		"setWatches not sent":  func(r *rig) { r.reply(wire.XidSetWatches, 5, 0, nil) },
		"empty frame":          func(r *rig) { r.frame(nil) },
		"half a header":        func(r *rig) { r.frame(make([]byte, 8)) },
		"event without a body": func(r *rig) { r.reply(wire.XidEvent, -1, 0, nil) },
		"event of 8 bytes":     func(r *rig) { r.frame([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}) },
		"event of no type":     func(r *rig) { r.event(0, "/a", -1) },
		"event of type none":   func(r *rig) { r.event(wire.EventNone, "", -1) },
		"event of type 8":      func(r *rig) { r.event(8, "/a", -1) },
		"event with a long path": func(r *rig) {
			h := wire.ReplyHeader{Xid: wire.XidEvent}
			r.frame(append(h.Append(nil), 0, 0, 0, 1, 0, 0, 0, 3, 0x7f, 0xff, 0xff, 0xff, '/'))
		},
		"answer cut short": func(r *rig) { r.reply(1, 5, 0, nil) },
		"answer with a huge count": func(r *rig) {
			h := wire.ReplyHeader{Xid: 1, Zxid: 5}
			r.frame(jute.AppendInt32(h.Append(nil), 1<<31-1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, nil)
			r.connect(7)
			call := r.submit(Op{Code: wire.OpGetChildren2, Path: "/a"})
			r.requests()
			r.take()
			send(r)
			r.wantLost(ErrProtocol)
			if call.Result.Code == 0 {
				r.wantFail(call, ErrConnectionLost, Unknown)
			}
			r.wantStates(Disconnected)
			r.connect(7) // the core continues
		})
	}
}

func TestLastZxidNeverDecreases(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	for i, zxid := range []int64{100, 90, -1, 0} {
		r.submit(getA)
		r.requests()
		r.reply(int32(i+1), zxid, wire.ErrNoNode, nil)
	}
	r.core.Lost(r.gen, ErrTimeout, r.now)
	if req := r.dial(); req.LastZxidSeen != 100 {
		t.Fatalf("last zxid %d, want 100", req.LastZxidSeen)
	}
}

func TestEventsAndPingsDoNotChangeLastZxid(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	r.submit(getA)
	r.requests()
	r.reply(1, 100, wire.ErrNoNode, nil)
	r.event(wire.EventNodeCreated, "/a", 200)
	r.now += r.core.Timeout() / 3
	r.core.Tick(r.now)
	if reqs := r.requests(); len(reqs) != 1 || reqs[0].Op != wire.OpPing {
		t.Fatalf("%+v", reqs)
	}
	r.reply(wire.XidPing, 300, 0, nil)
	r.take()
	if e := r.notices[len(r.notices)-1].Event; e.Zxid != 200 || e.Path != "/a" || e.Conn != 1 {
		t.Fatalf("%+v", e)
	}
	r.core.Lost(r.gen, ErrTimeout, r.now)
	if req := r.dial(); req.LastZxidSeen != 100 {
		t.Fatalf("last zxid %d, want 100", req.LastZxidSeen)
	}
}

func TestErrorsNeedNoBody(t *testing.T) {
	r := newRig(t, nil)
	r.connect(7)
	call := r.submit(getA)
	r.requests()
	h := wire.ReplyHeader{Xid: 1, Zxid: 5, Err: wire.ErrNoAuth}
	r.frame(append(h.Append(nil), "something"...)) // some servers add a body
	if call.Result.Code != wire.ErrNoAuth || r.core.Live() == 0 {
		t.Fatalf("%+v", call.Result)
	}
}

// FuzzFrames passes arbitrary frames to a working session. The core must neither
// panic nor fail with the next connection, and each call must be returned once.
func FuzzFrames(f *testing.F) {
	ok := wire.ReplyHeader{Xid: 1, Zxid: 5}
	f.Add(byte(0), ok.Append(nil))
	f.Add(byte(1), (&wire.GetDataResponse{Data: []byte("x")}).Append(ok.Append(nil)))
	f.Add(byte(2), multiOK.Append(ok.Append(nil)))
	ev := wire.ReplyHeader{Xid: wire.XidEvent, Zxid: -1}
	f.Add(byte(3), (&wire.WatcherEvent{Type: 1, State: 3, Path: "/a"}).Append(ev.Append(nil)))
	f.Add(byte(4), (&wire.ConnectResponse{Timeout: 1, SessionID: 9, Password: make([]byte, 16)}).Append(nil))
	ops := []Op{getA, {Code: wire.OpMulti, Sub: multiOps}, {Code: wire.OpGetChildren2, Path: "/a", Watch: true},
		{Code: wire.OpGetACL, Path: "/a"}, {Code: wire.OpWhoAmI}, {Code: wire.OpAuth, Scheme: "digest"},
		{Code: wire.OpCreate2, Path: "/a"}, {Code: wire.OpRemoveWatches, Path: "/a", Type: 3}}
	f.Fuzz(func(t *testing.T, which byte, frame []byte) {
		r := newRig(t, nil)
		if which&0x80 != 0 { // in the handshake
			r.dial()
			r.frame(frame)
		} else {
			r.connect(7)
		}
		call := r.submit(ops[int(which&0x7f)%len(ops)])
		r.requests()
		r.frame(frame)
		r.frame(frame)
		r.core.Lost(r.gen, ErrTimeout, r.now)
		r.core.Close(r.now)
		if !r.core.Ended() && r.core.State() != AuthFailed {
			t.Fatal("not closed")
		}
		back := 0
		for _, n := range r.take() {
			if n.Kind == NoticeReply && n.Call == call {
				back++
			}
		}
		if back != 1 {
			t.Fatalf("the call came back %d times", back)
		}
	})
}
