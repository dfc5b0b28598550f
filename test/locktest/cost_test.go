package locktest

import (
	"context"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/internal/queue"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// The number of waiters, each with its own session, and the time in which they only wait. With
// ticks of 2 s, a session timeout may be 40 s.
const (
	waiterCount = 100
	idle        = 6 * time.Second
	costTimeout = 40 * time.Second
	heartbeat   = costTimeout / 8          // the heartbeat interval
	perBeat     = 4                        // requests of a heartbeat: two syncs, a ping, and a write
	checkAgain  = 30 * time.Second * 3 / 4 // with the smallest jitter
)

// TestRequestsOfWaitersAndHandovers counts the requests of waiters with the server's counters,
// and the events of each handover. With any number of waiters, a release of a mutex, a writer,
// or a reader notifies one other session, and a release of a semaphore in Curator's layout
// notifies two. A handover takes a few requests.
func TestRequestsOfWaitersAndHandovers(t *testing.T) {
	node := harness.StartServer(t, harness.ServerConfig{TickTime: 2 * time.Second})
	for _, kind := range []struct {
		name     string
		lock     func(c *zklock.Client, i int) *zklock.Lock
		notify   int // the number of other sessions that a handover notifies
		requests int // the largest number of requests per handover
	}{
		{"mutex", func(c *zklock.Client, _ int) *zklock.Lock { return c.Mutex("cost") }, 1, 2},
		{"writers", func(c *zklock.Client, _ int) *zklock.Lock { return c.RWMutex("cost").Writer() }, 1, 2},
		{"readers and writers", func(c *zklock.Client, i int) *zklock.Lock {
			if rw := c.RWMutex("cost"); i%2 == 0 {
				return rw.Writer()
			} else {
				return rw.Reader()
			}
		}, 1, 2},
		{"semaphore", func(c *zklock.Client, _ int) *zklock.Lock { return c.Semaphore("costs", 1) }, 2, 9},
	} {
		t.Run(kind.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			g := enqueueAll(t, ctx, node, kind.lock)
			g.semaphore = kind.name == "semaphore"
			if kind.name == "mutex" || g.semaphore { // the other kinds wait like the mutex
				g.countWhileWaiting(t)
			}
			g.handOver(t, kind.notify, kind.requests)
		})
	}
}

// member is one session of a queueTest.
type member struct {
	client *zklock.Client
	events []string // the paths of its events
	stop   func()
	hold   chan *zklock.Hold
	waits  chan string // the names of the entries for which it waits
}

// queueTest is a holder and its waiters.
type queueTest struct {
	ctx     context.Context
	node    *harness.Server
	members []*member
	mu      sync.Mutex // guards events of all

	semaphore bool
}

// enqueueAll makes all members enqueue, one after another.
func enqueueAll(t *testing.T, ctx context.Context, node *harness.Server, lock func(*zklock.Client, int) *zklock.Lock) *queueTest {
	g := &queueTest{ctx: ctx, node: node}
	for i := range waiterCount + 1 {
		conn, err := zk.Dial(ctx, node.Addr(), &zk.Options{SessionTimeout: costTimeout})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		m := &member{hold: make(chan *zklock.Hold, 1), waits: make(chan string, 16)}
		m.client = zklock.New(conn, &zklock.Options{OnWait: func(e zklock.Event) { m.waits <- e.Blocker.Name }})
		m.stop = conn.Listen(zk.Listener{Event: func(e zk.Event) {
			g.mu.Lock()
			m.events = append(m.events, e.Path)
			g.mu.Unlock()
		}})
		g.members = append(g.members, m)
		go func() { // ends with the grant, or with ctx
			h, err := lock(m.client, i).Acquire(ctx)
			if err != nil {
				t.Errorf("acquire %d: %v", i, err)
			}
			m.hold <- h
		}()
		if i == 0 {
			m.hold <- <-m.hold // the lock is free
			continue
		}
		select {
		case name := <-m.waits:
			m.waits <- name // for reachLeases
		case <-ctx.Done():
			t.Fatalf("number %d does not wait", i)
		}
	}
	return g
}

