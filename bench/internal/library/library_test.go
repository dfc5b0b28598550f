package library

import (
	"errors"
	"testing"
	"time"

	"github.com/zklock/zklock/bench/internal/lockwork"
	"github.com/zklock/zklock/zktest"
)

// TestLibraries runs small workloads with each library that locks with ZooKeeper.
func TestLibraries(t *testing.T) {
	s := zktest.Start(t)
	addr := s.ListenTCP(t)
	for _, name := range []string{"zklock", "go-zookeeper", "floor"} {
		l, err := New(name)
		if err != nil {
			t.Fatal(err)
		}
		for kind, w := range map[string]lockwork.Work{
			"free":           {Kind: lockwork.Mutex, Sessions: 1, Workers: 1, Locks: 1, Time: 250 * time.Millisecond},
			"contended":      {Kind: lockwork.Mutex, Sessions: 3, Workers: 6, Locks: 1, Time: 250 * time.Millisecond},
			"a session each": {Kind: lockwork.Mutex, Sessions: 5, Workers: 5, Locks: 1, Time: 250 * time.Millisecond},
			"drained":        {Kind: lockwork.Mutex, Sessions: 5, Workers: 5, Locks: 1},
			"held":           {Kind: lockwork.Mutex, Sessions: 1, Workers: 1, Locks: 1, Time: 250 * time.Millisecond, Held: 20},
			"readwrite":      {Kind: lockwork.ReadWrite, Sessions: 2, Workers: 4, Locks: 1, Time: 250 * time.Millisecond, Readers: 90},
			"semaphore":      {Kind: lockwork.Semaphore, Sessions: 2, Workers: 4, Locks: 1, Time: 250 * time.Millisecond, Permits: 2},
			"async":          {Kind: lockwork.Mutex, Sessions: 1, Workers: 1, Locks: 1, Time: 250 * time.Millisecond, Async: true},
			"many locks":     {Kind: lockwork.Mutex, Sessions: 2, Workers: 8, Locks: 8, Time: 250 * time.Millisecond},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				w.Path = "/" + name + "-" + kind[:3]
				r, err := lockwork.Do(t.Context(), l, addr, w)
				for tries := 1; err == nil && r.Cycles == 0 && tries < 20; tries++ { // on a busy machine, the time may be too short for any cycle
					r, err = lockwork.Do(t.Context(), l, addr, w)
				}
				if errors.Is(err, lockwork.ErrUnsupported) && name != "zklock" {
					t.Skip(err)
				}
				if err != nil || r.Cycles == 0 || r.Violations != 0 {
					t.Errorf("%+v, %v", r, err)
				}
			})
		}
	}
	if _, err := New("other"); err == nil {
		t.Error("New accepts an unknown name")
	}
}
