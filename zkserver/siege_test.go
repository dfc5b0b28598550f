package zkserver

import (
	"flag"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// fullSiege runs the sieges at full size, which takes minutes and gigabytes.
var fullSiege = flag.Bool("siege", false, "besiege the server with everything at full size")

// scale is the short size of something, or the full one.
func scale(short, full int) int {
	if *fullSiege {
		return full
	}
	return short
}

// siege is a server under attack, and a client that means well.
type siege struct {
	t    *testing.T
	s    *Server
	good *raw
	base uint64 // heap before
	stop chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex
	rounds  int
	slowest time.Duration
}

// takeSlowest returns how long the slowest round took since it was last called, the
// one that is under way included.
func (g *siege) takeSlowest() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	for last := g.rounds + 1; g.rounds < last; {
		g.mu.Unlock()
		time.Sleep(time.Millisecond)
		g.mu.Lock()
	}
	d := g.slowest
	g.slowest = 0
	return d
}

// besiege starts a server. Until lift is called a session writes and reads there,
// again and again: each of its requests must succeed.
func besiege(t *testing.T, change func(*Options)) *siege {
	t.Helper()
	opts := quiet(t)
	opts.Logger = discard()
	change(&opts)
	g := &siege{t: t, s: start(t, opts), stop: make(chan struct{})}
	g.base = heap()
	g.good = login(t, g.s, time.Hour)
	g.done.Go(g.pulse) // ends by lift
	return g
}

// heap is what is in use after collections. Pools let go at the second; what
// others allocate during one counts as used until the next.
func heap() uint64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// pulse is what the good client does.
func (g *siege) pulse() {
	for {
		began := time.Now()
		g.good.do(wire.OpCreate, &wire.CreateRequest{Path: "/pulse", ACL: openACL(), Flags: wire.ModeEphemeral})
		g.good.do(wire.OpDelete, &wire.DeleteRequest{Path: "/pulse", Version: -1})
		g.good.do(wire.OpExists, &wire.ExistsRequest{Path: "/zookeeper"})
		g.mu.Lock()
		g.rounds++
		g.slowest = max(g.slowest, time.Since(began))
		g.mu.Unlock()
		select {
		case <-g.stop:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// lift ends the siege: the good client was served throughout, and what is held
// now, the attackers' own side included, is within the bound.
func (g *siege) lift(bound uint64) {
	g.t.Helper()
	grown := int64(heap()) - int64(g.base)
	close(g.stop)
	g.done.Wait()
	g.t.Logf("%d MiB more in use; %d rounds of the good client, the slowest in %v",
		grown>>20, g.rounds, g.slowest.Round(100*time.Microsecond))
	if grown > int64(bound) {
		g.t.Errorf("%d bytes more are in use, want at most %d", grown, bound)
	}
	if g.rounds == 0 {
		g.t.Error("the good client did nothing")
	}
}

// relieve ends the attackers' connections and waits until the server has let
// them go.
func (g *siege) relieve(attackers []*raw) {
	for _, c := range attackers {
		c.nc.Close()
	}
	for g.s.Stats().Connections > 1 {
		runtime.Gosched()
	}
}

// drain reads whatever comes until the connection ends, and returns how many
// frames that were. It ends with the connection.
func (c *raw) drain() (frames int) {
	for {
		if _, err := c.frame(); err != nil {
			return frames
		}
		frames++
	}
}

// answers reads n replies and counts those without an error.
func (c *raw) answers(n int) (good int) {
	c.t.Helper()
	for i := range n {
		h, _, err := c.next()
		if err != nil {
			c.t.Errorf("reply %d of %d: %v", i, n, err)
			return good
		}
		if h.Err == wire.ErrOK || h.Err == wire.ErrNoNode {
			good++
		}
	}
	return good
}
