//go:build !race

package zk

import (
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// used returns the size of heap objects and stacks, in bytes.
func used() int64 {
	runtime.GC()
	runtime.GC() // a pool's content outlives one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestIdleClientIsSmall checks the memory of an idle client, before and after it was
// busy, including that of its server in this process. It does not run with the race
// detector, whose own memory it would count.
func TestIdleClientIsSmall(t *testing.T) {
	const clients, most = 50, 64 << 10
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go acceptAll(ln) // ends when the listener is closed
	before := used()
	var all []*Client
	for range clients {
		c, err := Dial(t.Context(), "unix:"+socket, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
	}
	fresh := (used() - before) / clients
	for _, c := range all {
		var burst sync.WaitGroup
		for range 1000 {
			burst.Add(1)
			c.Go(SetOp("/a", make([]byte, 500), -1), func(Result) { burst.Done() })
		}
		burst.Wait()
	}
	busy := (used() - before) / clients
	for range 2 * idleUses { // as with heartbeats
		for _, c := range all {
			if _, err := c.Set(t.Context(), "/a", nil, -1); err != nil {
				t.Fatal(err)
			}
		}
	}
	idle := (used() - before) / clients
	t.Logf("bytes a client: %d fresh, %d behind a burst, %d idle again", fresh, busy, idle)
	if fresh > most || idle > most {
		t.Errorf("%d bytes fresh and %d idle, want at most %d", fresh, idle, most)
	}
	runtime.KeepAlive(all)
}
