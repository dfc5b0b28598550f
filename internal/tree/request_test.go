package tree

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// raw is an encoded body.
type raw []byte

func (raw) Decode(*jute.Reader)      {}
func (r raw) Append(b []byte) []byte { return append(b, r...) }

func TestUnknownRequestsCloseTheConnection(t *testing.T) {
	for _, op := range []wire.OpCode{0, 10, 23, 99, 108, 1000, -2, -9, wire.OpError, wire.OpCheck, wire.OpDeleteContainer, wire.OpCreateSession, opSessionTimeout, -1 << 31} {
		w := newHarness(t, Config{})
		p := w.dial()
		zxid := w.tree.Zxid()
		body := raw((&wire.CheckVersionRequest{Path: "/"}).Append(nil))
		if r := p.call(op, body); r.Err != wire.ErrUnimplemented || r.Zxid != -1 || !p.closed {
			t.Errorf("request %d: %+v, closed %v", op, r.ReplyHeader, p.closed)
		}
		if w.tree.Zxid() != zxid || w.tree.Counts().Sessions != 1 {
			t.Errorf("request %d changed the state", op)
		}
	}
}

func TestMalformedBodiesAreRefused(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	writes := 0
	for op := wire.OpCreate; op <= wire.OpAddWatch; op++ {
		rec := wire.NewRequest(op)
		if rec == nil || op == wire.OpAuth || op == wire.OpSASL || op == wire.OpPing || op == wire.OpCheck {
			continue
		}
		before := w.tree.Zxid()
		want := before
		if isWrite(op) {
			writes++
		}
		if op == wire.OpMulti {
			want++ // no other malformed request uses a zxid
		}
		// The string is longer than the rest of the frame.
		r := p.call(op, raw{0, 0, 1, 0, '/'})
		if r.Err != wire.ErrMarshalling || r.Zxid != want || p.closed {
			t.Errorf("%s: %+v, closed %v", op, r.ReplyHeader, p.closed)
		}
	}
	if writes != 9 {
		t.Errorf("%d kinds of writes", writes)
	}
	w.check()
}

func TestBytesAfterRecordAreIgnored(t *testing.T) {
	p := newHarness(t, Config{}).dial()
	body := raw(append((&wire.ExistsRequest{Path: "/"}).Append(nil), 1, 2, 3))
	p.want(p.call(wire.OpExists, body).Err, wire.ErrOK, "exists")
	p.want(p.call(wire.OpPing, raw{1}).Err, wire.ErrOK, "ping")
}

func TestFramesWithoutHeaderCloseConnection(t *testing.T) {
	for n := range 8 {
		w := newHarness(t, Config{})
		p := w.dial()
		p.sendFrame(make([]byte, n))
		if !p.closed || len(p.replies) != 0 || w.tree.Counts().Sessions != 1 {
			t.Errorf("%d bytes: closed %v, %d answers", n, p.closed, len(p.replies))
		}
	}
}

func TestTooLongFramesCloseConnection(t *testing.T) {
	w := newHarness(t, Config{MaxFrame: 100})
	p := w.dial()
	frame := wire.AppendRequest(nil, 1, wire.OpExists, &wire.ExistsRequest{Path: "/"})[4:]
	p.sendFrame(append(frame, make([]byte, 100-len(frame))...))
	if len(p.replies) != 1 {
		t.Fatal("a frame at the limit was not answered")
	}
	p.sendFrame(make([]byte, 101))
	if !p.closed {
		t.Error("a frame above the limit was accepted")
	}
	w.tree.Request(999, frame, w.now, &w.out) // an unknown connection
	if len(w.out.Sends) != 0 {
		t.Error("an unknown connection got an answer")
	}
}

