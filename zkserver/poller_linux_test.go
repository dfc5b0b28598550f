package zkserver

import (
	"runtime"
	"testing"
	"time"
)

// openPoller makes a poller that a test may use, with its own wake for a socket.
func openPoller(t *testing.T) *poller {
	t.Helper()
	p, err := newPoller()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	p.sleep(true)
	return p
}

// wakes waits for up to ms milliseconds and reports whether something came.
func wakes(t *testing.T, p *poller, ms int) bool {
	t.Helper()
	n, err := p.poll(ms)
	if err != nil {
		t.Fatal(err)
	}
	p.wait(0, nil) // takes the event
	return n > 0
}

// TestBusyPollerWaitsItsTime looks at waits of a poller that has just had work:
// they last as long as those of an idle one, and end by a wake.
func TestBusyPollerWaitsItsTime(t *testing.T) {
	p := openPoller(t)
	for range 3 {
		p.wake()
		if !wakes(t, p, 1000) {
			t.Fatal("a wait that was woken before brought nothing")
		}
		if want := runtime.GOMAXPROCS(0) > 1; p.busy != want {
			t.Fatalf("after work: busy %t, want %t", p.busy, want)
		}
	}
	const ms = 20
	began := time.Now()
	if wakes(t, p, ms) {
		t.Fatal("a wait without a wake brought something")
	}
	if took := time.Since(began); took < ms*time.Millisecond {
		t.Errorf("a wait of %d ms was over after %v", ms, took)
	}
	if p.busy {
		t.Error("busy after a wait that brought nothing")
	}
	go p.wake() // ends at once
	if !wakes(t, p, 10_000) {
		t.Error("a wait that was woken meanwhile brought nothing")
	}
}

// TestBusyPollerGivesTheProcessor has the collector stop everything while a poller
// that has just had work waits: with one processor that wait must have let it go.
func TestBusyPollerGivesTheProcessor(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	p := openPoller(t)
	p.wake()
	wakes(t, p, 1000)
	if p.busy {
		t.Fatal("the only processor would be kept")
	}
	go func() { // ends with the wake, for which it needs the processor
		runtime.GC()
		p.wake()
	}()
	if !wakes(t, p, 10_000) {
		t.Error("nobody could wake the poller in 10 s")
	}
}
