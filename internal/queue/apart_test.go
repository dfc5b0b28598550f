package queue

import (
	"testing"
	"time"
)

// TestRequestsThatArriveTogether: requests that were sent apart can come to the
// follower together, behind a link that stood still. Then no ping of the leader's
// has passed between them, and they prove nothing: here the leader heard last of
// the client at 0 s, by a ping at 11.9 s that had no more to report, and expires
// the session at 14 s at the earliest.
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
	// A ping interval later it is proven.
	d.Answered(13*s+200*ms, 13*s+201*ms)
	d.Answered(13*s+264*ms, 13*s+265*ms)
	if at, _ := d.At(); at <= before {
		t.Errorf("the deadline is still %v after three requests apart", at)
	}
}
