package zkserver

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/internal/memnet"
	"github.com/zklock/zklock/internal/wal/memfs"
	"github.com/zklock/zklock/internal/wire"
)

// TestExpensiveConnectionsAreServedLast: the loop first serves uncharged connections, then those
// of a charged address, then charged ones. A charge grows with the time of the turns.
func TestExpensiveConnectionsAreServedLast(t *testing.T) {
	s := &Server{}
	s.loop.charges = make(map[account]time.Duration)
	from := func(addr string) *conn {
		return &conn{peer: peer{tcp: netip.AddrPortFrom(netip.MustParseAddr(addr), 1)}, limited: true}
	}
	expensive, other, shared, good := from("192.0.2.1"), from("192.0.2.2"), from("192.0.2.1"), from("192.0.2.3")
	order := func(at time.Duration) ([]*conn, int) {
		conns := []*conn{expensive, shared, other, good}
		free := s.orderByCharge(conns, at)
		return conns, free
	}
	took := func(d time.Duration) turn { return turn{took: d, work: d} }
	s.charge(good, took(minCharge-1), time.Second)
	if conns, free := order(time.Second); free != 4 || conns[0] != expensive {
		t.Error("cheap turns are charged")
	}
	s.charge(expensive, took(4*time.Millisecond), time.Second)
	s.charge(other, took(time.Millisecond), time.Second)
	if conns, free := order(time.Second); free != 2 || !slices.Equal(conns, []*conn{good, shared, expensive, other}) {
		t.Errorf("%d of %v are not charged", free, conns)
	}
	if conns, free := order(time.Second + 2*time.Millisecond); free != 3 || !slices.Equal(conns, []*conn{other, good, shared, expensive}) {
		t.Errorf("later %d of %v are not charged", free, conns)
	}
	if order(time.Second + 4*time.Millisecond); len(s.loop.charges) != 0 {
		t.Errorf("charges are kept: %v", s.loop.charges)
	}
	s.charge(expensive, took(turnTime), time.Second)
	if conns, free := order(time.Second + 20*turnTime); free != 3 || conns[3] != expensive {
		t.Error("a turn that took long is forgotten at once")
	}
	for range 100 {
		s.charge(expensive, took(time.Second), time.Minute)
	}
	if order(time.Minute + maxCharge); len(s.loop.charges) != 0 {
		t.Error("a charge lasts too long")
	}
	unix := &conn{peer: peer{other: &net.UnixAddr{}}, limited: true}
	s.charge(unix, took(time.Second), time.Minute)
	if other := (&conn{peer: unix.peer, limited: true}); s.chargeOf(unix) != connCharged || s.chargeOf(other) != notCharged {
		t.Error("clients without an address share a charge")
	}
}

// TestManyConnectionsAreOrderedQuickly checks that the loop orders 50,000 connections, some of
// them charged, within the time of a turn.
func TestManyConnectionsAreOrderedQuickly(t *testing.T) {
	s := &Server{}
	s.loop.charges = make(map[account]time.Duration)
	var conns []*conn
	for i := range 50_000 {
		addr := netip.AddrFrom4([4]byte{192, 0, byte(i >> 8), byte(i)})
		c := &conn{peer: peer{tcp: netip.AddrPortFrom(addr, 1)}, limited: true}
		if conns = append(conns, c); i%10 == 9 {
			s.charge(c, turn{took: time.Second, work: time.Second}, time.Second)
		}
	}
	bound := maxTurn
	if raceDetector() {
		bound *= 10
	}
	took := time.Hour
	for range 100 {
		order, began := slices.Clone(conns), time.Now()
		free := s.orderByCharge(order, time.Second)
		if took = min(took, time.Since(began)); free != len(conns)*9/10 || order[0] != conns[0] || order[free] != conns[9] {
			t.Fatalf("%d connections of %d are not charged", free, len(conns))
		}
		if took <= bound/2 {
			break
		}
	}
	t.Logf("ordered within %v", took)
	if took > bound {
		t.Errorf("ordered within %v, want %v", took, bound)
	}
}

