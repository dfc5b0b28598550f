package queue

import (
	"testing"
	"time"
)

// TestRequestsThatArriveTogether: the network can delay requests that were sent at different
// times, so that they reach the follower together. Then no ping of the leader passed between
// them, and they prove nothing. Here, the ping at 11.9 s had no newer report than that of 0 s, so
// the leader can expire the session at 14 s.
func TestRequestsThatArriveTogether(t *testing.T) {
	const timeout, s, ms = 4 * time.Second, time.Second, time.Millisecond
	var d Deadline
	d.Handshake(0, timeout, 0.01, true)
	d.Answered(0, 1*ms)
	before, _ := d.At()
	for sent := 9 * s; sent < 12*s; sent += 500 * ms {
		d.Begin(sent, 12*s)
		d.Answered(sent, 12*s) // all of them answered at once
	}
	d.Answered(12*s+100*ms, 12*s+101*ms)
	if at, ok := d.At(); !ok || at != before {
		t.Errorf("the deadline moved from %v to %v by requests that were only sent apart", before, at)
	}
	// Requests a ping interval later prove a deadline.
	d.Answered(13*s+200*ms, 13*s+201*ms)
	d.Answered(13*s+264*ms, 13*s+265*ms)
	if at, _ := d.At(); at <= before {
		t.Errorf("the deadline is still %v after three requests apart", at)
	}
}
