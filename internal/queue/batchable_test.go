package queue

import (
	"fmt"
	"testing"
	"time"
)

// batchCore is a core whose session has just begun.
type batchCore struct {
	*Core
	t    *testing.T
	now  time.Duration
	next int64 // czxid
}

func newBatchCore(t *testing.T) *batchCore {
	guids := byte(0)
	c := &batchCore{t: t, now: time.Second, next: 50, Core: New(Config{
		GUID: func() (g [16]byte) { guids++; g[15] = guids; return g }, Jitter: func() float64 { return 0.5 },
	})}
	c.Session(c.now, SessionChange{State: Connected, Session: 1, Timeout: 20 * time.Second, Sent: c.now, Conn: 1})
	return c
}

// asks takes the requests and checks their kinds and which of them are batchable, as in
// "create+ list", where + marks a batchable request.
func (c *batchCore) asks(want string) []Request {
	c.t.Helper()
	requests, _ := c.Take(nil, nil)
	names := map[RequestKind]string{Create: "create", List: "list", Delete: "delete", Make: "make", Get: "get", Check: "check"}
	got := ""
	for _, r := range requests {
		got += " " + names[r.Kind]
		if r.Batchable {
			got += "+"
		}
	}
	if got != " "+want && got+want != "" {
		c.t.Fatalf("asks%s, want %s", got, want)
	}
	return requests
}

// answer answers a request. An OK create makes the requested name with a number.
func (c *batchCore) answer(r Request, code Code) {
	c.now += time.Millisecond
	q := Reply{ID: r.ID, Code: code, Failed: -1, Sent: c.now, Received: c.now, Conn: 1}
	if r.Kind == Create && code == OK {
		c.next++
		q.Czxid, q.Owner = c.next, 1
		for _, n := range r.Creates {
			q.Made = append(q.Made, n.Path+"0000000000")
		}
	}
	c.Reply(c.now, q)
}

// list answers a listing with the znode of a create.
func (c *batchCore) list(r Request, made Request) {
	name := baseOf(made.Creates[0].Path) + "0000000000"
	c.Reply(c.now, Reply{ID: r.ID, Code: OK, Failed: -1, Children: []string{name}, Sent: c.now, Received: c.now, Conn: 1})
}

// granted drains the core and checks that it granted only the given acquire.
func (c *batchCore) granted(want ID) {
	c.t.Helper()
	c.Drained(c.now)
	_, signals := c.Take(nil, nil)
	if len(signals) != 1 || signals[0].Kind != Granted || signals[0].ID != want {
		c.t.Fatalf("%+v", signals)
	}
}

func mutex(path string) Spec { return Spec{Members: []Member{{Path: path, Kind: Exclusive}}} }

// If another request of the batch fails, the core repeats its create or delete at once
// and not in a batch, and ignores the listing that followed it.
func TestUndoneRequestsAreRepeatedAlone(t *testing.T) {
	c := newBatchCore(t)
	c.Take(nil, nil)
	id := c.Acquire(c.now, mutex("/a"))
	first := c.asks("create+ list+")
	c.answer(first[0], Undone)
	if at, ok := c.Next(); !ok || at > c.now {
		t.Fatalf("waits until %v, and it is %v", at, c.now)
	}
	c.list(first[1], first[0]) // shows a state before the create
	c.Tick(c.now)
	again := c.asks("create list+")
	c.answer(again[0], OK)
	c.list(again[1], again[0])
	c.granted(id)

	c.Release(c.now, id)
	gone := c.asks("delete+")
	c.answer(gone[0], Undone)
	gone = c.asks("delete")
	if _, signals := c.Take(nil, nil); len(signals) > 0 {
		t.Fatalf("%+v before the delete is answered", signals)
	}
	c.answer(gone[0], OK)
	if _, signals := c.Take(nil, nil); len(signals) != 1 || signals[0].Kind != Released || signals[0].Err != nil {
		t.Fatalf("%+v", signals)
	}
	if !c.Idle() {
		t.Fatal("the core is not idle")
	}
}

func TestUndoneListingIsRepeated(t *testing.T) {
	c := newBatchCore(t)
	c.Take(nil, nil)
	id := c.Acquire(c.now, mutex("/a"))
	asked := c.asks("create+ list+")
	c.answer(asked[0], OK)
	c.answer(asked[1], Undone)
	again := c.asks("list")
	c.list(again[0], asked[0])
	c.granted(id)
}

// Requests are batchable only if they do not depend on others of the same acquire.
func TestBatchableRequestsByKind(t *testing.T) {
	for name, row := range map[string]struct {
		spec Spec
		want string
	}{
		"mutex":      {mutex("/a"), "create+ list+"},
		"semaphore":  {Spec{Semaphores: []Semaphore{{Path: "/s", Permits: 1, Of: 2}}}, "create+ list+"},
		"all":        {Spec{Members: []Member{{Path: "/a"}, {Path: "/b"}}}, "create list+ list+"},
		"node lock":  {Spec{Node: "/n"}, "create get"},
		"lock-delay": {Spec{Members: []Member{{Path: "/a"}}, Delay: time.Second}, "create list list list"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newBatchCore(t)
			c.Take(nil, nil)
			c.Acquire(c.now, row.spec)
			c.asks(row.want)
		})
	}
}

// After a create finds no parent, the next creates are not batched.
func TestCreatesAreNotBatchedAfterMissingParent(t *testing.T) {
	c := newBatchCore(t)
	c.Take(nil, nil)
	c.Acquire(c.now, mutex("/a"))
	asked := c.asks("create+ list+")
	c.answer(asked[0], NoNode)
	c.asks("make create list+")
	for i := range unbatchedCreates - 1 {
		c.Acquire(c.now, mutex(fmt.Sprint("/b", i)))
		c.asks("create list+")
	}
	c.Acquire(c.now, mutex("/c"))
	c.asks("create+ list+")
}

// Next is never later than the earliest check that an acquire has scheduled.
func TestAgendaReturnsEarliestRetry(t *testing.T) {
	var a agenda
	acquires := []*acquire{{agenda: &a}, {agenda: &a}, {agenda: &a}}
	acquires[0].retry(30)
	acquires[1].retry(10)
	acquires[2].retry(20)
	for _, want := range []time.Duration{10, 20, 30, 0} {
		if got := a.at(acquires); got != want {
			t.Fatalf("%d, want %d", got, want)
		}
		for _, acq := range acquires {
			if acq.retryAt == want {
				acq.cancelRetry()
			}
		}
	}
	acquires[1].retry(40)
	acquires[1].retry(50) // no sooner
	if got := a.at(acquires); got != 40 {
		t.Fatalf("%d", got)
	}
}
