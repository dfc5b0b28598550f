package queue

import "testing"

// TestDoubtAboutListIsInherited checks that a position that takes over the list of the one before
// it, which nothing proves, lists the queue before it is granted.
func TestDoubtAboutListIsInherited(t *testing.T) {
	for _, doubted := range []bool{false, true} {
		e := &position{nodes: []*node{{name: "e"}}, ahead: []Entry{{Name: "d"}}, listed: true, discredited: doubted}
		p := &position{nodes: []*node{{name: "p"}}, ahead: []Entry{{Name: "e"}}, others: true, listed: true}
		if !p.drop(e) || len(p.ahead) != 1 || p.ahead[0].Name != "d" {
			t.Fatalf("the entries ahead are %+v", p.ahead)
		}
		if p.listProven() == doubted {
			t.Errorf("doubted %v, but proven %v", doubted, p.listProven())
		}
	}
}

// TestUsedWatchProvesNothing checks the entry of a position that was left: after an event, a watch
// no longer shows that the entry exists.
func TestUsedWatchProvesNothing(t *testing.T) {
	for kind, shows := range map[EventKind]bool{Created: true, Changed: false, Deleted: false} {
		c := New(Config{})
		n := &node{name: "e", seen: true}
		left := &position{nodes: []*node{n}}
		c.queues["/a"] = &clientQueue{given: map[string]*position{"e": left}, latest: left}
		c.Event(0, kind, "/a/e", 1)
		if p := (&position{predecessor: left, nodes: []*node{{}}}); p.predecessorProven() != shows {
			t.Errorf("after event %d, the watch shows that the entry existed: %v", kind, !shows)
		}
	}
}
