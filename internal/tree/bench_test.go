package tree

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/zklock/zklock/internal/wire"
)

// benchRequests runs requests, and neither replays records nor decodes answers.
func benchRequests(b *testing.B, prepare func(*peer), reqs ...[]byte) {
	w := newHarness(b, Config{})
	p := w.dial()
	prepare(p)
	var out Out
	b.ReportAllocs()
	for b.Loop() {
		for _, frame := range reqs {
			w.tree.Request(p.id, frame, w.now, &out)
		}
		out.Reset()
	}
}

// BenchmarkLockCycle measures what a lock without waiters costs: a create, a listing, a delete.
func BenchmarkLockCycle(b *testing.B) {
	create := wire.AppendRequest(nil, 1, wire.OpCreate2, &wire.CreateRequest{
		Path: "/locks/a/_c_0123456789abcdef0123456789abcdef-lock-", ACL: openACL(), Flags: wire.ModeEphemeral})[4:]
	list := wire.AppendRequest(nil, 2, wire.OpGetChildren2, &wire.GetChildren2Request{Path: "/locks/a"})[4:]
	remove := wire.AppendRequest(nil, 3, wire.OpDelete, &wire.DeleteRequest{
		Path: "/locks/a/_c_0123456789abcdef0123456789abcdef-lock-", Version: -1})[4:]
	benchRequests(b, func(p *peer) { p.mk("/locks", 0); p.mk("/locks/a", 0) }, create, list, remove)
}

func BenchmarkGetData(b *testing.B) {
	get := wire.AppendRequest(nil, 1, wire.OpGetData, &wire.GetDataRequest{Path: "/a"})[4:]
	benchRequests(b, func(p *peer) { p.mk("/a", 0) }, get)
}

func BenchmarkMultiCheck(b *testing.B) {
	multi := wire.AppendRequest(nil, 1, wire.OpMulti, &wire.MultiRequest{Ops: []wire.MultiOp{opCheck("/a", -1), opCheck("/a", -1)}})[4:]
	benchRequests(b, func(p *peer) { p.mk("/a", 0) }, multi)
}

// BenchmarkNodeMemory measures the memory of one node, including all indexes.
func BenchmarkNodeMemory(b *testing.B) {
	const nodes = 100_000
	for b.Loop() {
		w := newHarness(b, Config{})
		p := w.dial()
		p.mk("/nodes", 0)
		var out Out
		before := heapSize()
		for i := range nodes {
			w.tree.Request(p.id, wire.AppendRequest(nil, 1, wire.OpCreate, &wire.CreateRequest{
				Path: fmt.Sprintf("/nodes/n%08d", i), Data: make([]byte, 16), ACL: openACL()})[4:], w.now, &out)
			out.Reset()
		}
		b.ReportMetric(float64(heapSize()-before)/nodes, "B/node")
		runtime.KeepAlive(w)
	}
}

// heapSize returns the size of the heap after a collection, in bytes.
func heapSize() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