// packets returns the numbers of packets that the server has received and sent.
func (g *queueTest) packets(t *testing.T) (received, sent int) {
	answer, err := harness.FourLetter(g.ctx, g.node.Addr(), "srvr")
	if err != nil {
		t.Fatal(err)
	}
	received, err1 := strconv.Atoi(harness.FourLetterField(answer, "Received"))
	sent, err2 := strconv.Atoi(harness.FourLetterField(answer, "Sent"))
	if err1 != nil || err2 != nil {
		t.Fatalf("srvr: %v, %v in %q", err1, err2, answer)
	}
	return received, sent
}

// countWhileWaiting counts the requests to the server while all members wait.
func (g *queueTest) countWhileWaiting(t *testing.T) {
	begun := time.Now()
	before, _ := g.packets(t)
	pause := time.NewTimer(idle)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-g.ctx.Done():
		t.Fatal(g.ctx.Err())
	}
	after, _ := g.packets(t)
	took := time.Since(begun)
	beats := g.beats(took)
	checks := int(time.Duration(len(g.members)) * took / checkAgain)
	if n := after - before; n > beats+checks+2 {
		t.Errorf("%d waiters sent %d requests in %v, more than %d of heartbeats and %d checks of a predecessor", waiterCount, n, took, beats, checks)
	} else {
		t.Logf("%d waiters sent %d requests in %v", waiterCount, n, took)
	}
}

// handOver passes the lock from one member to the next until all have held it, and counts
// requests and events.
func (g *queueTest) handOver(t *testing.T, notify, requests int) {
	begun := time.Now()
	before, _ := g.packets(t)
	var own = map[string]bool{} // session and path of events of a session's own znode
	for i, m := range g.members {
		var h *zklock.Hold
		select {
		case h = <-m.hold:
		case <-g.ctx.Done():
			t.Fatalf("number %d is not granted", i)
		}
		if h == nil {
			t.FailNow()
		}
		own[fmt.Sprint(i, h.Node())] = true
		if g.semaphore && i < waiterCount {
			g.reachLeases(t, g.members[i+1])
		}
		if err := h.Release(g.ctx); err != nil {
			t.Fatal(err)
		}
	}
	after, _ := g.packets(t)
	for _, m := range g.members {
		if err := m.client.Close(); err != nil {
			t.Error(err)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	others, marks := 0, 0
	for i, m := range g.members {
		m.stop()
		for _, p := range m.events {
			// Not counted are events of marks, of the session's own entry, and of its entry at the
			// gate.
			if queue.IsMark(path.Base(p)) {
				marks++
			} else if !own[fmt.Sprint(i, p)] && !g.ownGate(i, p) {
				others++
			}
		}
	}
	want := notify * waiterCount
	if g.semaphore {
		want-- // the first waiter found the gate free
	}
	if others != want {
		t.Errorf("%d notifications to other sessions for %d handovers, want %d each", others, waiterCount, notify)
	}
	// The first hold did not wait. A reader's release marks no other reader.
	if marks < waiterCount/2-1 || marks > waiterCount {
		t.Errorf("%d events of marks in %d handovers", marks, waiterCount)
	}
	beats := g.beats(time.Since(begun))
	if n := after - before; n > requests*len(g.members)+beats {
		t.Errorf("%d requests for %d handovers, more than %d each and %d of heartbeats", n, waiterCount, requests, beats)
	} else {
		t.Logf("%d notifications to other sessions and %d marks, %d requests, at most %d of them of heartbeats, for %d handovers", others, marks, n, beats, waiterCount)
	}
}

// beats returns the largest number of requests of all heartbeats in a time.
func (g *queueTest) beats(d time.Duration) int {
	return perBeat * len(g.members) * int(d/heartbeat+1)
}

// reachLeases waits until a member has left the gate's queue and waits for a lease.
func (g *queueTest) reachLeases(t *testing.T, m *member) {
	for {
		select {
		case name := <-m.waits:
			if strings.Contains(name, "-lease-") {
				return
			}
		case <-g.ctx.Done():
			t.Fatal("no member waits for a lease")
		}
	}
}

// ownGate reports whether an event is of a session's own entry at a gate. This is the last
// event that the session receives there.
func (g *queueTest) ownGate(i int, p string) bool {
	if path.Base(path.Dir(p)) != "locks" {
		return false
	}
	last := ""
	for _, q := range g.members[i].events {
		if path.Dir(q) == path.Dir(p) {
			last = q
		}
	}
	return p == last
}
