package durable

import (
	"strings"
	"testing"
)

// TestLedgerRefuses: the books tell each kind of loss from what a lost answer
// explains.
func TestLedgerRefuses(t *testing.T) {
	acked := Node{Exists: true, Czxid: 5, Mzxid: 7, Version: 1, Data: "a", Owner: 9}
	with := func(change func(*Node)) Node {
		n := acked
		change(&n)
		return n
	}
	set := with(func(n *Node) { n.Mzxid, n.Version, n.Data = 8, 2, "b" })
	made := Node{Exists: true, Czxid: 5, Mzxid: 5, Data: "b", Owner: 9}
	for _, test := range []struct {
		name    string
		known   Node
		pending Change
		found   Node
		ok      bool
	}{
		{"as it was", acked, None, acked, true},
		{"lost", acked, None, Node{}, false},
		{"made anew", acked, None, with(func(n *Node) { n.Czxid = 6 }), false},
		{"data lost", acked, None, with(func(n *Node) { n.Data = "" }), false},
		{"an older version", acked, None, with(func(n *Node) { n.Version, n.Mzxid = 0, 5 }), false},
		{"owner lost", acked, None, with(func(n *Node) { n.Owner = 0 }), false},
		{"set by nobody", acked, None, set, false},
		{"deleted, and back", Node{}, None, acked, false},
		{"the set came through", acked, Set, set, true},
		{"the set did not", acked, Set, acked, true},
		{"another set", acked, Set, with(func(n *Node) { n.Mzxid, n.Version, n.Data = 8, 2, "c" }), false},
		{"the set, its zxid going back", acked, Set, with(func(n *Node) { n.Mzxid, n.Version, n.Data = 6, 2, "b" }), false},
		{"gone instead of set", acked, Set, Node{}, false},
		{"the delete came through", acked, Delete, Node{}, true},
		{"the delete did not", acked, Delete, acked, true},
		{"set instead of deleted", acked, Delete, set, false},
		{"the create came through", Node{}, Create, made, true},
		{"the create did not", Node{}, Create, Node{}, true},
		{"half a create", Node{}, Create, Node{Exists: true, Czxid: 5, Mzxid: 5, Data: "", Owner: 9}, false},
	} {
		l := NewLedger()
		l.Ask("/n", Create, "a", 9)
		l.Acknowledge("/n", test.known)
		l.Ask("/n", test.pending, "b", 9)
		if err := l.Settle("/n", test.found); (err == nil) != test.ok {
			t.Errorf("%s: %v, want ok %v", test.name, err, test.ok)
		}
		if test.ok && l.Settle("/n", test.found) != nil {
			t.Errorf("%s: not settled", test.name)
		}
	}
	if err := NewLedger().Settle("/stray", Node{}); err == nil || !strings.Contains(err.Error(), "/stray") {
		t.Errorf("a path of nobody's: %v", err)
	}
}

func TestLedgerCounts(t *testing.T) {
	l := NewLedger()
	l.Ask("/b", Create, "", 0)
	l.Ask("/a", Create, "", 0)
	l.Acknowledge("/a", Node{Exists: true, Czxid: 3, Mzxid: 3})
	l.Reached(2)
	if l.Top() != 3 || l.Acknowledged() != 1 || l.Known("/a").Czxid != 3 || l.Known("/none").Exists {
		t.Errorf("top %d, %d acknowledged, %+v", l.Top(), l.Acknowledged(), l.Known("/a"))
	}
	if paths := l.Paths(); len(paths) != 2 || paths[0] != "/a" {
		t.Errorf("paths %q", paths)
	}
	l.Reached(8)
	if l.Top() != 8 {
		t.Errorf("top %d, want 8", l.Top())
	}
}
