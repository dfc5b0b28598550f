package tree

import (
	"fmt"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// setOps is a multi that changes a node n times.
func setOps(path string, n int) *wire.MultiRequest {
	m := new(wire.MultiRequest)
	for range n {
		m.Ops = append(m.Ops, wire.MultiOp{Op: wire.OpSetData, Req: &wire.SetDataRequest{Path: path, Version: -1}})
	}
	return m
}

// A multi is refused if its events would take more room than there is for them,
// whoever is to hear of it and from where. Nothing of it is done.
func TestEventsOfAMultiAreBounded(t *testing.T) {
	const watchers, room = 10, multiFanOut * 1000 / (eventCost + len("/a/b"))
	for _, tt := range []struct {
		name  string
		watch func(p *peer) wire.ErrCode
		most  int // changes of /a/b that go at a time
	}{
		{"the node", func(p *peer) wire.ErrCode { return p.lasting("/a/b", wire.AddWatchPersistent) }, room / watchers},
		{"a tree", func(p *peer) wire.ErrCode { return p.lasting("/", wire.AddWatchPersistentRecursive) }, room / watchers},
		{"once", func(p *peer) wire.ErrCode { _, _, err := p.get("/a/b", true); return err }, 1000},
		{"elsewhere", func(p *peer) wire.ErrCode { return p.lasting("/c", wire.AddWatchPersistentRecursive) }, 1000},
	} {
		w := newWorld(t, Config{MaxReply: 1000})
		writer := w.dial()
		writer.mk("/a", 0)
		writer.mk("/a/b", 0)
		writer.mk("/c", 0)
		for range watchers {
			p := w.dial()
			p.want(tt.watch(p), wire.ErrOK, tt.name)
		}
		for _, n := range []int{tt.most, tt.most + 1} {
			_, before, _ := w.tree.Get("/a/b")
			writer.want(writer.ask(wire.OpMulti, setOps("/a/b", n), new(wire.MultiResponse)), wire.ErrOK, "multi")
			_, after, _ := w.tree.Get("/a/b")
			done := after.Version != before.Version
			if want := n <= tt.most || tt.most == 1000; done != want {
				t.Errorf("%s: %d changes: done is %v", tt.name, n, done)
			}
		}
		w.check()
	}
}

// The operation that is one too many is the one with the error, and deletions and
// creations count for those who watch the parent.
func TestFanOutIsBlamed(t *testing.T) {
	w := newWorld(t, Config{MaxReply: 2000})
	p := w.dial()
	p.mk("/a", 0)
	for range 20 {
		q := w.dial()
		q.want(q.lasting("/a", wire.AddWatchPersistent), wire.ErrOK, "addWatch")
	}
	var ops []wire.MultiOp
	for i := range 3 {
		ops = append(ops, opCreate(fmt.Sprint("/a/", i), 0))
	}
	var resp wire.MultiResponse
	p.want(p.ask(wire.OpMulti, &wire.MultiRequest{Ops: ops}, &resp), wire.ErrOK, "multi")
	for i, r := range resp.Results {
		want := []wire.ErrCode{0, wire.ErrQuotaExceeded, wire.ErrRuntimeInconsistency}[i]
		if r.Err != want {
			t.Errorf("operation %d: %s, want %s", i, r.Err.Name(), want.Name())
		}
	}
	wantTally(t, "replies", w.tree.Tallies().RefusedReplies, 1)
	p.want(p.ask(wire.OpMulti, &wire.MultiRequest{Ops: ops[:1]}, &resp), wire.ErrOK, "a shorter multi")
	if _, _, ok := w.tree.Get("/a/0"); !ok {
		t.Error("a multi within the bounds was refused")
	}
}

// The end of a session is never refused. Who can't be told of all that ends with it
// is closed, and nobody hears a part of it and stays.
func TestEventsOfASessionAreBounded(t *testing.T) {
	const nodes, watchers = 40, 20
	for _, expire := range []bool{false, true} {
		w := newWorld(t, Config{MaxReply: 1000})
		owner := w.dial()
		for i := range nodes {
			owner.mk(fmt.Sprint("/e", i), wire.ModeEphemeral)
		}
		owner.want(owner.lasting("/", wire.AddWatchPersistent), wire.ErrOK, "addWatch")
		w.advance(9 * time.Second)
		var peers []*peer
		for range watchers {
			p := w.dial()
			p.want(p.lasting("/", wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
			peers = append(peers, p)
		}
		if expire {
			w.advance(9 * time.Second)
			w.tick()
		} else {
			owner.sendFrame(wire.AppendRequest(nil, 1, wire.OpCloseSession, nil)[4:])
		}
		if got := w.tree.nodes.len(); got != 4 {
			t.Errorf("%d nodes are left, want 4", got)
		}
		cut := 0
		for _, p := range peers {
			if p.closed {
				cut++
			} else if len(p.events) != nodes {
				t.Errorf("a watcher that stayed heard %d of %d events", len(p.events), nodes)
			}
		}
		if cut == 0 || !owner.closed || w.tree.watches.total != 0 && cut == watchers {
			t.Errorf("%d of %d are closed, %d watches are left", cut, watchers, w.tree.watches.total)
		}
		// With room again all goes on as before.
		p, q := w.dial(), w.dial()
		p.want(p.lasting("/", wire.AddWatchPersistentRecursive), wire.ErrOK, "addWatch")
		q.mk("/n", 0)
		p.wantEvents("created /n")
		w.check()
	}
}
