package queue

import (
	"testing"
	"time"
)

// What was decided on in one session must not be done in the next, which a
// goroutine that stood still may come upon: requests say for which they are.
func TestRequestsSayForWhichSession(t *testing.T) {
	var guids byte
	c := New(Config{GUID: func() (g [16]byte) { guids++; g[0] = guids; return g }, Jitter: func() float64 { return 0 }})
	asked := func(want int64) {
		t.Helper()
		requests, _ := c.Take(nil, nil)
		if len(requests) == 0 {
			t.Fatal("nothing was asked for")
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