func TestSyncReturnsPath(t *testing.T) {
	p := newHarness(t, Config{}).dial()
	for _, path := range []string{"/", "/none", "", "no path"} {
		var resp wire.SyncResponse
		if err := p.ask(wire.OpSync, &wire.SyncRequest{Path: path}, &resp); err != wire.ErrOK || resp.Path != path {
			t.Errorf("sync %q: %v, %q", path, err, resp.Path)
		}
	}
}

func TestReconfigIsRefused(t *testing.T) {
	for enabled, want := range map[bool]wire.ErrCode{false: wire.ErrReconfigDisabled, true: wire.ErrUnimplemented} {
		w := newHarness(t, Config{ReconfigEnabled: enabled})
		p := w.dial()
		zxid := w.tree.Zxid()
		if r := p.call(wire.OpReconfig, &wire.ReconfigRequest{CurConfigID: -1}); r.Err != want || r.Zxid != zxid+1 || p.closed {
			t.Errorf("enabled %v: %+v", enabled, r.ReplyHeader)
		}
	}
}

func TestReadsOfInvalidPathsFail(t *testing.T) {
	w := newHarness(t, Config{})
	p := w.dial()
	for path, want := range map[string]wire.ErrCode{
		"": wire.ErrOK, "/": wire.ErrOK, "/zookeeper": wire.ErrOK,
		"//": wire.ErrNoNode, "zookeeper": wire.ErrNoNode, "/zookeeper/": wire.ErrNoNode, "/..": wire.ErrNoNode,
	} {
		if _, err := p.exists(path, false); err != want {
			t.Errorf("exists %q: %s", path, err.Name())
		}
		if _, _, err := p.get(path, false); err != want {
			t.Errorf("getData %q: %s", path, err.Name())
		}
		if _, err := p.children(path, false); err != want {
			t.Errorf("getChildren %q: %s", path, err.Name())
		}
	}
	if _, err := p.exists("/\x00", true); err != wire.ErrBadArguments {
		t.Errorf("exists with a zero: %s", err.Name())
	}
	if _, _, err := p.get("/\x00", true); err != wire.ErrNoNode {
		t.Errorf("getData with a zero: %s", err.Name())
	}
}

func TestChildrenAreInOrderOfCreation(t *testing.T) {
	w, p, actor := newWatchHarness(t, Config{})
	for _, name := range []string{"/a/z", "/a/c", "/a/y"} {
		actor.mk(name, 0)
	}
	var resp wire.GetChildren2Response
	p.want(p.ask(wire.OpGetChildren2, &wire.GetChildren2Request{Path: "/a", Watch: true}, &resp), wire.ErrOK, "getChildren2")
	if got := len(resp.Children); got != 4 || resp.Stat != w.tree.nodes.get("/a").stat() {
		t.Errorf("%q, %+v", resp.Children, resp.Stat)
	}
	actor.remove("/a/c", -1)
	p.wantEvents("children /a")
	if names, _ := p.children("/a", false); len(names) != 3 || names[0] != "b" || names[1] != "z" || names[2] != "y" {
		t.Errorf("children %q, want the rest in the order of creation", names)
	}
	p.want(p.ask(wire.OpGetChildren2, &wire.GetChildren2Request{Path: "/n"}, &resp), wire.ErrNoNode, "getChildren2")
}

