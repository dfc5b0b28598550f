package locks

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/netns"
	"github.com/zklock/zklock/test/stall"
	"github.com/zklock/zklock/test/zkreal"
	"github.com/zklock/zklock/zk"
)

var cutTrials = flag.Int("locks.trials", 1, "how often each fault of TestCutOff is tried")

// The ensemble of TestCutOff: a server that hears nothing of the others serves on
// for some cutSync ticks, and the others elect a leader after as long.
const (
	cutTick    = 500 * time.Millisecond
	cutSync    = 6
	cutTimeout = 5 * time.Second
	// cutPause is for how long a leader is stopped: longer than the others wait, and
	// less than the session lasts, pausedTimeout, or it would end the session itself
	// when it goes on.
	cutPause      = 6500 * time.Millisecond
	pausedTimeout = 8 * time.Second
	// cutFlap is between two cuts of the connections between clients and a leader
	// that is cut off: it resumes their sessions each time.
	cutFlap = 400 * time.Millisecond
)

// isolation is a way to keep a server and its clients from the others.
type isolation struct {
	name   string
	leader bool // it is done to the leader, else to a follower
	// paused says that the server is stopped for a while first. It then serves for a
	// moment after the others have another leader, and a heartbeat by sync is no proof.
	paused bool
}

// timeout is that of the sessions.
func (i isolation) timeout() time.Duration {
	if i.paused {
		return pausedTimeout
	}
	return cutTimeout
}

// TestCutOff: a server is cut off from the others with its clients, which it goes
// on answering, while the others end the sessions and grant the locks anew. Whoever
// counts by pings then holds beside the next; ours have said lost before.
func TestCutOff(t *testing.T) {
	n := netns.New(t, 3)
	s := &stage{network: n, cluster: zkreal.EnsembleAt(t, n.Places(), zkreal.Config{TickTime: cutTick, SyncLimit: cutSync})}
	for _, i := range []isolation{
		{name: "follower"}, {name: "leader", leader: true}, {name: "paused leader", leader: true, paused: true},
	} {
		t.Run(i.name, func(t *testing.T) {
			sum := &tally{smallest: map[string]time.Duration{}, longest: map[string]time.Duration{}, overlap: time.Hour}
			for k := 0; sum.trials < *cutTrials && !t.Failed(); k++ {
				s.try(t, i, sum)
				if k > 2**cutTrials+3 {
					t.Fatal("who counts by pings does not hold beside the next, so the trials show nothing")
				}
			}
			for _, l := range lines(i, sum) {
				fmt.Println(l)
			}
		})
	}
}

// tally is what the trials of one isolation came to.
type tally struct {
	trials   int
	untold   int                      // in how many of them nobody told the pinger that its session is over
	control  int                      // in how many of them it held beside its successor by its own clock, too
	overlap  time.Duration            // for how long at the least
	smallest map[string]time.Duration // between a hold's deadline and the next grant, by heartbeat
	longest  map[string]time.Duration // from the fault to the next grant
}

// lines are the totals, in lines whose numbers can be added up.
func lines(i isolation, s *tally) (all []string) {
	for name, margin := range s.smallest {
		all = append(all, fmt.Sprintf("cut-off totals: fault=%q heartbeat=%q trials=%d double-holds=0 smallest-margin=%v longest-hand-over=%v control-double-holds=%d by-its-clock=%d control-shortest-overlap=%v",
			i.name, name, s.trials, margin.Round(time.Millisecond), s.longest[name].Round(time.Millisecond), s.untold, s.control, s.overlap.Round(time.Millisecond)))
	}
	return all
}

// stage is the ensemble on which trials are made, one after another.
type stage struct {
	network *netns.Network
	cluster *zkreal.Cluster
	trials  int // made so far
}

