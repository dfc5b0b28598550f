package queue

import (
	"fmt"
	"testing"
)

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

// TestHandoverCostsTheSameInLongQueues measures the allocations of a handover between two clients
// whose waiters alternate. They do not grow with the number of waiters.
func TestHandoverCostsTheSameInLongQueues(t *testing.T) {
	short, long := allocationsOfHandover(t, 40), allocationsOfHandover(t, 800)
	if long > short+20 {
		t.Errorf("a handover allocates %v times next to 40 waiters, %v times next to 800", short, long)
	}
}

// allocationsOfHandover returns how often a core allocates memory from one release of another
// client to the next one, if each of its waiters has an entry of another client ahead.
func allocationsOfHandover(t *testing.T, waiters int) float64 {
	c := newBatchCore(t)
	guids := 0
	guid := func() (g [16]byte) { guids++; g[14], g[15] = byte(guids>>8), byte(guids); return g }
	c.cfg.GUID = guid
	answer := func(r Request, q Reply) {
		q.ID, q.Failed, q.Sent, q.Received, q.Conn = r.ID, -1, c.now, c.now, 1
		c.Reply(c.now, q)
	}
	var queue []string
	var ids []ID
	for i := range waiters {
		queue = append(queue, fmt.Sprintf("%s%010d", curators(guid(), markLock), 2*i))
		ids = append(ids, c.Acquire(c.now, mutex("/a")))
		for requests, _ := c.Take(nil, nil); len(requests) > 0; requests, _ = c.Take(nil, nil) {
			for _, r := range requests {
				switch r.Kind {
				case Create:
					path := fmt.Sprintf("%s%010d", r.Creates[0].Path, 2*i+1)
					queue = append(queue, baseOf(path))
					answer(r, Reply{Czxid: int64(100 + i), Owner: 1, Made: []string{path}})
				case List:
					answer(r, Reply{Children: queue})
				default:
					answer(r, Reply{})
				}
			}
		}
	}
	next := 0
	return testing.AllocsPerRun(waiters/2, func() {
		theirs, _ := ParseName(queue[2*next])
		mark, _ := theirs.Mark()
		c.Event(c.now, Created, "/a/"+mark, int64(1000+next))
		c.Event(c.now, Deleted, "/a/"+theirs.Name, int64(1000+next))
		c.Drained(c.now)
		c.Release(c.now, ids[next])
		requests, signals := c.Take(nil, nil)
		if len(signals) == 0 || signals[0].Kind != Granted || signals[0].ID != ids[next] {
			t.Fatalf("waiter %d of %d: %+v", next, waiters, signals)
		}
		for _, r := range requests {
			answer(r, Reply{Zxid: 5000})
		}
		c.Take(nil, nil)
		next++
	})
}
