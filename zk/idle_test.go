//go:build !race

package zk

import (
	"net"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

// memoryInUse returns the size of heap objects and stacks, in bytes.
func memoryInUse() int64 {
	runtime.GC()
	runtime.GC() // a sync.Pool keeps its content during one collection
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// TestIdleClientUsesLittleMemory checks the memory of an idle client, before and after it was busy.
// The server in this process counts too. The race detector needs memory itself, so the test does
// not run with it.
func TestIdleClientUsesLittleMemory(t *testing.T) {
	const clients, most = 50, 64 << 10
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go acceptAll(ln) // ends when the listener is closed
	before := memoryInUse()
	var all []*Client
	for range clients {
		c, err := Dial(t.Context(), "unix:"+socket, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
	}
	fresh := (memoryInUse() - before) / clients
	for _, c := range all {
		var burst sync.WaitGroup
		for range 1000 {
			burst.Add(1)
			c.Go(SetOp("/a", make([]byte, 500), -1), func(Result) { burst.Done() })
		}
		burst.Wait()
	}
	busy := (memoryInUse() - before) / clients
	for range 2 * idleUses { // as with heartbeats
		for _, c := range all {
			if _, err := c.Set(t.Context(), "/a", nil, -1); err != nil {
				t.Fatal(err)
			}
		}
	}
	idle := (memoryInUse() - before) / clients
	t.Logf("bytes a client: %d fresh, %d after a burst, %d idle again", fresh, busy, idle)
	if fresh > most || idle > most {
		t.Errorf("%d bytes fresh and %d idle, want at most %d", fresh, idle, most)
	}
	runtime.KeepAlive(all)
}