// TestInterruptedTurnIsNotCharged: a turn takes long because the loop was interrupted. If the
// turn were charged, the server would serve its client last, for up to a second.
func TestInterruptedTurnIsNotCharged(t *testing.T) {
	s, c := &Server{}, new(conn)
	s.loop.charges = make(map[account]time.Duration)
	s.charge(c, turn{took: time.Second, work: 20 * time.Microsecond, size: 100}, time.Second)
	if s.chargeOf(c) != notCharged {
		t.Error("a cheap request is charged")
	}
	s.charge(c, turn{took: 2 * turnTime, work: turnTime, size: 100}, time.Second)
	if until := s.loop.charges[account{conn: c}]; until < time.Second+2*turnTime {
		t.Errorf("a request that took %v is charged for %v", 2*turnTime, until-time.Second)
	}
}

// TestCheapRequestWaitsForTwoExpensiveTurns: twenty clients repeatedly send requests that take
// long or have long answers. A cheap request of another client waits for the current turn and
// one more. None of the twenty waits much longer than its share.
func TestCheapRequestWaitsForTwoExpensiveTurns(t *testing.T) {
	const long, short = 15 * time.Millisecond, 2 * time.Millisecond
	for at := range 60 {
		q := cheapRequest{clients: 20, at: at, took: long, within: 3 * long / 2}
		testCheapRequest(t, q)
		q.took, q.size, q.within = short, roundBytes+1, 3*short/2
		testCheapRequest(t, q)
	}
}

// TestCheapRequestOvertakesNewConnections: each client sends its expensive request over a new
// connection, from its own address or from that of the client with the cheap request.
func TestCheapRequestOvertakesNewConnections(t *testing.T) {
	const long = 15 * time.Millisecond
	for at := range 60 {
		q := cheapRequest{clients: 20, at: at, took: long, fresh: true, within: 2 * long}
		testCheapRequest(t, q)
		q.peer = peer{tcp: netip.MustParseAddrPort("192.0.2.1:1")}
		testCheapRequest(t, q)
	}
}

// TestCheapRequestOvertakesLargeOnesOfOlderConnections: connections that were idle for a minute
// each send one large request. The connection with the cheap request is new.
func TestCheapRequestOvertakesLargeOnesOfOlderConnections(t *testing.T) {
	const long = 15 * time.Millisecond
	for at := range 60 {
		q := cheapRequest{clients: 20, at: at, took: long, fresh: true, input: 64 << 10, within: 2 * long}
		testCheapRequest(t, q)
		q.peer = peer{tcp: netip.MustParseAddrPort("192.0.2.1:1")}
		testCheapRequest(t, q)
	}
}

// TestCheapRequestOvertakesManyShortTurns: many clients send requests that each take slightly
// less than a long turn.
func TestCheapRequestOvertakesManyShortTurns(t *testing.T) {
	const clients, within = 80, 2*roundTime + 2*turnTime
	for at := range clients {
		q := cheapRequest{clients: clients, at: at, took: turnTime - time.Millisecond, within: within}
		testCheapRequest(t, q)
	}
}

// cheapRequest is a cheap request that a client sends during the turn of another client.
type cheapRequest struct {
	clients, at int           // number of other clients, and the turn of theirs
	took        time.Duration // time of each turn
	size        int           // bytes of output of each turn
	fresh       bool          // each turn is that of another connection
	input       int           // bytes of each request; if not 0, these connections are older than the cheap client's
	peer        peer          // address of all clients
	within      time.Duration // the longest wait
}