func TestEphemeralsAndAllChildrenNumber(t *testing.T) {
	w, p, actor := newWatchHarness(t, Config{})
	p.mk("/a/e2", wire.ModeEphemeral)
	p.mk("/a/e1", wire.ModeEphemeral)
	p.mk("/e", wire.ModeEphemeral)
	actor.mk("/theirs", wire.ModeEphemeral)
	for prefix, want := range map[string]int{"": 3, "  ": 3, "/": 3, " / ": 3, "/a": 2, "/a/e1": 1, "/theirs": 0, "a": 0} {
		var resp wire.GetEphemeralsResponse
		p.want(p.ask(wire.OpGetEphemerals, &wire.GetEphemeralsRequest{PrefixPath: prefix}, &resp), wire.ErrOK, "getEphemerals")
		if len(resp.Ephemerals) != want {
			t.Errorf("ephemerals under %q: %q", prefix, resp.Ephemerals)
		}
	}
	total := int32(w.tree.nodes.len())
	for path, want := range map[string]int32{"/": total - 1, "": total, "/a": 3, "/a/b": 0, "/zookeeper": 2} {
		var resp wire.GetAllChildrenNumberResponse
		err := p.ask(wire.OpGetAllChildrenNumber, &wire.GetAllChildrenNumberRequest{Path: path}, &resp)
		if err != wire.ErrOK || resp.TotalNumber != want {
			t.Errorf("below %q: %d, %v, want %d", path, resp.TotalNumber, err, want)
		}
	}
	p.want(p.call(wire.OpGetAllChildrenNumber, &wire.GetAllChildrenNumberRequest{Path: "/n"}).Err, wire.ErrNoNode, "getAllChildrenNumber")
}

// TestLongAnswersNeedLentBuffer checks that a read with a long answer does nothing, and sets no
// watch, until the caller lends a buffer, and that the answer then uses it.
func TestLongAnswersNeedLentBuffer(t *testing.T) {
	const long = 1000
	w := newHarness(t, Config{LongReply: long})
	p, actor := w.dial(), w.dial()
	actor.mk("/short", 0)
	actor.mk("/n", 0)
	actor.set("/n", strings.Repeat("x", long), -1)
	for i := range 20 {
		actor.mk(fmt.Sprint("/n/", strings.Repeat("c", 50), i), 0)
	}
	var all wire.MultiReadRequest
	for range 3 {
		all.Ops = append(all.Ops, wire.MultiOp{Op: wire.OpGetData, Req: &wire.GetDataRequest{Path: "/n"}})
	}
	events := []string{"data /n", "children /n"}
	for _, tt := range []struct {
		op    wire.OpCode
		req   wire.Record
		event string
	}{
		{wire.OpGetData, &wire.GetDataRequest{Path: "/n", Watch: true}, events[0]},
		{wire.OpGetChildren, &wire.GetChildrenRequest{Path: "/n", Watch: true}, events[1]},
		{wire.OpGetChildren2, &wire.GetChildren2Request{Path: "/n", Watch: true}, events[1]},
		{wire.OpMultiRead, &all, ""},
	} {
		change := func() {
			actor.set("/n", strings.Repeat("y", long), -1)
			actor.remove("/n/new", -1)
			actor.mk("/n/new", 0)
		}
		p.replies = nil
		p.send(1, tt.op, tt.req)
		size := w.tree.TakeWantedBuffer()
		if size < long || len(p.replies) > 0 {
			t.Fatalf("%s: wants %d bytes, %d answers", tt.op, size, len(p.replies))
		}
		change()
		p.wantEvents()
		p.send(2, tt.op, tt.req) // a buffer that is too small
		w.tree.LendBuffer(make([]byte, 0, size/2))
		p.send(3, tt.op, tt.req)
		if more := w.tree.TakeWantedBuffer(); more < size || len(p.replies) > 0 {
			t.Fatalf("%s: wants %d bytes, %d answers", tt.op, more, len(p.replies))
		}
		lent := make([]byte, 0, 2*size)
		w.tree.LendBuffer(lent)
		p.call(tt.op, tt.req)
		if n := w.tree.TakeWantedBuffer(); n > 0 || lent[:4][3] == 0 && lent[:4][2] == 0 {
			t.Errorf("%s: wants %d bytes, and the lent buffer begins with %v", tt.op, n, lent[:4])
		}
		change()
		if got := p.takeEvents(); tt.event != "" && !slices.Contains(got, tt.event) {
			t.Errorf("%s: events %q, want %q", tt.op, got, tt.event)
		}
	}
	p.call(wire.OpGetData, &wire.GetDataRequest{Path: "/short"}) // needs none
}
