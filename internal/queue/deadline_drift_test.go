package queue

import (
	"fmt"
	"testing"
	"time"
)

// TestGapOfAFastClock checks a client whose clock is faster than the leader's by the permitted
// drift. Half a tick of the client is less than half a tick of the leader, so that a and b may
// both arrive before the leader's ping. Such requests prove nothing. Requests that are more than
// half a tick of the leader apart prove a deadline.
func TestGapOfAFastClock(t *testing.T) {
	const timeout, ms = 4 * time.Second, time.Millisecond
	for _, drift := range []float64{0, 0.01, 0.1, 0.2, 0.3, 0.45} {
		half := time.Duration(float64(timeout/4) / (1 - drift)) // half a tick by the client's clock
		for apart, proves := range map[time.Duration]bool{half - ms: false, half * 3 / 2: true} {
			t.Run(fmt.Sprint(drift, " ", apart), func(t *testing.T) {
				var d Deadline
				d.Handshake(0, timeout, drift, true)
				d.Answered(500*ms, 501*ms)
				before, _ := d.At() // by the handshake
				d.Begin(500*ms, 501*ms)
				d.Answered(501*ms+apart, 502*ms+apart)
				d.Answered(565*ms+apart, 566*ms+apart)
				if at, ok := d.At(); !ok || at > before != proves {
					t.Errorf("the deadline was %v and is %v, half a tick being %v: moved should be %v", before, at, half, proves)
				}
			})
		}
	}
}
