package tree

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/zklock/zklock/internal/wire"
)

// named returns a node that has only a path.
func named(path string) *node {
	n := new(node)
	n.setText(path, nil)
	return n
}

// TestNodeTableAgreesWithMap compares a table with a map after random changes.
func TestNodeTableAgreesWithMap(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		table, model := newNodeTable(), make(map[string]*node)
		// The table grows to about each limit, and shrinks again.
		for step, limit := range []int{3000, 100, 500, 0} {
			for range 10_000 {
				path := fmt.Sprint("/", r.IntN(4000))
				switch have := model[path]; {
				case table.get(path) != have:
					t.Fatalf("seed %d, step %d: get %s differs", seed, step, path)
				case have == nil && len(model) < limit:
					model[path] = named(path)
					table.put(model[path])
				case have != nil && (len(model) > limit || r.IntN(2) == 0):
					delete(model, path)
					table.remove(path)
				case have == nil:
					table.remove(path) // changes nothing
				}
			}
			checkTable(t, &table, len(model))
		}
	}
}

// checkTable checks the invariants of a table with that many nodes.
func checkTable(tb testing.TB, table *nodeTable, count int) {
	tb.Helper()
	total := 0
	for i := range table.parts {
		p := &table.parts[i]
		used := 0
		for place, n := range p.nodes {
			if (n == nil) != (p.tags[place] == 0) {
				tb.Fatalf("part %d, place %d: tag %#x and node %v", i, place, p.tags[place], n)
			}
			if n == nil {
				continue
			}
			used++
			if part, tag := table.locate(n.path()); part != p || p.find(tag, n.path()) != place {
				tb.Fatalf("find returns another place for %s", n.path())
			}
		}
		if used != p.used || used*5 > len(p.tags)*4 {
			tb.Fatalf("part %d counts %d nodes and has %d in %d places", i, p.used, used, len(p.tags))
		}
		if len(p.tags) >= 2*minSlots && used < len(p.tags)/5 {
			tb.Fatalf("part %d has %d nodes in %d places", i, used, len(p.tags))
		}
		total += used
	}
	if total != count || table.len() != count {
		tb.Fatalf("%d nodes, want %d, and %d are counted", total, count, table.len())
	}
}

// TestNodeTablePartsGrowOneAfterAnother: the parts of a table have about equally many nodes. If all
// parts grew at the same time, a request that creates thousands of nodes would wait for all of
// them.
func TestNodeTablePartsGrowOneAfterAnother(t *testing.T) {
	table := newNodeTable()
	for used := range 20_000 {
		grown := 0
		for i := range table.parts {
			p := &table.parts[i]
			before := len(p.tags)
			if p.reserve(); len(p.tags) > before {
				grown++
			}
		}
		if used > spreadSlots && grown > 2 {
			t.Fatalf("%d parts grow when they have %d nodes each", grown, used)
		}
	}
}

// TestNodesWithEqualTagsAreFound checks that a part of a table distinguishes nodes with equal tags
// by their paths, also across the end of its slots, and after a node was removed.
func TestNodesWithEqualTagsAreFound(t *testing.T) {
	const last = ^uint32(0) // its home is the last place
	tags := []uint32{last, last, last - 1, last, 1, 2, last}
	for gone := range tags {
		var p tablePart
		p.resize(16)
		for i, tag := range tags {
			p.insert(tag, named(fmt.Sprint("/", i)))
		}
		p.clear(p.find(tags[gone], fmt.Sprint("/", gone)))
		for i, tag := range tags {
			place := p.find(tag, fmt.Sprint("/", i))
			if (place < 0) != (i == gone) {
				t.Errorf("without %d: %d is at %d", gone, i, place)
			}
		}
		p.resize(12)
		for i, tag := range tags {
			if found := p.find(tag, fmt.Sprint("/", i)) >= 0; found == (i == gone) {
				t.Errorf("without %d, moved: %d found: %v", gone, i, found)
			}
		}
	}
}

// TestNodeSizesAreBounded: nodes dominate the server's memory. The sizes are size classes of Go's
// allocator, so one more field costs 16 bytes for each node.
func TestNodeSizesAreBounded(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the sizes are those of 64 bits")
	}
	for what, s := range map[string]struct{ size, most uintptr }{
		"node":       {unsafe.Sizeof(node{}), 80},
		"extra":      {unsafe.Sizeof(nodeExtra{}), 80},
		"session":    {unsafe.Sizeof(session{}), 80},
		"connection": {unsafe.Sizeof(conn{}), 160},
	} {
		if s.size > s.most {
			t.Errorf("a %s takes %d bytes, want at most %d", what, s.size, s.most)
		}
	}
}

// TestNodeKeepsPathAndData checks that a node distinguishes null and empty data.
func TestNodeKeepsPathAndData(t *testing.T) {
	parent := &node{parent: new(node)}
	parent.setText("/a", nil)
	n := &node{parent: parent}
	for _, data := range [][]byte{nil, {}, []byte("x"), []byte("/y"), nil} {
		n.setText("/a/b", data)
		if n.path() != "/a/b" || n.name() != "b" || n.data() != string(data) || n.null() != (data == nil) || n.size() != int64(4+len(data)) {
			t.Errorf("with %q: path %q, name %q, data %q, null %v, size %d", data, n.path(), n.name(), n.data(), n.null(), n.size())
		}
	}
	buf := []byte("abc")
	n.setText("/", buf)
	before := n.data()
	buf[0] = 'x'
	n.setText("/", []byte("new"))
	if before != "abc" || n.path() != "/" || n.data() != "new" {
		t.Errorf("the old data is %q, the new %q", before, n.data())
	}
}

// TestEmptiedNodesFreeTheirData checks that replaced data uses no memory, also if the new data is
// empty.
func TestEmptiedNodesFreeTheirData(t *testing.T) {
	const nodes, size = 32, 512 << 10
	w := newHarness(t, Config{})
	p := w.dial()
	var out Out
	ask := func(op wire.OpCode, rec wire.Record) {
		w.tree.Request(p.id, wire.AppendRequest(nil, 1, op, rec)[4:], w.now, &out)
		out.Reset()
	}
	before := heapSize()
	for i := range nodes {
		path := fmt.Sprintf("/n%d", i)
		ask(wire.OpCreate, &wire.CreateRequest{Path: path, ACL: openACL()})
		for _, data := range [][]byte{make([]byte, size), {}} {
			ask(wire.OpSetData, &wire.SetDataRequest{Path: path, Data: data, Version: -1})
		}
		if _, stat, ok := w.tree.Get(path); !ok || stat.Version != 2 || stat.DataLength != 0 {
			t.Fatalf("%s: %v, %+v", path, ok, stat)
		}
	}
	if kept := heapSize() - before; kept > nodes*size/4 {
		t.Errorf("%d of %d bytes of replaced data are kept", kept, nodes*size)
	}
	runtime.KeepAlive(w)
}