// try makes one trial.
func (s *stage) try(t *testing.T, i isolation, sum *tally) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	victim, other := s.servers(t, ctx, i)
	s.trials++
	path := fmt.Sprintf("cut/%d", s.trials)

	link := &cable{}
	pair := func(server *zkreal.Node, c *cable) *zk.Client {
		client, err := zk.Dial(ctx, server.Addr(), &zk.Options{SessionTimeout: i.timeout(), DialContext: c.dial})
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	control, rival := pair(victim, link), pair(other, nil)
	defer func() { _, _ = control.Close(), rival.Close() }()
	p := newPinger(t, ctx, control, fmt.Sprintf("/control-%d", s.trials))
	defer p.stop()
	holders := []*holder{{name: "write", path: path + "/write"}}
	if !i.paused {
		holders = append(holders, &holder{name: "sync", path: path + "/sync", sync: true})
	}
	for _, h := range holders {
		h.begin(t, ctx, i, victim, other, link)
		defer h.close()
	}
	// The fault comes at any time between two heartbeats.
	rest(ctx, time.Duration(rand.Int64N(int64(i.timeout()/4))))

	late := stall.Watch(ctx)
	begun := time.Now()
	end := s.isolate(t, ctx, i, victim, link)
	defer end()
	taken := make(chan error, 1)
	go func() { taken <- succeed(ctx, rival, p.path) }() // ends with the lock, or ctx
	var last time.Duration
	for _, h := range holders {
		last = max(last, h.judge(t, ctx, i, begun, sum))
	}
	// A follower is no part of the quorum: the leader ends its clients' sessions as
	// if they had crashed.
	if limit := cutTimeout + 2*cutTick + late(); !i.leader && last > limit {
		t.Errorf("%s: handed over after %v, more than the timeout and two ticks, %v", i.name, last, limit)
	}
	if err := <-taken; err != nil {
		t.Fatal(err)
	}
	overlap := time.Until(p.until(i.timeout()))
	t.Logf("%s: the pinger counts on for %v after its successor has the lock; told that its session is over: %v", i.name, overlap, p.told())
	// Between its going on and its noticing that it leads no more, a leader that was
	// stopped may get too little of a busy processor to answer anybody; or it goes on
	// too late, when it ends the session by itself.
	if p.told() || overlap <= 0 && (i.paused || !i.leader) {
		t.Logf("%s: the pinger does not hold beside the next: another trial", i.name)
		return
	}
	sum.trials++
	sum.untold++
	sum.overlap = min(sum.overlap, overlap)
	if overlap > 0 {
		sum.control++
	}
}

// servers returns the server that will be cut off, and one of the others, when all
// serve.
func (s *stage) servers(t *testing.T, ctx context.Context, i isolation) (victim, other *zkreal.Node) {
	t.Helper()
	if err := s.network.Heal(); err != nil {
		t.Fatal(err)
	}
	if err := s.cluster.WaitServing(ctx); err != nil {
		t.Fatal(err)
	}
	leader, err := s.cluster.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	next := s.cluster.Nodes[leader.ID()%len(s.cluster.Nodes)]
	if i.leader {
		return leader, next
	}
	return next, leader
}

// isolate cuts the server off. The returned function undoes that.
func (s *stage) isolate(t *testing.T, ctx context.Context, i isolation, victim *zkreal.Node, c *cable) (end func()) {
	t.Helper()
	if err := s.network.Hosts[victim.ID()-1].CutQuorum(); err != nil {
		t.Fatal(err)
	}
	flapping, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	if i.paused {
		if err := victim.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	go func() { // ends with flapping
		defer close(over)
		if i.paused {
			rest(flapping, cutPause-cutFlap)
			c.cut() // clients come back to a server that is silent, and then resumes their sessions
			rest(flapping, cutFlap)
			if err := victim.Cont(); err != nil {
				t.Error(err)
			}
		}
		for i.leader && rest(flapping, cutFlap) {
			c.cut()
		}
	}()
	return func() {
		cancel()
		<-over
		if err := s.network.Heal(); err != nil {
			t.Error(err)
		}
	}
}

// cable is the network of the clients that are cut off, which can be made to fail
// without a word to the server's others.
type cable struct {
	mu      sync.Mutex
	conns   []net.Conn
	refused bool
}

func (c *cable) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err == nil && c != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.refused {
			_ = conn.Close()
			return nil, errCrashed
		}
		c.conns = append(c.conns, conn)
	}
	return conn, err
}

