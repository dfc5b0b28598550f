package session

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/zklock/internal/jute"
	"github.com/zklock/zklock/internal/wire"
)

// nodeServer is a server with znodes below a few parents.
type nodeServer struct {
	zxid  int64
	nodes map[string]int64 // path to czxid
	next  int
}

// do executes one operation on nodes.
func (s *nodeServer) do(nodes map[string]int64, op wire.OpCode, req wire.Record) wire.MultiResult {
	fail := func(code wire.ErrCode) wire.MultiResult { return wire.MultiResult{Op: wire.OpError, Err: code} }
	switch q := req.(type) {
	case *wire.CreateRequest:
		if strings.HasPrefix(q.Path, "/missing/") {
			return fail(wire.ErrNoNode)
		}
		path := q.Path
		if q.Flags.Sequential() {
			s.next++
			path = fmt.Sprintf("%s%010d", path, s.next)
		}
		if _, there := nodes[path]; there {
			return fail(wire.ErrNodeExists)
		}
		nodes[path] = s.zxid
		if op == wire.OpCreate2 {
			return wire.MultiResult{Op: op, Resp: &wire.Create2Response{Path: path, Stat: wire.Stat{Czxid: s.zxid}}}
		}
		return wire.MultiResult{Op: op, Resp: &wire.CreateResponse{Path: path}}
	case *wire.DeleteRequest:
		if _, there := nodes[q.Path]; !there {
			return fail(wire.ErrNoNode)
		}
		delete(nodes, q.Path)
		return wire.MultiResult{Op: op}
	case *wire.GetChildrenRequest:
		return wire.MultiResult{Op: op, Resp: &wire.GetChildrenResponse{Children: children(nodes, q.Path)}}
	case *wire.GetChildren2Request:
		return wire.MultiResult{Op: op, Resp: &wire.GetChildren2Response{Children: children(nodes, q.Path)}}
	}
	return fail(wire.ErrUnimplemented)
}

