package tree

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// harness runs a Tree as a server does. The shadow is a second Tree that only replays the records.
type harness struct {
	tb     testing.TB
	tree   *Tree
	shadow *Tree
	now    Now
	out    Out
	peers  map[ConnID]*peer
	lastID ConnID
	peer   Peer // of the next clients
	logged [][]byte
}

// peer is a client of a harness.
type peer struct {
	w        *harness
	id       ConnID
	session  int64
	timeout  int32
	password []byte
	xid      int32
	events   []string
	zxids    []int64 // of the events
	replies  []reply
	closed   bool
	raw      [][]byte // frames of the handshake
}

// reply is an answer.
type reply struct {
	wire.ReplyHeader
	body []byte
}

// seededRand returns a deterministic source of passwords.
func seededRand(seed byte) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{seed}) }

func newHarness(tb testing.TB, cfg Config) *harness {
	if cfg.Rand == nil {
		cfg.Rand = seededRand(1)
	}
	w := &harness{
		tb: tb, tree: New(cfg), shadow: New(cfg), peers: make(map[ConnID]*peer),
		peer: Peer{Addr: netip.MustParseAddr("10.1.2.3")},
		now:  Now{Wall: 1_700_000_000_000, Mono: time.Hour},
	}
	w.tree.StartClocks(w.now)
	return w
}

// advance advances the time without a Tick.
func (w *harness) advance(d time.Duration) {
	w.now.Mono += d
	w.now.Wall += d.Milliseconds()
}

func (w *harness) tick() {
	w.tree.Tick(w.now, &w.out)
	w.flush()
}

// flush replays the records in the shadow and passes the frames to the peers.
func (w *harness) flush() {
	w.tb.Helper()
	for _, rec := range w.out.Records {
		w.logged = append(w.logged, rec)
		if err := w.shadow.Replay(rec); err != nil {
			w.tb.Fatalf("replay of a record: %v", err)
		}
	}
	for _, s := range w.out.Sends {
		p := w.peers[s.Conn]
		if p == nil {
			w.tb.Fatalf("frame for unknown connection %d", s.Conn)
		}
		if p.closed {
			w.tb.Fatalf("frame for connection %d after its close", s.Conn)
		}
		if s.Frame != nil {
			p.receive(s.Frame)
		}
		p.closed = s.Close
	}
	w.out.Reset()
}

// check fails unless the shadow and the Tree have the same state.
func (w *harness) check() {
	w.tb.Helper()
	if got, want := w.shadow.AppendSnapshot(nil), w.tree.AppendSnapshot(nil); !bytes.Equal(got, want) {
		w.tb.Fatalf("state after replay differs: %d bytes, want %d", len(got), len(want))
	}
}

// restored returns a tree with the state of t.
func restored(tb testing.TB, cfg Config, t *Tree) *Tree {
	tb.Helper()
	fresh := New(cfg)
	if err := restoreBytes(fresh, t.AppendSnapshot(nil)); err != nil {
		tb.Fatal(err)
	}
	return fresh
}

// restoreBytes restores a snapshot.
func restoreBytes(t *Tree, snapshot []byte) error {
	return t.Restore(bytes.NewReader(snapshot), int64(len(snapshot)))
}

// dialRaw sends a handshake from a new connection.
func (w *harness) dialRaw(req *wire.ConnectRequest) *peer {
	w.tb.Helper()
	w.lastID++
	p := &peer{w: w, id: w.lastID}
	w.peers[p.id] = p
	w.tree.Connect(p.id, w.peer, req, w.now, &w.out)
	w.flush()
	return p
}

// dial connects with a new session.
func (w *harness) dial() *peer {
	w.tb.Helper()
	p := w.dialRaw(&wire.ConnectRequest{Timeout: 10_000, HasReadOnly: true})
	if p.session == 0 || p.closed {
		w.tb.Fatal("no session")
	}
	return p
}

// receive decodes a frame.
func (p *peer) receive(frame []byte) {
	tb := p.w.tb
	tb.Helper()
	r := jute.NewReader(frame[4:])
	if len(p.raw) == 0 {
		p.raw = append(p.raw, frame)
		var resp wire.ConnectResponse
		resp.Decode(r)
		p.session, p.timeout, p.password = resp.SessionID, resp.Timeout, resp.Password
		return
	}
	var h wire.ReplyHeader
	h.Decode(r)
	body := frame[len(frame)-r.Remaining():]
	// A frame with the xid of events may also answer a request with that xid.
	if h.Xid == wire.XidEvent && h.Err == wire.ErrOK {
		var e wire.WatcherEvent
		e.Decode(r)
		if r.Finish() == nil && e.State == wire.StateSyncConnected {
			if h.Zxid != -1 && (h.Zxid < 1 || h.Zxid > p.w.tree.Zxid()) {
				tb.Fatalf("event of transaction %d of %d", h.Zxid, p.w.tree.Zxid())
			}
			p.events, p.zxids = append(p.events, eventName(e.Type)+" "+e.Path), append(p.zxids, h.Zxid)
			return
		}
	}
	p.replies = append(p.replies, reply{h, body})
}

func eventName(typ wire.EventType) string {
	switch typ {
	case wire.EventNodeCreated:
		return "created"
	case wire.EventNodeDeleted:
		return "deleted"
	case wire.EventNodeDataChanged:
		return "data"
	case wire.EventNodeChildrenChanged:
		return "children"
	}
	return fmt.Sprint(typ)
}

// sendFrame sends the body of a frame unchanged.
func (p *peer) sendFrame(frame []byte) {
	p.w.tb.Helper()
	p.w.tree.Request(p.id, frame, p.w.now, &p.w.out)
	p.w.flush()
}