func testCheapRequest(t *testing.T, q cheapRequest) {
	clients, at, took, size := q.clients, q.at, q.took, q.size
	synctest.Test(t, func(t *testing.T) {
		s := &Server{start: time.Now()}
		s.loop.charges = make(map[account]time.Duration)
		time.Sleep(time.Minute) // the age of the cheap client's connection
		arrive := func(c *conn) { s.ready = append(s.ready, c) }
		cheap := &conn{peer: q.peer, limited: true}
		if q.input > 0 {
			cheap.calmSince = s.elapsed()
		}
		var sent, waited time.Duration
		last := make(map[*conn]time.Duration)
		open := func() {
			c := &conn{peer: q.peer, limited: true, calmSince: s.elapsed()}
			if q.input > 0 {
				c.calmSince = 0
				c.exchange = &exchange{work: inbox{buf: make([]byte, q.input), frames: []arrival{{end: q.input}}}}
			}
			last[c] = s.elapsed()
			arrive(c)
		}
		for range clients {
			open()
		}
		turns := 0
		for waited == 0 || turns < 6*clients {
			r := roundInput{began: s.elapsed()}
			var done []*conn
			s.takeTurns(&r, func(c *conn) int {
				if c == cheap {
					waited = s.elapsed() - sent
					return 0
				}
				s.loop.work += took
				time.Sleep(took / 2)
				if turns++; turns == at+1 {
					sent = s.elapsed()
					arrive(cheap)
				}
				time.Sleep(took / 2)
				if gap := s.elapsed() - last[c]; gap > time.Duration(3*clients)*took {
					t.Fatalf("a client waited for %v", gap)
				}
				last[c] = s.elapsed()
				done = append(done, c)
				return size
			})
			for _, c := range done {
				if q.fresh {
					open()
				} else {
					arrive(c)
				}
			}
		}
		if waited > q.within {
			t.Errorf("after %d turns of %v and %d bytes a cheap request waited for %v", at, took, size, waited)
		}
	})
}

// TestLargeWritesDelayOthersByAFewBatches: clients keep a disk of 100 MB/s busy with pipelined
// writes. Another client's small write waits for a few batches, not for the writes of all
// clients.
func TestLargeWritesDelayOthersByAFewBatches(t *testing.T) {
	const attackers = "192.0.2.1:1"
	for name, load := range map[string]struct {
		clients, size, pipeline int
		from                    string // the address of the other client
	}{
		"one large write each":             {40, 1_000_000, 1, "192.0.2.2:1"},
		"large writes of the same address": {40, 1_000_000, 1, attackers},
		"pipelined large writes":           {10, 1_000_000, 4, "192.0.2.2:1"},
		"two writes a batch":               {10, roundBytes/2 - 8192, 4, attackers},
		"pipelined small writes":           {40, 20_000, 40, attackers},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts, fs := onMemory(t, 47)
				opts.SnapshotBytes, opts.segmentBytes = 1<<40, 1<<20
				opts.MaxClientConns = -1
				s := start(t, opts)
				from := func(addr string) *rawClient {
					client, server := memnet.Pipe()
					remote := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))
					must(t, s.startHandler(&remoteConn{server, remote}, true))
					c := newRawClient(t, client)
					c.handshake(wire.ConnectRequest{Timeout: int32(time.Hour.Milliseconds())})
					return c
				}
				small := from(load.from)
				small.create("/small", wire.ModePersistent)
				small.create("/large", wire.ModePersistent)
				unsynced := 0
				fs.SetFault(func(op memfs.Op) memfs.Fault {
					switch op.Kind {
					case memfs.OpWrite:
						unsynced += op.Len
					case memfs.OpSync:
						time.Sleep(time.Duration(unsynced) * byteTime)
						unsynced = 0
					}
					return memfs.Fault{}
				})
				var large []byte
				for range load.pipeline {
					large = wire.AppendRequest(large, 1, wire.OpSetData, &wire.SetDataRequest{Path: "/large", Data: make([]byte, load.size), Version: -1})
				}
				for range load.clients {
					c := from(attackers)
					go func() { // ends with the connection
						for {
							if _, err := c.nc.Write(large); err != nil {
								return
							}
						}
					}()
					go c.drain() // ends with the connection
				}
				for range raceShare(10) {
					time.Sleep(7 * time.Millisecond)
					began := time.Now()
					small.do(wire.OpSetData, &wire.SetDataRequest{Path: "/small", Version: -1})
					if took := time.Since(began); took > maxTurn {
						t.Fatalf("a small write took %v, want at most %v", took, maxTurn)
					}
				}
			})
		})
	}
}
