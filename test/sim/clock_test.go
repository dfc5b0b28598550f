package sim

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestClockWhenInvertsRead checks that when is the inverse of read at any rate.
func TestClockWhenInvertsRead(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		c := clock{born: time.Duration(r.Int64N(int64(time.Hour))), ppm: r.Int64N(100_001) - 50_000}
		at := clockBegins + time.Duration(r.Int64N(int64(24*time.Hour)))
		when := c.when(at)
		if c.read(when) < at || when > c.born && c.read(when-1) >= at {
			t.Fatalf("%+v: %v is shown at %v, when it shows %v", c, at, when, c.read(when))
		}
	}
	fast := clock{ppm: 10_000}
	if got := fast.read(100 * time.Second); got != 101*time.Second+clockBegins {
		t.Errorf("a clock that is 1 %% fast shows %v after 100 s", got)
	}
}

// TestAgendaReturnsEventsInOrder checks that events run in the order of their times, and events
// of the same time in the order in which they were added.
func TestAgendaReturnsEventsInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var a agenda
	var order []int
	for i := range 1000 {
		a.add(time.Duration(r.IntN(50)), func() { order = append(order, i) })
	}
	var last event
	for range 1000 {
		e, ok := a.next()
		if !ok || e.at < last.at || e.at == last.at && e.seq < last.seq {
			t.Fatalf("event %d at %v after %d at %v", e.seq, e.at, last.seq, last.at)
		}
		e.run()
		last = e
	}
	if _, ok := a.next(); ok || len(order) != 1000 {
		t.Errorf("%d events happened", len(order))
	}
}

func TestAlarmRingsOnceAtEarliestTime(t *testing.T) {
	w := New(Config{Seed: 1})
	var alarm timer
	var rung []time.Duration
	ring := func() { rung = append(rung, w.now) }
	w.alarm(&alarm, 30, ring)
	w.alarm(&alarm, 50, ring)
	w.alarm(&alarm, 10, ring)
	for e, ok := w.agenda.next(); ok; e, ok = w.agenda.next() {
		w.now = e.at
		e.run()
	}
	if len(rung) != 1 || rung[0] != 10 {
		t.Errorf("rung at %v, want once at 10ns", rung)
	}
}
