// Package trim gives memory back to the system that a server's process no longer
// needs. Go's heap may be twice what lives in it, which for a server that was filled
// once and then is read from means twice the memory for as long as it runs.
package trim

import (
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// Every is how often is looked whether there is something to give back.
	Every = 2 * time.Second
	// quiet is how many requests between two looks leave time for a collection.
	quiet = 2000
	// worth is what must be there to gain, beside a fifth of what was left the
	// last time.
	worth = 1 << 20
	// share is how many times as long as a collection takes there is none after
	// it: one hundredth of the time.
	share = 100
)

// Trimmer decides when to give memory back. It is for one goroutine.
type Trimmer struct {
	// Requests counts the server's requests. It is asked when there is something
	// to gain.
	Requests func() int64
	// Free collects and gives back; nil is [debug.FreeOSMemory].
	Free func()
	// Held is how many bytes of heap the process has from the system; nil asks
	// the runtime.
	Held func() int64

	seen  int64     // requests at the last look
	least int64     // held after the last time that was freed
	next  time.Time // not before
}

// Run looks until done is closed.
func (t *Trimmer) Run(done <-chan struct{}) {
	tick := time.NewTicker(Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			t.Look()
		case <-done:
			return
		}
	}
}

// Look gives memory back if there is something to gain and the server has little to
// do, and reports whether it did. Call it every [Every].
func (t *Trimmer) Look() bool {
	if time.Now().Before(t.next) || t.held() < t.least+t.least/5+worth {
		return false
	}
	n := t.Requests()
	busy := n-t.seen > quiet
	if t.seen = n; busy {
		return false
	}
	began := time.Now()
	if t.Free == nil {
		debug.FreeOSMemory()
	} else {
		t.Free()
	}
	now := time.Now()
	t.next = now.Add(share * now.Sub(began))
	t.least = t.held()
	return true
}

// held is what the process has of the heap, used or not.
func (t *Trimmer) held() int64 {
	if t.Held != nil {
		return t.Held()
	}
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
	}
	metrics.Read(samples)
	var sum int64
	for _, s := range samples {
		if s.Value.Kind() == metrics.KindUint64 {
			sum += int64(s.Value.Uint64())
		}
	}
	return sum
}
