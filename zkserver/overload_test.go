package zkserver

import (
	"flag"
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/wire"
)

// fullOverload runs the overload tests at full size, which takes minutes and gigabytes.
var fullOverload = flag.Bool("overload", false, "run the overload tests at full size")

// scale returns short, or full with -overload.
func scale(short, full int) int {
	if *fullOverload {
		return full
	}
	return short
}

// overload is a server under attack, and a well-behaved client.
type overload struct {
	t    *testing.T
	s    *Server
	good *rawClient
	base uint64 // heap before the attack
	stop chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex
	rounds  int
	slowest time.Duration
}

// takeSlowest returns the duration of the slowest round since its last call, including the
// current round.
func (g *overload) takeSlowest() time.Duration {
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

// await waits, by the real clock, until done returns true.
func (g *overload) await(what string, done func() bool) {
	for limit := time.Now().Add(5 * time.Minute); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			g.t.Errorf("%s did not happen within 5 minutes", what)
			return
		}
	}
}

// startOverload starts a server and a client that writes and reads until finish is called. Each
// of its requests must succeed.
func startOverload(t *testing.T, change func(*Options)) *overload {
	t.Helper()
	opts := testOptions(t)
	opts.Logger = discard()
	change(&opts)
	g := &overload{t: t, s: start(t, opts), stop: make(chan struct{})}
	g.base = heap()
	g.good = login(t, g.s, time.Hour)
	g.done.Go(g.probe) // ends with finish
	return g
}

// heap returns the memory in use after garbage collections. Pools free their memory at the
// second collection. Memory that other goroutines allocate during a collection counts as used
// until the next one.
func heap() uint64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// probe sends the requests of the well-behaved client.
func (g *overload) probe() {
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

// finish ends the attack. It fails unless the well-behaved client was served, and the memory in
// use, including the attackers' side, is at most bound.
func (g *overload) finish(bound uint64) {
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

// closeAttackers closes the attackers' connections and waits until the server has
// unregistered them.
func (g *overload) closeAttackers(attackers []*rawClient) {
	for _, c := range attackers {
		c.nc.Close()
	}
	for g.s.Stats().Connections > 1 {
		runtime.Gosched()
	}
}

// drain reads until the connection ends, closes it, and returns the number of frames.
func (c *rawClient) drain() (frames int) {
	for {
		if _, err := c.frame(); err != nil {
			return frames
		}
		frames++
	}
}

// answers reads n replies and counts those without an error.
func (c *rawClient) answers(n int) (good int) {
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

// TestIdleConnectionMemoryIsBounded opens connections with sessions that send nothing.
func TestIdleConnectionMemoryIsBounded(t *testing.T) {
	n := scale(1000, 10_000)
	g := startOverload(t, func(*Options) {})
	idle := make([]*rawClient, n)
	for i := range idle {
		idle[i] = login(t, g.s, time.Hour)
	}
	if st := g.s.Stats(); st.Connections != n+1 || st.Sessions != n+1 {
		t.Errorf("%d connections, %d sessions, want %d", st.Connections, st.Sessions, n+1)
	}
	g.finish(uint64(n) * 40 << 10)
	g.closeAttackers(idle)
}

// TestMaxSessionsLimitsConnectionFlood opens connections that each create a session and close.
func TestMaxSessionsLimitsConnectionFlood(t *testing.T) {
	n, most := scale(3000, 100_000), scale(1000, 30_000)
	g := startOverload(t, func(o *Options) { o.MaxSessions = most })
	served := 0
	for range n {
		c := open(t, g.s)
		c.nc.Write(wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 3_600_000}))
		if _, err := c.frame(); err == nil {
			served++
		}
		c.nc.Close()
	}
	if st := g.s.Stats(); served != most-1 || st.LimitRefusals.Sessions != int64(n-served) {
		t.Errorf("%d of %d got a session, %d were refused, want %d", served, n, st.LimitRefusals.Sessions, most-1)
	}
	g.finish(uint64(most)*4<<10 + uint64(n)*2<<10)
}

// TestConnectionsOfOneAddressAreLimited uses a TCP listener. Each connection sends its connect
// request, because a new connection would replace a half-open one.
func TestConnectionsOfOneAddressAreLimited(t *testing.T) {
	n := scale(300, 5000)
	g := startOverload(t, func(o *Options) { o.MaxClientConns = 100 })
	addr := listenTCP(t, g.s)
	var refused int64
	for range n {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { nc.Close() })
		nc.Write(wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 3_600_000}))
		newRawClient(t, nc).frame() // the answer, or the end
		if refused = g.s.Stats().ConnectionsRefused.TooManyPerAddress; refused > 0 {
			nc.Close() // otherwise this process runs out of files
		}
	}
	for {
		if st := g.s.Stats(); st.ConnectionsRefused.TooManyPerAddress == int64(n-100) {
			break
		} else if st.Connections > 101 {
			t.Fatalf("%d connections from one address", st.Connections-1)
		}
	}
	g.finish(8 << 20)
}

