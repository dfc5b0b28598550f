package lockwork

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// memory is a library whose locks are in memory.
type memory struct {
	mu    sync.Mutex
	locks map[string]chan struct{}
	queue map[string]int
}

func (m *memory) Open(context.Context, string) (Session, error) { return memorySession{m}, nil }

type memorySession struct{ m *memory }

func (s memorySession) Lock(path string, w *Work, _ bool) (Lock, error) {
	if w.Kind != Mutex {
		return nil, ErrUnsupported
	}
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	if s.m.locks[path] == nil {
		s.m.locks[path] = make(chan struct{}, 1)
	}
	return &memoryLock{s.m, path, s.m.locks[path]}, nil
}

func (s memorySession) Count(_ context.Context, path string) (int, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	return s.m.queue[path], nil
}

func (memorySession) Close() error { return nil }

type memoryLock struct {
	m    *memory
	path string
	held chan struct{}
}

func (l *memoryLock) count(n int) {
	l.m.mu.Lock()
	defer l.m.mu.Unlock()
	l.m.queue[l.path] += n
}

func (l *memoryLock) Acquire(context.Context) error {
	l.count(1)
	time.Sleep(time.Millisecond)
	l.held <- struct{}{}
	return nil
}

func (l *memoryLock) Release(context.Context) error {
	l.count(-1)
	time.Sleep(time.Millisecond)
	<-l.held
	return nil
}

func newMemory() *memory {
	return &memory{locks: make(map[string]chan struct{}), queue: make(map[string]int)}
}

// TestDoMeasures uses virtual time, so the numbers are exact.
func TestDoMeasures(t *testing.T) {
	for name, w := range map[string]Work{
		"free":      {Kind: Mutex, Sessions: 1, Workers: 1, Locks: 1, Time: time.Second},
		"contended": {Kind: Mutex, Sessions: 2, Workers: 4, Locks: 1, Time: time.Second},
		"drain":     {Kind: Mutex, Sessions: 4, Workers: 20, Locks: 1},
		"held":      {Kind: Mutex, Sessions: 1, Workers: 1, Locks: 1, Time: time.Second, Held: 50},
	} {
		synctest.Test(t, func(t *testing.T) {
			r, err := Do(t.Context(), newMemory(), "", w)
			if err != nil || r.Violations != 0 {
				t.Fatalf("%s: %+v, %v", name, r, err)
			}
			switch waits := r.HandOver50 > 0; {
			case w.Time == 0 && r.Cycles != int64(w.Workers):
				t.Errorf("%s: %d cycles of %d workers", name, r.Cycles, w.Workers)
			// Each grant takes a millisecond, the time of the release before it.
			case w.Time == 0 && (r.FirstTenth != 2*time.Millisecond || r.LastTenth != 2*time.Millisecond):
				t.Errorf("%s: first tenth %v, last tenth %v", name, r.FirstTenth, r.LastTenth)
			case w.Time > 0 && (r.Cycles < 400 || r.Time != w.Time):
				t.Errorf("%s: %+v", name, r)
			case waits != (w.Workers > 1):
				t.Errorf("%s: hand-over %v", name, r.HandOver50)
			}
			if read, err := ParseResult(r.String()); err != nil || read != r {
				t.Errorf("%s: %+v, %v, want %+v", name, read, err, r)
			}
		})
	}
}

func TestGuardCountsOverlappingHolders(t *testing.T) {
	mutex, both := &guard{limit: 1, begin: time.Now()}, &guard{limit: writer, begin: time.Now()}
	mutex.enter(time.Now(), 1)
	if mutex.violations.Load() != 0 {
		t.Error("one holder is a violation")
	}
	mutex.enter(time.Now(), 1)
	if mutex.violations.Load() != 1 {
		t.Error("two holders of a mutex are no violation")
	}
	both.enter(time.Now(), 1)
	both.enter(time.Now(), 1)
	if both.violations.Load() != 0 {
		t.Error("two readers are a violation")
	}
	both.enter(time.Now(), writer)
	both.enter(time.Now(), 1)
	if n := both.violations.Load(); n != 2 {
		t.Errorf("a writer with readers, and a reader with a writer: %d violations", n)
	}
}

func TestDoFails(t *testing.T) {
	for _, w := range []Work{
		{},
		{Kind: "odd", Sessions: 1, Workers: 1, Locks: 1, Time: 1},
		{Kind: Semaphore, Sessions: 1, Workers: 1, Locks: 1, Time: 1},
		{Kind: Mutex, Sessions: 1, Workers: 1, Locks: 2},
		{Kind: Mutex, Sessions: 1, Workers: 1, Locks: 1, Time: -1},
	} {
		if _, err := Do(t.Context(), newMemory(), "", w); !errors.Is(err, ErrWork) {
			t.Errorf("%v: %v", w, err)
		}
	}
	for _, w := range []Work{
		{Kind: ReadWrite, Sessions: 1, Workers: 1, Locks: 1, Time: time.Millisecond},
		{Kind: Mutex, Sessions: 1, Workers: 1, Locks: 1, Time: time.Millisecond, Async: true},
	} {
		if _, err := Do(t.Context(), newMemory(), "", w); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%v: %v", w, err)
		}
	}
}

func TestWorkAndResultRoundTrip(t *testing.T) {
	w := Work{Path: "/a", Kind: ReadWrite, Sessions: 2, Workers: 3, Locks: 4, Time: time.Second, Readers: 90, Permits: 8, Held: 7, Async: true, Local: 9}
	if got, err := ParseWork(w.String()); err != nil || got != w {
		t.Errorf("%v, %v", got, err)
	}
	r := Result{Cycles: 1, Time: 2, HandOver50: 3, HandOver99: 4, Violations: 5, Heap: 6}
	if got, err := ParseResult(r.String()); err != nil || got != r {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "word", "cycles=x nanos=1", "cycles=0 nanos=1"} {
		if _, err := ParseResult(bad); !errors.Is(err, ErrWork) && !errors.Is(err, ErrNothing) {
			t.Errorf("result %q: %v", bad, err)
		}
	}
	if _, err := ParseWork(strings.Replace(w.String(), "workers=3", "workers=many", 1)); !errors.Is(err, ErrWork) {
		t.Errorf("work: %v", err)
	}
}