// send sends a request that may have no answer yet.
func (p *peer) send(xid int32, op wire.OpCode, rec wire.Record) {
	p.w.tb.Helper()
	p.sendFrame(wire.AppendRequest(nil, xid, op, rec)[4:])
}

// call sends a request and returns its answer, which must be the last frame. Events are in
// p.events.
func (p *peer) call(op wire.OpCode, rec wire.Record) reply {
	tb := p.w.tb
	tb.Helper()
	p.xid++
	p.replies = nil
	frame := wire.AppendRequest(nil, p.xid, op, rec)[4:]
	sends := len(p.w.out.Sends)
	p.w.tree.Request(p.id, frame, p.w.now, &p.w.out)
	var last ConnID
	if n := len(p.w.out.Sends); n > sends {
		last = p.w.out.Sends[n-1].Conn
	}
	clear(frame) // the Tree must not have kept it
	p.w.flush()
	if len(p.replies) != 1 || last != p.id {
		tb.Fatalf("%s: %d answers, the last send to %d", op, len(p.replies), last)
	}
	got := p.replies[0]
	if got.Xid != p.xid && op != wire.OpPing {
		tb.Fatalf("%s: xid %d, want %d", op, got.Xid, p.xid)
	}
	if got.Err != wire.ErrOK && len(got.body) != 0 {
		tb.Fatalf("%s: error %v with a body", op, got.Err)
	}
	return got
}

// ask is call, and decodes the body of the answer into resp.
func (p *peer) ask(op wire.OpCode, rec, resp wire.Record) wire.ErrCode {
	p.w.tb.Helper()
	got := p.call(op, rec)
	if got.Err == wire.ErrOK {
		r := jute.NewReader(got.body)
		resp.Decode(r)
		if err := r.Finish(); err != nil {
			p.w.tb.Fatalf("%s: answer: %v", op, err)
		}
	}
	return got.Err
}

// want fails unless err is code.
func (p *peer) want(err, code wire.ErrCode, what string) {
	p.w.tb.Helper()
	if err != code {
		p.w.tb.Fatalf("%s: %s, want %s", what, err.Name(), code.Name())
	}
}

// create creates a node with data "x" and an open access control list.
func (p *peer) create(path string, mode wire.CreateMode) (string, wire.ErrCode) {
	p.w.tb.Helper()
	var resp wire.CreateResponse
	err := p.ask(wire.OpCreate, &wire.CreateRequest{Path: path, Data: []byte("x"), ACL: openACL(), Flags: mode}, &resp)
	return resp.Path, err
}

// mk is create, and fails the test on an error.
func (p *peer) mk(path string, mode wire.CreateMode) string {
	p.w.tb.Helper()
	got, err := p.create(path, mode)
	p.want(err, wire.ErrOK, "create "+path)
	return got
}

func (p *peer) mkContainer(path string) {
	p.w.tb.Helper()
	p.want(p.call(wire.OpCreateContainer, &wire.CreateRequest{Path: path, ACL: openACL(), Flags: wire.ModeContainer}).Err, wire.ErrOK, path)
}

// mkACL creates a persistent node with a list.
func (p *peer) mkACL(path string, list ...wire.ACL) wire.ErrCode {
	p.w.tb.Helper()
	return p.ask(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: list}, new(wire.CreateResponse))
}

func (p *peer) remove(path string, version int32) wire.ErrCode {
	p.w.tb.Helper()
	return p.ask(wire.OpDelete, &wire.DeleteRequest{Path: path, Version: version}, new(wire.Empty))
}

func (p *peer) set(path, data string, version int32) wire.ErrCode {
	p.w.tb.Helper()
	return p.ask(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: []byte(data), Version: version}, new(wire.SetDataResponse))
}

func (p *peer) exists(path string, watch bool) (wire.Stat, wire.ErrCode) {
	p.w.tb.Helper()
	var resp wire.ExistsResponse
	err := p.ask(wire.OpExists, &wire.ExistsRequest{Path: path, Watch: watch}, &resp)
	return resp.Stat, err
}

func (p *peer) get(path string, watch bool) ([]byte, wire.Stat, wire.ErrCode) {
	p.w.tb.Helper()
	var resp wire.GetDataResponse
	err := p.ask(wire.OpGetData, &wire.GetDataRequest{Path: path, Watch: watch}, &resp)
	return resp.Data, resp.Stat, err
}

func (p *peer) children(path string, watch bool) ([]string, wire.ErrCode) {
	p.w.tb.Helper()
	var resp wire.GetChildrenResponse
	err := p.ask(wire.OpGetChildren, &wire.GetChildrenRequest{Path: path, Watch: watch}, &resp)
	return resp.Children, err
}

func (p *peer) auth(scheme, secret string) reply {
	p.w.tb.Helper()
	return p.call(wire.OpAuth, &wire.AuthPacket{Scheme: scheme, Auth: []byte(secret)})
}

func (p *peer) addWatch(path string, mode wire.AddWatchMode) wire.ErrCode {
	p.w.tb.Helper()
	return p.ask(wire.OpAddWatch, &wire.AddWatchRequest{Path: path, Mode: mode}, new(wire.ErrorResponse))
}

// takeEvents returns the events since its last call.
func (p *peer) takeEvents() []string {
	e := p.events
	p.events, p.zxids = nil, nil
	return e
}

// wantEvents fails unless the client got exactly these events.
func (p *peer) wantEvents(want ...string) {
	p.w.tb.Helper()
	if got := p.takeEvents(); !slices.Equal(got, want) {
		p.w.tb.Fatalf("events %q, want %q", got, want)
	}
}

// disconnect ends the connection.
func (p *peer) disconnect() {
	p.w.tree.Disconnect(p.id, p.w.now)
	p.closed = true
}