// TestSlowSendersTimeOut opens connections that send one byte at a time, half of them in their
// handshakes, half in requests. It runs in a bubble, because it waits for session timeouts.
func TestSlowSendersTimeOut(t *testing.T) {
	n := scale(200, 3000)
	synctest.Test(t, func(t *testing.T) {
		opts := testOptions(t)
		opts.Logger = discard()
		s := start(t, opts)
		good := login(t, s, time.Hour)
		before := heap()
		var slow sync.WaitGroup
		for i := range n {
			c := open(t, s)
			bytes := wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 1000})
			if i%2 == 0 {
				c.handshake(wire.ConnectRequest{Timeout: 5000})
				bytes = append(frameLength(1_000_000), make([]byte, 1000)...)
			}
			slow.Go(func() { trickle(c, bytes, 700*time.Millisecond) }) // ends with the connection
		}
		for range 100 {
			good.create("/n", wire.ModeEphemeral)
			good.do(wire.OpDelete, &wire.DeleteRequest{Path: "/n", Version: -1})
			time.Sleep(40 * time.Millisecond)
		}
		if grown := int64(heap()) - int64(before); grown > int64(n)*64<<10 {
			t.Errorf("%d bytes are in use for %d slow senders", grown, n)
		} else {
			t.Logf("%d KiB a connection", grown>>10/int64(n))
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		st := s.Stats()
		if st.Connections != 1 || st.ConnectionsCut.HandshakeTimeouts != int64(n/2) || st.SessionsExpired != int64(n-n/2) {
			t.Errorf("%d connections are left, %d handshakes and %d sessions timed out", st.Connections, st.ConnectionsCut.HandshakeTimeouts, st.SessionsExpired)
		}
		slow.Wait()
	})
}

// TestHalfClosedConnectionsGetAnswers opens connections over TCP and in memory. Their clients
// close the sending side, some of them within a request, and still read.
func TestHalfClosedConnectionsGetAnswers(t *testing.T) {
	n := scale(100, 2000)
	g := startOverload(t, func(o *Options) { o.MaxClientConns = -1 })
	addr := listenTCP(t, g.s)
	for i := range n {
		var nc net.Conn
		var err error
		if i%2 == 0 {
			nc, err = net.Dial("tcp", addr)
		} else {
			nc, err = g.s.DialContext(t.Context(), "", "")
		}
		if err != nil {
			t.Fatal(err)
		}
		b := wire.AppendRecord(nil, &wire.ConnectRequest{Timeout: 10_000})
		for xid := range int32(20) {
			b = wire.AppendRequest(b, xid, wire.OpCreate, &wire.CreateRequest{Path: fmt.Sprintf("/h%d-%d", i, xid), ACL: openACL()})
		}
		if i%4 >= 2 {
			b = b[:len(b)-7] // the last request is incomplete
		}
		if _, err := nc.Write(b); err != nil {
			t.Fatal(err)
		}
		nc.(interface{ CloseWrite() error }).CloseWrite()
		c := newRawClient(t, nc)
		want := 21 // with the handshake's answer
		if i%4 >= 2 {
			want--
		}
		if got := c.drain(); got != want {
			t.Errorf("peer %d had %d answers, want %d", i, got, want)
		}
		nc.Close()
	}
	g.finish(32 << 20)
	g.closeAttackers(nil)
}

// TestNonReadingClientsAreDisconnected has clients that request large answers and never read.
func TestNonReadingClientsAreDisconnected(t *testing.T) {
	n := scale(240, 1000)
	const most = 8 << 20
	g := startOverload(t, func(o *Options) { o.MaxUnreadTotal = most })
	writer := login(t, g.s, time.Hour)
	writer.do(wire.OpCreate, &wire.CreateRequest{Path: "/big", Data: make([]byte, 900_000), ACL: openACL()})
	nonReaders := make([]*rawClient, n)
	for i := range nonReaders {
		nonReaders[i] = login(t, g.s, time.Hour)
		for range 10 {
			nonReaders[i].send(wire.OpGetData, &wire.GetDataRequest{Path: "/big"})
		}
	}
	// Each client has requested more than the limit of all clients together.
	writer.do(wire.OpPing, nil)
	for {
		// Aborted connections use memory until their goroutines have ended.
		st := g.s.Stats()
		if cut := int(st.ConnectionsCut.SlowReaders); cut >= n/2 && st.Connections <= n+2-cut {
			break
		}
		runtime.Gosched()
	}
	// Without a limit, each would use more than a megabyte.
	g.finish(12*most + uint64(n)*200<<10)
	g.closeAttackers(append(nonReaders, writer))
}
