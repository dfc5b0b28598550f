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

// The table must agree with a map after any changes.
func TestNodeTableAgreesWithMap(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		table, model := newNodeTable(), make(map[string]*node)
		// It grows to about the limit, and shrinks again.
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
				tb.Fatalf("%s is not found where it is", n.path())
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

// The parts of a table have about equally many nodes. They do not grow at the same time: a
// request that creates thousands of nodes would wait for all of them.
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

// Nodes with equal tags, at the end of the slots and across it, are distinguished by
// their paths, and found after any of them is removed.
func TestTablePartWithEqualTags(t *testing.T) {
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

// Nodes dominate the server's memory. The sizes are size classes of Go's allocator:
// one more field costs each node 16 bytes.
func TestNodeSizes(t *testing.T) {
	if unsafe.Sizeof(uintptr(0)) != 8 {
		t.Skip("the sizes are those of 64 bits")
	}
	for what, s := range map[string]struct{ size, most uintptr }{
		"node":       {unsafe.Sizeof(node{}), 80},
		"rare":       {unsafe.Sizeof(nodeExtra{}), 80},
		"session":    {unsafe.Sizeof(session{}), 80},
		"connection": {unsafe.Sizeof(conn{}), 160},
	} {
		if s.size > s.most {
			t.Errorf("a %s takes %d bytes, want at most %d", what, s.size, s.most)
		}
	}
}

// A node's text is its path and its data. Null and empty data are different.
func TestNodeText(t *testing.T) {
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

// TestEmptiedNodesFreeTheirData: data that was replaced, even by nothing, uses no
// memory.
func TestEmptiedNodesFreeTheirData(t *testing.T) {
	const nodes, size = 32, 512 << 10
	w := newWorld(t, Config{})
	p := w.dial()
	var out Out
	ask := func(op wire.OpCode, rec wire.Record) {
		w.tree.Request(p.id, wire.AppendRequest(nil, 1, op, rec)[4:], w.now, &out)
		out.Reset()
	}
	before := liveHeap()
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
	if kept := liveHeap() - before; kept > nodes*size/4 {
		t.Errorf("%d bytes are kept of %d that are gone", kept, nodes*size)
	}
	runtime.KeepAlive(w)
}
