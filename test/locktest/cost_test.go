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

// The waiters of a queue, each with a session of its own, and how long they wait while
// nothing happens. With ticks of 2 s a session may last 40 s.
const (
	crowd      = 100
	idle       = 6 * time.Second
	longLife   = 40 * time.Second
	heartbeat  = longLife / 8             // from one to the next
	perBeat    = 4                        // requests of a heartbeat: two syncs, a ping, and a write
	checkAgain = 30 * time.Second * 3 / 4 // the jitter's lower end
)

// TestCost counts what waiting costs, by the server's own counters, and what a hand-over
// costs, by the events of each session: a release of a mutex, a writer, or a reader notifies
// one other session, that of a semaphore in Curator's layout two, and takes a few requests,
// however many clients wait.
func TestCost(t *testing.T) {
	node := harness.StartServer(t, harness.ServerConfig{TickTime: 2 * time.Second})
	for _, kind := range []struct {
		name   string
		lock   func(c *zklock.Client, i int) *zklock.Lock
		notify int // other sessions that are notified, per hand-over
		ask    int // the most requests a hand-over
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
			g := gather(t, ctx, node, kind.lock)
			g.semaphore = kind.name == "semaphore"
			if kind.name == "mutex" || g.semaphore { // the others wait as the mutex does
				g.leaveAlone(t)
			}
			g.handOver(t, kind.notify, kind.ask)
		})
	}
}

// member is one session of a gathering.
type member struct {
	client *zklock.Client
	told   []string // the paths of its events
	stop   func()
	hold   chan *zklock.Hold
	waits  chan string // the names of what it waits for
}

// gathering is a holder and the waiters after it.
type gathering struct {
	ctx     context.Context
	node    *harness.Server
	members []*member
	mu      sync.Mutex // guards told of all

	semaphore bool
}

// gather lets all members enqueue, one after another.
func gather(t *testing.T, ctx context.Context, node *harness.Server, lock func(*zklock.Client, int) *zklock.Lock) *gathering {
	g := &gathering{ctx: ctx, node: node}
	for i := range crowd + 1 {
		conn, err := zk.Dial(ctx, node.Addr(), &zk.Options{SessionTimeout: longLife})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		m := &member{hold: make(chan *zklock.Hold, 1), waits: make(chan string, 16)}
		m.client = zklock.New(conn, &zklock.Options{OnWait: func(e zklock.Event) { m.waits <- e.Blocker.Name }})
		m.stop = conn.Listen(zk.Listener{Event: func(e zk.Event) {
			g.mu.Lock()
			m.told = append(m.told, e.Path)
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
			m.hold <- <-m.hold // it is free
			continue
		}
		select {
		case name := <-m.waits:
			m.waits <- name // for who looks for it later
		case <-ctx.Done():
			t.Fatalf("number %d does not wait", i)
		}
	}
	return g
}

// packets reads how many packets the server has received and sent.
func (g *gathering) packets(t *testing.T) (received, sent int) {
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

// leaveAlone counts the requests to the server while all members wait.
func (g *gathering) leaveAlone(t *testing.T) {
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
	took := time.Since(begun) // a busy machine makes it longer
	beats := g.beats(took)
	checks := int(time.Duration(len(g.members)) * took / checkAgain)
	if n := after - before; n > beats+checks+2 {
		t.Errorf("%d waiters sent %d requests in %v, more than %d of heartbeats and %d checks of a predecessor", crowd, n, took, beats, checks)
	} else {
		t.Logf("%d waiters sent %d requests in %v", crowd, n, took)
	}
}

// handOver passes the lock from one member to the next until all have held it, and counts
// requests and notifications.
func (g *gathering) handOver(t *testing.T, notify, ask int) {
	begun := time.Now()
	before, _ := g.packets(t)
	var own = map[string]bool{} // session and path of what tells a session of its own znode
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
		if g.semaphore && i < crowd {
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
		for _, p := range m.told {
			// The event of a mark comes with that of the entry whose release it marks. The gate
			// that a session leaves is its own as well.
			if queue.IsMark(path.Base(p)) {
				marks++
			} else if !own[fmt.Sprint(i, p)] && !g.ownGate(i, p) {
				others++
			}
		}
	}
	want := notify * crowd
	if g.semaphore {
		want-- // the first to wait found the gate free
	}
	if others != want {
		t.Errorf("%d notifications to other sessions for %d hand-overs, want %d each", others, crowd, notify)
	}
	// The first hold did not wait. A reader proves nothing about other readers.
	if marks < crowd/2-1 || marks > crowd {
		t.Errorf("%d hand-overs told of %d marks", crowd, marks)
	}
	beats := g.beats(time.Since(begun))
	if n := after - before; n > ask*len(g.members)+beats {
		t.Errorf("%d requests for %d hand-overs, more than %d each and %d of heartbeats", n, crowd, ask, beats)
	} else {
		t.Logf("%d notifications to other sessions and %d marks, %d requests, at most %d of them of heartbeats, for %d hand-overs", others, marks, n, beats, crowd)
	}
}

// beats returns how many requests the heartbeats of all members may have in a time.
func (g *gathering) beats(d time.Duration) int {
	return perBeat * len(g.members) * int(d/heartbeat+1)
}

// reachLeases waits until a member has passed the gate's queue and waits for a lease to be
// deleted.
func (g *gathering) reachLeases(t *testing.T, m *member) {
	for {
		select {
		case name := <-m.waits:
			if strings.Contains(name, "-lease-") {
				return
			}
		case <-g.ctx.Done():
			t.Fatal("nobody waits at the leases")
		}
	}
}

// ownGate reports whether a path is a session's own entry in a gate's queue: the last event
// that it receives there, when it leaves. The first waiter found the gate free, so it
// receives no other.
func (g *gathering) ownGate(i int, p string) bool {
	if path.Base(path.Dir(p)) != "locks" {
		return false
	}
	last := ""
	for _, q := range g.members[i].told {
		if path.Dir(q) == path.Dir(p) {
			last = q
		}
	}
	return p == last
}
