package queue

import (
	"fmt"
	"testing"
	"time"
)

// TestManyRecordsAreCheap: the time that long listings of a lock with a lock-delay take does
// not grow with the square of their length. A minute in the core would end every hold.
func TestManyRecordsAreCheap(t *testing.T) {
	const many = 300_000
	c := New(Config{GUID: func() [16]byte { return [16]byte{1} }, Jitter: func() float64 { return 0 }})
	c.Session(0, SessionChange{State: Connected, Session: 7, Timeout: time.Second, Conn: 1})
	c.Acquire(0, Spec{Members: []Member{{Path: "/a"}}, Delay: time.Second})
	var queue, records []string
	for i := range many {
		record := fmt.Sprintf("_c_00000000-0000-0000-0000-%012x-lock-", i)
		queue = append(queue, record+fmt.Sprintf("%010d", i))
		records = append(records, record)
	}
	began := time.Now()
	requests, _ := c.Take(nil, nil)
	for _, r := range requests {
		answer := Reply{ID: r.ID, Code: OK, Conn: 1, Owner: 7, Czxid: 5}
		switch {
		case r.Kind == Create:
			for _, n := range r.Creates {
				made := n.Path
				if n.Sequential {
					made += fmt.Sprintf("%010d", many)
				}
				answer.Made = append(answer.Made, made)
			}
		case r.Kind == List && r.Path == "/a":
			answer.Children = append(queue, baseOf(requests[0].Creates[0].Path)+fmt.Sprintf("%010d", many))
		case r.Kind == List:
			answer.Children = append([]string(nil), records...)
		}
		c.Reply(0, answer)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("the listings took %v", took)
	}
	if n := c.EntriesAhead(1); n != many {
		t.Errorf("%d entries ahead, want %d", n, many)
	}
}
