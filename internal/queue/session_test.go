package queue

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"
)

// TestRequestsNameTheirSession checks the session of each request. A goroutine that was delayed
// must not send a request of one session in the next one.
func TestRequestsNameTheirSession(t *testing.T) {
	var guids byte
	c := New(Config{GUID: func() (g [16]byte) { guids++; g[0] = guids; return g }, Jitter: func() float64 { return 0 }})
	asked := func(want int64) {
		t.Helper()
		requests, _ := c.Take(nil, nil)
		if len(requests) == 0 {
			t.Fatal("no request")
		}
		for _, r := range requests {
			if r.Session != want {
				t.Errorf("%s is for session %d, not %d", show(r), r.Session, want)
			}
		}
	}
	c.Session(0, SessionChange{State: Connected, Session: 7, Timeout: time.Second, Conn: 1})
	c.Acquire(0, Spec{Node: "/lock"})
	asked(7)
	c.Session(time.Second, SessionChange{State: Disconnected})
	c.Session(time.Second, SessionChange{State: Expired, Session: 7})
	c.Session(time.Second, SessionChange{State: Connected, Session: 8, Timeout: time.Second, Conn: 2})
	asked(8)
}

// TestSessionTimeoutIsTheShortest: if servers grant one session different timeouts, the leader
// can expire it after any of them.
func TestSessionTimeoutIsTheShortest(t *testing.T) {
	c := New(Config{})
	for i, step := range []struct {
		change SessionChange
		want   time.Duration
	}{
		{SessionChange{State: Connected, Session: 7, Timeout: 40 * time.Second}, 40 * time.Second},
		{SessionChange{State: Disconnected}, 40 * time.Second},
		{SessionChange{State: Connected, Session: 7, Timeout: 4 * time.Second}, 4 * time.Second},
		{SessionChange{State: Connected, Session: 7, Timeout: 40 * time.Second}, 4 * time.Second},
		{SessionChange{State: Expired}, 0},
		{SessionChange{State: Connected, Session: 8, Timeout: 40 * time.Second}, 40 * time.Second},
	} {
		step.change.Conn = uint64(i + 1)
		c.Session(time.Duration(i)*time.Second, step.change)
		if got := c.SessionTimeout(); got != step.want {
			t.Errorf("step %d: %v, want %v", i, got, step.want)
		}
	}
}

// TestAllUnansweredCreatesAreSearchedAgain checks that the core searches again for the znode of
// each create without an answer, while the servers may move the session back and apply the
// create. Afterwards, it searches for only a few of them.
func TestAllUnansweredCreatesAreSearchedAgain(t *testing.T) {
	const locks, timeout = 3 * maxUnanswered, 8 * time.Second
	guids := uint64(0)
	c := New(Config{GUID: func() (g [16]byte) { guids++; binary.BigEndian.PutUint64(g[:], guids); return g }, Jitter: func() float64 { return 0 }})
	conn := uint64(0)
	connect := func(now, givenUp time.Duration) {
		conn++
		c.Session(now, SessionChange{State: Disconnected})
		c.Session(now, SessionChange{State: Connected, Session: 1, Timeout: timeout, Conn: conn, GivenUp: givenUp})
	}
	answer := func(now time.Duration) (searched int) { // every parent is empty
		for requests, _ := c.Take(nil, nil); len(requests) > 0; requests, _ = c.Take(nil, nil) {
			for _, r := range requests {
				if r.Kind == List {
					searched++
				}
				c.Reply(now, Reply{ID: r.ID, Code: OK, Failed: -1, Conn: conn, Sent: now, Received: now})
			}
		}
		return searched
	}
	connect(0, 0)
	for i := range locks {
		c.Acquire(0, Spec{Members: []Member{{Path: fmt.Sprint("/lock", i)}}})
	}
	sent, _ := c.Take(nil, nil)
	for id := range ID(locks) {
		c.Cancel(0, id+1)
	}
	c.Session(time.Second, SessionChange{State: Disconnected})
	for _, r := range sent {
		c.Reply(time.Second, Reply{ID: r.ID, Code: Unknown, Failed: -1})
	}
	const givenUp = 2 * time.Second
	for _, step := range []struct {
		now, givenUp time.Duration
		want         int
	}{
		{time.Second, 0, locks},
		{givenUp, givenUp, locks},
		{givenUp + timeout/2, givenUp, locks},
		{4 * timeout, givenUp, maxUnanswered},
	} {
		for now := step.now - timeout*3/2; step.want < locks && now < step.now; now += timeout / 8 {
			c.Tick(now)
			answer(now)
		}
		connect(step.now, step.givenUp)
		if searched := answer(step.now); searched != step.want {
			t.Errorf("after %v: the core searched %d parents, want %d", step.now, searched, step.want)
		}
	}
}
