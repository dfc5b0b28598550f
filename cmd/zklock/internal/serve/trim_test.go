package serve_test

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/cmd/zklock/internal/serve"
)

const mib = 1 << 20

// server is a fake of the server that a Trimmer measures.
type server struct {
	requests, held, live int64
	took                 time.Duration
	freed                int
}

func (s *server) trimmer() *serve.Trimmer {
	return &serve.Trimmer{
		Requests: func() int64 { return s.requests },
		Held:     func() int64 { return s.held },
		Free:     func() { s.freed++; s.held = s.live; time.Sleep(s.took) },
	}
}

// look calls Look after one interval in which the server received requests.
func look(t *serve.Trimmer, s *server, requests int64) bool {
	time.Sleep(serve.Every)
	s.requests += requests
	return t.Look()
}

func TestTrimmerReturnsMemoryOfIdleServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{held: 80 * mib, live: 40 * mib, took: time.Millisecond}
		tr := s.trimmer()
		if look(tr, s, 1_000_000) {
			t.Error("memory was given back in the middle of work")
		}
		if !look(tr, s, 10) || s.held != 40*mib {
			t.Errorf("a quiet server keeps %d MiB of which 40 live", s.held/mib)
		}
		for range 100 {
			s.held += 8 << 10
			look(tr, s, 10)
		}
		if s.freed != 1 {
			t.Errorf("freed %d times, but there was next to nothing to gain", s.freed)
		}
		s.held = 60 * mib
		if !look(tr, s, 10) {
			t.Error("what was grown later is never given back")
		}
	})
}

func TestTrimmerLimitsTimeInCollections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{live: 4 << 30, took: 3 * time.Second}
		tr := s.trimmer()
		began := time.Now()
		for time.Since(began) < time.Hour {
			s.held = 8 << 30
			look(tr, s, 10)
		}
		if spent := time.Duration(s.freed) * s.took; s.freed == 0 || spent > 40*time.Second {
			t.Errorf("an hour had %d collections, %v: want one hundredth of the time", s.freed, spent)
		}
	})
}

func TestTrimmerRunEndsWithServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{held: 80 * mib, live: 40 * mib}
		done, ended := make(chan struct{}), make(chan struct{})
		tr := s.trimmer()
		go func() { defer close(ended); tr.Run(done) }()
		time.Sleep(serve.Every + 1)
		synctest.Wait()
		close(done)
		<-ended
		if s.freed != 1 {
			t.Errorf("freed %d times", s.freed)
		}
	})
}

// TestTrimmerReturnsMemoryOfRuntime uses the real runtime. It calls Look only once,
// because the pause before a second collection depends on the machine.
func TestTrimmerReturnsMemoryOfRuntime(t *testing.T) {
	tr := &serve.Trimmer{Requests: func() int64 { return 0 }}
	garbage := make([]byte, 64*mib)
	for i := range garbage {
		garbage[i] = 1
	}
	runtime.KeepAlive(garbage)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	garbage = nil
	if !tr.Look() {
		t.Fatal("64 MiB of garbage are nothing to it")
	}
	runtime.ReadMemStats(&after)
	resident := func(m *runtime.MemStats) uint64 { return m.HeapSys - m.HeapReleased }
	if resident(&after)+48*mib > resident(&before) {
		t.Errorf("resident heap went from %d to %d", resident(&before), resident(&after))
	}
}

// TestTrimmerReturnsMemoryInSteps checks that another goroutine can stop the program, as each
// collection does, after each step while Look returns memory.
func TestTrimmerReturnsMemoryInSteps(t *testing.T) {
	for _, procs := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(procs, " processors"), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
			most := uint64(math.MaxUint64)
			for try := 0; try < 5 && most > 128*mib; try++ { // the machine may have other work
				most = min(most, mostReturnedAtOnce(t))
			}
			if most > 128*mib {
				t.Errorf("%d MiB were returned at once", most/mib)
			}
		})
	}
}

// mostReturnedAtOnce returns how many bytes Look returns, while it returns 512 MiB, between two
// stops of the program by another goroutine.
func mostReturnedAtOnce(t *testing.T) uint64 {
	const pieces = 512
	var garbage [][]byte
	for range pieces {
		piece := make([]byte, mib)
		for i := 0; i < len(piece); i += 4096 {
			piece[i] = 1
		}
		garbage = append(garbage, piece)
	}
	runtime.KeepAlive(garbage)
	garbage = nil
	runtime.GC()
	released := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m) // stops the program
		return m.HeapReleased
	}
	before := released()
	var most atomic.Uint64
	var stop atomic.Bool
	var other sync.WaitGroup
	other.Go(func() {
		last := before
		for ended := false; !ended; runtime.Gosched() {
			ended = stop.Load()
			now := released()
			most.Store(max(most.Load(), now-min(last, now)))
			last = now
		}
	})
	tr := &serve.Trimmer{Requests: func() int64 { return 0 }}
	if !tr.Look() {
		t.Error("Look returned no memory")
	}
	stop.Store(true)
	other.Wait()
	if n := released() - before; n < pieces/2*mib {
		t.Errorf("%d MiB of %d were returned", n/mib, pieces)
	}
	return most.Load()
}
