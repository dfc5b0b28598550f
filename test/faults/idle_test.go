package faults

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zkserver"
	"github.com/zklock/zklock/zktest"
)

// opSync is the operation code of a sync.
const opSync = 9

// A meter counts the connections and requests of clients.
type meter struct{ connections, requests, syncs atomic.Int64 }

// dial connects to a server.
func (m *meter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	m.connections.Add(1)
	return &meteredConn{Conn: conn, meter: m}, nil
}

// A meteredConn counts the frames that a client writes.
type meteredConn struct {
	net.Conn
	meter  *meter
	header []byte // of a frame: length, xid, and operation
	rest   int    // bytes of the frame after the header
	opened bool   // the frame of the handshake was written
}

// Write counts requests. One goroutine at a time may call it.
func (c *meteredConn) Write(b []byte) (int, error) {
	for left := b; len(left) > 0; {
		skip := min(c.rest, len(left))
		left, c.rest = left[skip:], c.rest-skip
		take := min(12-len(c.header), len(left))
		c.header, left = append(c.header, left[:take]...), left[take:]
		if len(c.header) < 12 {
			break
		}
		if op := binary.BigEndian.Uint32(c.header[8:]); c.opened {
			c.meter.requests.Add(1)
			if op == opSync {
				c.meter.syncs.Add(1)
			}
		}
		c.opened, c.rest, c.header = true, int(binary.BigEndian.Uint32(c.header))-8, c.header[:0]
	}
	return c.Conn.Write(b)
}

// cost is the load of clients per second.
type cost struct{ transactions, syncs, requests, connections float64 }

// String returns the cost for a log.
func (c cost) String() string {
	return fmt.Sprintf("%.1f transactions, %.0f syncs, %.0f requests, %.1f new connections a second", c.transactions, c.syncs, c.requests, c.connections)
}

// over returns the load in the time d.
func (m *meter) over(t *testing.T, server string, d time.Duration) cost {
	t.Helper()
	began, zxid := time.Now(), lastZxid(t, server)
	requests, syncs, connections := m.requests.Load(), m.syncs.Load(), m.connections.Load()
	harness.Sleep(t.Context(), d)
	requests, syncs, connections = m.requests.Load()-requests, m.syncs.Load()-syncs, m.connections.Load()-connections
	zxid = lastZxid(t, server) - zxid
	seconds := time.Since(began).Seconds()
	return cost{float64(zxid) / seconds, float64(syncs) / seconds, float64(requests) / seconds, float64(connections) / seconds}
}

// lastZxid returns the zxid of the last transaction.
func lastZxid(t *testing.T, server string) int64 {
	t.Helper()
	answer, err := harness.FourLetter(t.Context(), server, "srvr")
	if err != nil {
		t.Fatal(err)
	}
	zxid, err := strconv.ParseInt(harness.FourLetterField(answer, "Zxid"), 0, 64)
	if err != nil {
		t.Fatalf("%v in %s", err, answer)
	}
	return zxid
}

// mostTrials is the number of trials of a measurement. A stall of the machine can end a hold
// whose session timeout is a few seconds.
const mostTrials = 5

// measureCost measures the load of clients. It repeats the measurement if a hold ends.
func measureCost(t *testing.T, servers []string) {
	trials(t, func(t *testing.T) bool { return tryCost(t, servers) })
}

// trials repeats a measurement until counts returns true.
func trials(t *testing.T, counts func(t *testing.T) bool) {
	for trial := range mostTrials {
		counted := false
		t.Run(fmt.Sprintf("trial %d", trial+1), func(t *testing.T) { counted = counts(t) })
		if counted || t.Failed() {
			return
		}
	}
	t.Errorf("none of %d trials counts", mostTrials)
}

// earlier is the largest number of transactions that end sessions and containers of earlier
// rows.
const earlier = 60