// children returns the sorted names below a path.
func children(nodes map[string]int64, path string) []string {
	list := []string{}
	for p := range nodes {
		if name, ok := strings.CutPrefix(p, path+"/"); ok {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// answer executes a request and passes the answer to the core.
func (s *nodeServer) answer(r *rig, f sentFrame) {
	rd := jute.NewReader(f.body)
	req := wire.NewRequest(f.Op)
	req.Decode(rd)
	s.zxid++
	switch q := req.(type) {
	case *wire.MultiRequest:
		after := maps.Clone(s.nodes)
		m := &wire.MultiResponse{}
		for i, op := range q.Ops {
			res := s.do(after, op.Op, op.Req)
			m.Results = append(m.Results, res)
			if res.Op == wire.OpError {
				m = failed(len(q.Ops), i, res.Err)
				after = s.nodes
				break
			}
		}
		s.nodes = after
		r.reply(f.Xid, s.zxid, 0, m)
	case *wire.MultiReadRequest:
		m := &wire.MultiResponse{}
		for _, op := range q.Ops {
			m.Results = append(m.Results, s.do(s.nodes, op.Op, op.Req))
		}
		r.reply(f.Xid, s.zxid, 0, m)
	default:
		res := s.do(s.nodes, f.Op, req)
		r.reply(f.Xid, s.zxid, res.Err, res.Resp)
	}
}

// history is the state according to the answers, in the order in which they are
// delivered.
type history struct {
	t      *testing.T
	nodes  map[string]int64
	zxids  map[string]bool // "parent zxid" of the creates
	undone int
}

// enter checks one answer, which must be consistent with the earlier ones.
func (b *history) enter(call *Call) {
	b.t.Helper()
	res, o := &call.Result, &call.Op
	switch code := res.Code; {
	case code == wire.ErrRuntimeInconsistency:
		b.undone++
	case code != wire.ErrOK:
		b.refuted(o, code)
	case o.Code == wire.OpGetChildren2:
		got := slices.Sorted(slices.Values(res.Strings))
		if want := children(b.nodes, o.Path); !slices.Equal(got, want) {
			b.t.Errorf("%s: %v, want %v", o.Path, got, want)
		}
	case o.Code == wire.OpMulti:
		for i := range o.Sub {
			b.done(&o.Sub[i], res.Sub[i].Path, res.Zxid)
		}
		b.once(o, res.Zxid)
	default:
		if o.isPlainCreate() && res.Stat.Czxid != res.Zxid {
			b.t.Errorf("%s: czxid %d of the transaction %d", res.Path, res.Stat.Czxid, res.Zxid)
		}
		b.done(o, res.Path, res.Zxid)
		b.once(o, res.Zxid)
	}
	if (res.Code == wire.ErrOK) != (res.Applied == Yes) || res.Code != wire.ErrOK && res.Applied != No {
		b.t.Errorf("%v, applied %d", res.Code, res.Applied)
	}
}

// done records one operation that was executed.
func (b *history) done(o *Op, made string, zxid int64) {
	if o.Code == wire.OpDelete {
		if _, there := b.nodes[o.Path]; !there {
			b.t.Errorf("%s deleted twice", o.Path)
		}
		delete(b.nodes, o.Path)
		return
	}
	if !strings.HasPrefix(made, o.Path) {
		b.t.Errorf("%s made as %q", o.Path, made)
	}
	b.nodes[made] = zxid
}

// once checks that no other call created a znode below the same parent in the same
// transaction.
func (b *history) once(o *Op, zxid int64) {
	mine := map[string]bool{}
	for i := range o.opCount() {
		if p := o.opAt(i); p.isPlainCreate() {
			mine[fmt.Sprint(parentOf(p.Path), " ", zxid)] = true
		}
	}
	for key := range mine {
		if b.zxids[key] {
			b.t.Errorf("two calls made znodes at %s", key)
		}
		b.zxids[key] = true
	}
}

// refuted checks that an operation could fail like this.
func (b *history) refuted(o *Op, code wire.ErrCode) {
	for i := range o.opCount() {
		p := o.opAt(i)
		_, there := b.nodes[p.Path]
		switch {
		case p.Code == wire.OpDelete && !there && code == wire.ErrNoNode,
			p.isPlainCreate() && strings.HasPrefix(p.Path, "/missing/") && code == wire.ErrNoNode,
			p.isPlainCreate() && there && code == wire.ErrNodeExists:
			return
		}
	}
	b.t.Errorf("%+v failed: %v", *o, code)
}

// drawOp returns a random operation on a few znodes.
func drawOp(r *rand.Rand) Op {
	parent := []string{"/a", "/b", "/c", "/d", "/missing"}[min(r.IntN(20), r.IntN(5))]
	name := fmt.Sprint(parent, "/n", r.IntN(3))
	var o Op
	switch r.IntN(7) {
	case 0, 1:
		o = batchableCreate(parent + "/s-")
	case 2:
		o = batchableCreate(name)
		o.Mode = wire.ModeEphemeral
	case 3:
		o = batchableDelete(name)
	case 4:
		o = Op{Code: wire.OpMulti, Batchable: true, Sub: []Op{{Code: wire.OpCreate, Path: parent + "/m-", Mode: wire.ModeEphemeralSequential},
			{Code: wire.OpDelete, Path: name}, {Code: wire.OpCreate, Path: "/e/m-", Mode: wire.ModeEphemeralSequential}}}
	default:
		o = batchableList(parent)
	}
	o.Batchable = r.IntN(12) > 0
	return o
}

// TestBatchedAnswersFormOneHistory sends random operations, most of them batchable,
// and reads the answers as one history: each must be consistent with those before it.
func TestBatchedAnswersFormOneHistory(t *testing.T) {
	joined, undone := uint64(0), 0
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := newRig(t, func(c *Config) { c.BatchWindow = 1 + int(seed%9) })
		r.connect(7)
		r.take()
		s := &nodeServer{nodes: map[string]int64{}}
		b := &history{t: t, nodes: map[string]int64{}, zxids: map[string]bool{}}
		var wire []sentFrame
		submitted, told := 0, 0
		for submitted < 300 || told < submitted {
			for range rnd.IntN(12) {
				if submitted < 300 {
					r.submit(drawOp(rnd))
					submitted++
				}
			}
			wire = append(wire, r.requests()...)
			for range min(len(wire), 1+rnd.IntN(4)) {
				s.answer(r, wire[0])
				wire = wire[1:]
			}
			for _, n := range r.take() {
				b.enter(n.Call)
				told++
			}
		}
		if !maps.Equal(b.nodes, s.nodes) {
			t.Fatalf("seed %d: %v by the answers, %v on the server", seed, b.nodes, s.nodes)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		joined += r.core.BatchedCalls()
		undone += b.undone
	}
	if joined < 5000 || undone < 1000 {
		t.Fatalf("%d batched and %d rolled back show little", joined, undone)
	}
}

// batchedRound is a batch and its answer, repeatedly.
type batchedRound struct {
	*rig
	calls   []*Call
	writes  wire.MultiResponse
	reads   wire.MultiResponse
	frame   []byte
	out     []byte
	notices []Notice
}

func newBatchedRound(tb testing.TB) *batchedRound {
	j := &batchedRound{rig: newRig(&testing.T{}, nil)}
	j.connect(7)
	for i := range 16 {
		lock := fmt.Sprintf("/l%d", i)
		j.calls = append(j.calls, &Call{Op: batchableDelete(lock + "/a-1")}, &Call{Op: batchableCreate(lock + "/a-")}, &Call{Op: batchableList(lock)})
		// The same path, so that the client reuses the requested string.
		j.writes.Results = append(j.writes.Results, wire.MultiResult{Op: wire.OpDelete},
			wire.MultiResult{Op: wire.OpCreate, Resp: &wire.CreateResponse{Path: lock + "/a-"}})
		j.reads.Results = append(j.reads.Results, wire.MultiResult{Op: wire.OpGetChildren, Resp: &wire.GetChildrenResponse{Children: []string{}}})
	}
	return j
}

// round submits the calls and answers them.
func (j *batchedRound) round() {
	for _, call := range j.calls {
		j.core.Submit(call, j.core.epoch)
	}
	j.out = j.core.TakeOutput(j.out, j.now)
	for _, m := range []*wire.MultiResponse{&j.writes, &j.reads} {
		h := wire.ReplyHeader{Xid: j.core.pending.first.xid, Zxid: 1}
		j.frame = m.Append(h.Append(j.frame[:0]))
		j.core.Frame(j.gen, j.frame, j.now)
	}
	j.notices = j.core.TakeNotices(j.notices)
}

func TestBatchingAllocatesNothing(t *testing.T) {
	j := newBatchedRound(t)
	for range 10 {
		j.round()
	}
	for _, call := range j.calls {
		if call.Result.Err() != nil || call.Result.Applied != Yes {
			t.Fatalf("%+v", call.Result)
		}
	}
	if n := testing.AllocsPerRun(200, j.round); n != 0 {
		t.Fatalf("%v allocations for %d calls", n, len(j.calls))
	}
}

func BenchmarkBatch(b *testing.B) {
	j := newBatchedRound(b)
	b.ReportAllocs()
	for b.Loop() {
		j.round()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(j.calls)), "ns/call")
}