// refuse lets nobody connect any more.
func (c *cable) refuse() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refused = true
}

// cut ends all connections.
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	c.conns = nil
}

// holder is a hold of a client on the server that is cut off, and who waits for
// the lock on another.
type holder struct {
	name string
	path string
	sync bool // its heartbeats are syncs

	clients []*zklock.Client
	hold    *zklock.Hold
	granted chan *zklock.Hold
	late    chan time.Time // the latest deadline that the hold has told, once it is lost
}

// begin takes the lock and queues the next.
func (h *holder) begin(t *testing.T, ctx context.Context, i isolation, victim, other *zkreal.Node, c *cable) {
	t.Helper()
	opts := &zklock.Options{SessionTimeout: i.timeout(), SyncHeartbeat: h.sync, ServerTick: cutTick, DialContext: c.dial}
	holds := dial(t, ctx, victim.Addr(), opts)
	opts.DialContext = nil
	waits := dial(t, ctx, other.Addr(), opts)
	h.clients = []*zklock.Client{holds, waits}
	h.take(t, ctx, holds, waits)
}

// take has one client take the lock and another one wait for it.
func (h *holder) take(t *testing.T, ctx context.Context, holds, waits *zklock.Client) {
	t.Helper()
	var err error
	if h.hold, err = holds.Mutex(h.path).Acquire(ctx); err != nil {
		t.Fatal(err)
	}
	h.granted, h.late = make(chan *zklock.Hold, 1), make(chan time.Time, 1)
	go func() { // ends with the grant, or with ctx
		next, err := waits.Mutex(h.path).Acquire(ctx)
		if err != nil {
			t.Errorf("%s: the next acquire: %v", h.name, err)
		}
		h.granted <- next
	}()
	waitForQueue(t, ctx, waits, h.path, 2)
	go h.watch() // ends when the hold does
}

// watch asks the hold for its deadline until it is lost.
func (h *holder) watch() {
	var last time.Time
	for h.hold.Err() == nil {
		at := time.Now()
		if left := h.hold.Remaining(); left > 0 {
			last = at.Add(left)
		}
		select {
		case <-h.hold.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
	h.late <- last
}

// judge waits until the next has the lock, and compares. It returns how long after
// the fault that was.
func (h *holder) judge(t *testing.T, ctx context.Context, i isolation, begun time.Time, sum *tally) time.Duration {
	t.Helper()
	var next *zklock.Hold
	select {
	case next = <-h.granted:
	case <-ctx.Done():
		t.Fatal(ctx.Err())
	}
	now, err := time.Now(), h.hold.Err()
	if next == nil {
		t.FailNow()
	}
	if err == nil {
		t.Fatalf("%s, %s: two hold: granted %v after the fault, and the old holder has %v left", i.name, h.name, now.Sub(begun), h.hold.Remaining())
	}
	if !errors.Is(err, zklock.ErrLost) || next.Token() <= h.hold.Token() {
		t.Errorf("%s, %s: %v, tokens %#x and then %#x", i.name, h.name, err, h.hold.Token(), next.Token())
	}
	late := <-h.late
	margin := now.Sub(late)
	t.Logf("%s, %s: lost %v and granted to the next %v after the fault: a margin of %v", i.name, h.name, late.Sub(begun), now.Sub(begun), margin)
	if least, ok := sum.smallest[h.name]; !ok || margin < least {
		sum.smallest[h.name] = margin
	}
	sum.longest[h.name] = max(sum.longest[h.name], now.Sub(begun))
	return now.Sub(begun)
}

func (h *holder) close() {
	for _, c := range h.clients {
		_ = c.Close() // one of them has no server
	}
}

func dial(t *testing.T, ctx context.Context, servers string, opts *zklock.Options) *zklock.Client {
	t.Helper()
	c, err := zklock.Dial(ctx, servers, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// waitForQueue waits until so many are in the queue.
func waitForQueue(t *testing.T, ctx context.Context, c *zklock.Client, path string, want int) {
	t.Helper()
	for {
		entries, err := c.Mutex(path).Inspect(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(entries) == want {
			return
		}
	}
}