// tryCost counts the transactions of many clients, first idle and then with a hold each. It
// reports whether all holds lasted and all heartbeats were in time. Otherwise, the figures
// are not valid.
func tryCost(t *testing.T, servers []string) bool {
	n, timeout := size(100, 2000), size(2*leastTimeout, usualTimeout)
	var m meter
	clients := dialMany(t, n, func(i int) string { return servers[i%len(servers)] },
		zklock.Options{SessionTimeout: timeout, DialContext: m.dial, PersistentParents: true})
	// steady waits until each client has learned the servers' tick.
	steady := func() { harness.Sleep(t.Context(), timeout*3/2) }
	steady()
	idle := m.over(t, servers[0], 2*timeout)
	t.Logf("%d idle clients, sessions of %v: %v", n, timeout, idle)
	holds := holdMany(t, clients, "cost")
	steady()
	busy := m.over(t, servers[0], 2*timeout)
	t.Logf("%d clients with one hold each, sessions of %v: %v", n, timeout, busy)
	ended := 0
	for _, h := range holds {
		if err := h.Err(); err != nil {
			ended++
			t.Logf("a hold ended: %v", err)
		}
	}
	// A hold causes one write per eighth of the timeout.
	writes := float64(n) * 8 / timeout.Seconds()
	// On a busy machine, some clients reconnect and read the servers' tick in a short session:
	// two transactions and two connections. Some sessions and containers of earlier rows also
	// end.
	if idle.transactions > idle.connections+earlier/(2*timeout).Seconds() || idle.transactions > writes/20 {
		t.Errorf("idle clients cause %.1f transactions a second", idle.transactions)
	}
	if ended > 0 {
		return false
	}
	if limit := writes * size(1.2, 1.025); busy.transactions > limit {
		t.Errorf("holds cause %.1f transactions a second, want %.1f at most", busy.transactions, limit)
	}
	if least := writes * 0.8; busy.transactions < least || busy.syncs < least {
		t.Logf("%.1f transactions and %.1f syncs a second, want %.1f at least: heartbeats were late or not counted", busy.transactions, busy.syncs, least)
		return false
	}
	return true
}

// measureAcquireAfterIdleTime measures the first acquire after a long time, in round trips on
// slow connections.
func measureAcquireAfterIdleTime(t *testing.T, servers []string) {
	n, timeout := size(4, 20), size(leastTimeout, usualTimeout)
	idle := size(2*timeout, 10*time.Minute)
	oneWay := timeout / 20
	proxies := make([]*zktest.Proxy, n)
	for i := range proxies {
		proxies[i] = zktest.NewProxy(t, "tcp", servers[i%len(servers)])
	}
	clients := dialMany(t, n, func(i int) string { return proxies[i].Servers() }, zklock.Options{SessionTimeout: timeout, PersistentParents: true})
	for _, h := range holdMany(t, clients, "rare") { // so that the parents exist
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now().Add(idle - timeout - timeout/2)
	took := make([]time.Duration, n)
	eachOf(t, n, func(i int) error {
		if !settle(t.Context(), began, timeout) {
			return t.Context().Err()
		}
		proxies[i].Delay(oneWay)
		called := time.Now()
		h, err := clients[i].Mutex(fmt.Sprintf("rare-%d", i)).Acquire(t.Context())
		took[i] = time.Since(called)
		if err != nil {
			return err
		}
		return h.Release(t.Context())
	})
	smallest, median := smallestAndMedian(took)
	trips := func(d time.Duration) float64 { return d.Seconds() / (2 * oneWay).Seconds() }
	t.Logf("first acquire after %v, %d clients: median %.2f round trips of %v, longest %.2f", idle, n, trips(median), 2*oneWay, trips(took[n-1]))
	if trips(smallest) < 1 {
		t.Errorf("an acquire took %v, less than a round trip", smallest)
	}
	// TestAcquireAfterIdleTime checks this independently of the machine's load.
	if longest := took[n-1]; *full && trips(longest) > 1.5 {
		t.Errorf("an acquire took %v, which is %.2f round trips", longest, trips(longest))
	}
}

// TestAcquireAfterIdleTime checks in virtual time that the first acquire after a long time
// takes one round trip, at each phase of the heartbeats.
func TestAcquireAfterIdleTime(t *testing.T) {
	const n = 100
	for _, timeout := range []time.Duration{usualTimeout, leastTimeout} {
		t.Run(timeout.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := zktest.Start(t, func(o *zkserver.Options) {
					o.TickTime, o.MinSessionTimeout, o.MaxSessionTimeout, o.FourLetterWords = usualTick, 0, 0, nil
				})
				oneWay := timeout / 20
				eachOf(t, n, func(i int) error {
					route := srv.Route(t)
					c, err := zklock.Dial(t.Context(), "zktest:2181", &zklock.Options{
						SessionTimeout: timeout, DialContext: route.DialContext, PersistentParents: true,
					})
					if err != nil {
						return err
					}
					lock := c.Mutex(fmt.Sprint(i))
					none := func(context.Context, *zklock.Hold) error { return nil }
					if err := zklock.Do(t.Context(), lock, none); err != nil { // so that the parent exists
						return err
					}
					time.Sleep(20*timeout + timeout/8*time.Duration(i)/n)
					route.Delay(oneWay)
					called := time.Now()
					h, err := lock.Acquire(t.Context())
					if err != nil {
						return err
					}
					if took := time.Since(called); took < 2*oneWay || took > 2*oneWay+oneWay/10 {
						t.Errorf("client %d: the acquire took %v, not a round trip of %v", i, took, 2*oneWay)
					}
					return errors.Join(h.Release(t.Context()), c.Close())
				})
			})
		})
	}
}
