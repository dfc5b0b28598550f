package locktest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

var (
	cutTrials      = flag.Int("locks.trials", 0, "how many holds each fault of TestCutOff is tried on, with ticks of 2 s; 0 takes shorter ticks")
	cutShortTrials = flag.Int("locks.short-trials", 1, "the same with the shorter ticks")
)

// A scale has the times of the servers and sessions of TestCutOff, and how many holders
// there are at a time.
type scale struct {
	tick    time.Duration
	sync    int // a server that hears nothing of the others continues for so many ticks
	timeout time.Duration
	// pause is for how long a leader is stopped until the others have elected another
	// one. It is shorter than pausedTimeout, the timeout of the sessions, or the leader
	// would end the sessions itself when it continues.
	pause, pausedTimeout time.Duration
	late                 int // by how much holdPings delays pings, in percent of the slack; the rest is for the machine
	writes, syncs        int // holders with each heartbeat; they share the phase of the leader's pings
}

var (
	shortScale = scale{
		tick: 500 * time.Millisecond, sync: 6, timeout: 4 * time.Second,
		pause: 6500 * time.Millisecond, pausedTimeout: 8 * time.Second,
		late: 50, writes: 8, syncs: 2,
	}
	usualScale = scale{
		tick: 2 * time.Second, sync: 5, timeout: 20 * time.Second,
		pause: 14 * time.Second, pausedTimeout: 20 * time.Second,
		late: 75, writes: 10, syncs: 2,
	}
)

// Sessions that are shorter than two ticks.
const (
	longTick     = 2 * time.Second
	shortSession = 2 * time.Second
)

// cutFlap is between two cuts of the connections between clients and a leader that is
// cut off: it resumes their sessions each time.
const cutFlap = 400 * time.Millisecond

// slack is by how much a leader's pings may be late, and half of it how soon after a
// pause it pings (assumption A4).
func slack(timeout time.Duration) time.Duration { return timeout / 32 }

// A fault keeps what some clients send from the servers that decide about their
// sessions.
type fault struct {
	name   string
	places []string // where the holders' clients are connected
	// otherLeader says that the fault ends with another leader, and stops that it stops
	// a server, so that a heartbeat by sync is no proof (assumption A5).
	otherLeader, stops bool
	// hold delays the leader's pings by as much as assumption A4 permits.
	holdPings bool
	strike    func(r *round) (end func())
}

// The places of holders.
const (
	onFollower = "follower"
	onObserver = "observer"
	onLeader   = "leader"
)

// TestCutOff checks that a hold is lost before the servers end its session, when what
// its client sends no longer reaches the leader that decides about the session. Some
// servers continue to answer such a client. A client that counts by pings then holds
// the lock together with its successor.
//
// The servers expire sessions at multiples of the tick, up to a tick after the timeout.
// So the test also reads in the leader's log from when it counts the timeout.
func TestCutOff(t *testing.T) {
	full := *cutTrials > 0
	times, most := shortScale, *cutShortTrials
	if full {
		times, most = usualScale, *cutTrials
	}
	short := times
	short.tick, short.sync, short.timeout, short.syncs = longTick, 2, shortSession, 0
	for _, ensemble := range []struct {
		name   string
		times  scale
		extra  map[string]string
		faults []fault
	}{
		{"usual", times, nil, []fault{
			{name: "follower", places: []string{onFollower, onObserver, onLeader}, strike: cutPlaces},
			{name: "paused leader", places: []string{onLeader}, otherLeader: true, stops: true, strike: pauseAndCutLeader},
		}},
		{"local sessions", times, map[string]string{"localSessionsEnabled": "true", "localSessionsUpgradingEnabled": "true"}, []fault{
			{name: "follower", places: []string{onFollower}, strike: cutPlaces},
			{name: "late pings", places: []string{onFollower}, holdPings: true, stops: true, strike: cutPlaces},
			{name: "leader", places: []string{onLeader}, otherLeader: true, strike: cutLeader},
			{name: "leader paused, then cut", places: []string{onFollower}, stops: true, strike: pauseLeaderAndCutOneWay},
		}},
		{"short sessions", short, map[string]string{"minSessionTimeout": fmt.Sprint(longTick.Milliseconds())}, []fault{
			{name: "follower", places: []string{onFollower}, strike: cutPlaces},
		}},
	} {
		t.Run(ensemble.name, func(t *testing.T) {
			t.Parallel()
			observed := slices.ContainsFunc(ensemble.faults, func(f fault) bool { return slices.Contains(f.places, onObserver) })
			size := 3
			if observed {
				size++
			}
			n := harness.NewNetwork(t, size)
			places := n.Placements()
			if observed {
				places[3].Observer = true
			}
			s := &stage{scale: ensemble.times, network: n, cluster: harness.StartEnsembleAt(t, places, harness.ServerConfig{
				TickTime: ensemble.times.tick, SyncLimit: ensemble.times.sync, Extra: ensemble.extra,
				JavaFlags: append(harness.TouchFlags(), harness.ThreadFlags()...),
			})}
			for _, server := range s.cluster.Servers {
				if err := server.TraceTouches(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			for _, f := range ensemble.faults {
				t.Run(f.name, func(t *testing.T) {
					sum := tally{}
					for k := 0; sum.fewest(f) < most && !t.Failed(); k++ {
						if k > 5*most+15 {
							t.Fatal("the machine is too busy: no trial counts")
						}
						s.try(t, f, sum)
					}
					for _, line := range sum.lines(ensemble.name, f) {
						fmt.Println(line)
					}
				})
			}
		})
	}
}

// tally has the totals of a fault by place and heartbeat.
type tally map[string]*trials

// trials is what some trials came to.
type trials struct {
	count   int
	doubles int           // in how many of them two clients held the lock at a time
	margin  time.Duration // smallest time from a loss to the next grant
	sure    time.Duration // smallest time from a loss to the timeout after the leader's last note
	control int           // how often a client that counts by pings held together with its successor
}

// fewest returns the number of trials with writes at the place that has the fewest.
func (sum tally) fewest(f fault) int {
	least := -1
	for _, place := range f.places {
		n := 0
		if got := sum[place+" write"]; got != nil {
			n = got.count
		}
		if least < 0 || n < least {
			least = n
		}
	}
	return least
}

// lines are the totals, in lines whose numbers can be added up.
func (sum tally) lines(ensemble string, f fault) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		s := sum[name]
		all = append(all, fmt.Sprintf("cut-off totals: servers=%q fault=%q holders=%q trials=%d double-holds=%d smallest-margin=%v without-rounding=%v control-double-holds=%d",
			ensemble, f.name, name, s.count, s.doubles, s.margin.Round(time.Millisecond), s.sure.Round(time.Millisecond), s.control))
	}
	return all
}

// stage is an ensemble on which trials are made, one round after another.
type stage struct {
	scale   scale
	network *harness.Network
	cluster *harness.Ensemble
	rounds  int // made so far
}

// A round tries one fault on many holds at once.
type round struct {
	*stage
	t       *testing.T
	ctx     context.Context
	fault   fault
	timeout time.Duration
	groups  []*group
	leader  *harness.Server
}

// A group is the holders at one place.
type group struct {
	place   string
	server  *harness.Server
	link    *cable
	holders []*holder
	control *pinger
	taken   chan error // when the control's successor has its lock, or cannot
}

// try makes one round.
func (s *stage) try(t *testing.T, f fault, sum tally) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s.rounds++
	r := &round{stage: s, t: t, ctx: ctx, fault: f, timeout: s.scale.timeout}
	if f.otherLeader && f.stops {
		r.timeout = s.scale.pausedTimeout
	}
	other := r.servers()
	stopHolding := func() {}
	if f.holdPings {
		stopHolding = r.holdPings()
		defer stopHolding()
	}
	waits, rival, closeAll := r.connect(other)
	defer closeAll()
	for _, g := range r.groups {
		r.begin(g, waits, rival)
		defer g.control.stop()
	}
	// Every hold has a proof of the usual age. The fault comes at any time between two
	// heartbeats, right after one has proven a deadline, or before a ping of the leader.
	harness.Sleep(ctx, r.timeout/2+time.Duration(rand.Int64N(int64(r.timeout/8))))
	switch {
	case f.holdPings || s.rounds%3 == 1:
		r.awaitPing()
	case s.rounds%3 == 0:
		r.awaitProof(r.groups[rand.IntN(len(r.groups))].holders[0])
	}
	late := harness.WatchStalls(ctx)
	begun := time.Now()
	for _, g := range r.groups {
		for _, h := range g.holders {
			h.early = h.hold.Err() != nil
		}
	}
	end := f.strike(r)
	struck := time.Now()
	stopHolding()
	for _, g := range r.groups {
		go func() { g.taken <- succeed(ctx, rival, g.control.path) }() // ends with the lock, or ctx
	}
	ended := false
	defer func() {
		if !ended {
			end()
		}
	}()
	r.judge(begun, struck, late, sum)
	// A server that was cut off must have noticed, or it notices later.
	harness.Sleep(ctx, time.Until(begun.Add(time.Duration(s.scale.sync+1)*s.scale.tick)))
	end()
	ended = true
}

// servers finds the servers of the groups, and returns one that will
// serve all the time.
func (r *round) servers() (other *harness.Server) {
	r.t.Helper()
	if err := r.cluster.WaitServing(r.ctx); err != nil {
		r.t.Fatal(err)
	}
	var err error
	if r.leader, err = r.cluster.WaitLeader(r.ctx); err != nil {
		r.t.Fatal(err)
	}
	followers, err := r.cluster.WaitFollowers(r.ctx, 2)
	if err != nil {
		r.t.Fatal(err)
	}
	at := map[string]*harness.Server{onLeader: r.leader, onFollower: followers[0], onObserver: r.cluster.Servers[len(r.cluster.Servers)-1]}
	for _, place := range r.fault.places {
		r.groups = append(r.groups, &group{place: place, server: at[place], link: &cable{}, taken: make(chan error, 1)})
	}
	return followers[1]
}

// connect connects the client that waits for all locks, and a client that reads the holders' znodes
// and succeeds the controls. The returned function closes all clients of the round.
func (r *round) connect(other *harness.Server) (waits *zklock.Client, rival *zk.Client, closeAll func()) {
	r.t.Helper()
	// Their sessions survive a busy machine.
	long := 20 * r.scale.tick
	waits = dial(r.t, r.ctx, other.Addr(), &zklock.Options{SessionTimeout: long, ServerTick: r.scale.tick})
	rival, err := zk.Dial(r.ctx, other.Addr(), &zk.Options{SessionTimeout: long})
	if err != nil {
		r.t.Fatal(err)
	}
	return waits, rival, func() { _, _ = waits.Close(), rival.Close() }
}

// begin makes a group's holders acquire their locks.
func (r *round) begin(g *group, waits *zklock.Client, rival *zk.Client) {
	r.t.Helper()
	path := fmt.Sprintf("cut/%d/%s", r.rounds, g.place)
	for i := range r.scale.writes + r.scale.syncs {
		h := &holder{name: "write", path: fmt.Sprintf("%s/%d", path, i)}
		if i >= r.scale.writes {
			h.name = "sync"
			if r.fault.stops {
				continue
			}
		}
		g.holders = append(g.holders, h)
	}
	var wg sync.WaitGroup
	for _, h := range g.holders {
		wg.Go(func() {
			harness.Sleep(r.ctx, time.Duration(rand.Int64N(int64(r.timeout/8)))) // heartbeats at any phase
			holds, err := zklock.Dial(r.ctx, g.server.Addr(), &zklock.Options{
				SessionTimeout: r.timeout, SyncHeartbeat: h.name == "sync", ServerTick: r.scale.tick, DialContext: g.link.dial,
			})
			if err != nil {
				r.t.Error(err)
				return
			}
			r.t.Cleanup(func() { _ = holds.Close() }) // its session has ended
			if err := h.acquire(r.t, r.ctx, holds, waits); err != nil {
				r.t.Error(err)
				return
			}
			if err := r.queued(waits, h); err != nil {
				r.t.Error(err)
				return
			}
			stat, found, err := rival.Exists(r.ctx, h.hold.Node())
			if err != nil || !found && h.hold.Err() == nil {
				r.t.Errorf("%s: %v, %v", h.path, found, err)
				return
			}
			h.session = stat.EphemeralOwner
		})
	}
	wg.Wait()
	if r.t.Failed() {
		r.t.FailNow()
	}
	control, err := zk.Dial(r.ctx, g.server.Addr(), &zk.Options{SessionTimeout: r.timeout, DialContext: g.link.dial})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = control.Close() }) // its session has ended
	g.control = newPinger(r.t, r.ctx, control, fmt.Sprintf("/control-%d-%s", r.rounds, g.place))
}

// queued waits until the next client waits for the lock, or the hold is lost, as short
// sessions are on a busy machine.
func (r *round) queued(waits *zklock.Client, h *holder) error {
	for harness.Sleep(r.ctx, 10*time.Millisecond) {
		if h.hold.Err() != nil {
			return nil
		}
		entries, err := waits.Mutex(h.path).Inspect(r.ctx)
		if err != nil || len(entries) == 2 {
			return err
		}
	}
	return r.ctx.Err()
}

// awaitProof returns right after a heartbeat has proven a later deadline.
func (r *round) awaitProof(h *holder) {
	for before := h.deadline(); harness.Sleep(r.ctx, time.Millisecond); {
		if now := h.deadline(); now.Sub(before) > slack(r.timeout) || now.IsZero() {
			return
		}
	}
}

// awaitPing returns shortly before the leader's next ping is due.
func (r *round) awaitPing() {
	r.t.Helper()
	touches, err := r.leader.LastTouches(time.Now())
	if err != nil {
		r.t.Fatal(err)
	}
	var last time.Time
	for _, touch := range touches {
		if touch.After(last) {
			last = touch
		}
	}
	begun := time.Now()
	if err := r.host(r.groups[0].server).Heal(); err != nil { // to see how long a cut takes
		r.t.Fatal(err)
	}
	due := last.Add(-time.Since(begun))
	for !due.After(time.Now()) {
		due = due.Add(r.pingInterval())
	}
	harness.Sleep(r.ctx, time.Until(due))
}

// pingInterval is the time between two pings of the leader.
func (r *round) pingInterval() time.Duration {
	interval := r.scale.tick / 2
	if r.fault.holdPings {
		interval += slack(r.timeout) * time.Duration(r.scale.late) / 100
	}
	return interval
}

// expiryTime is for how long servers may end a session that has expired, and notify the
// next client: a tick of the default length, because a machine is not faster where ticks
// are shorter.
const expiryTime = 2 * time.Second

// judge waits until all locks are granted anew, and compares. The fault began and was
// complete at the given times.
func (r *round) judge(begun, struck time.Time, late func() time.Duration, sum tally) {
	t := r.t
	t.Helper()
	grants := map[*holder]grant{}
	var last time.Time
	for _, g := range r.groups {
		for _, h := range g.holders {
			select {
			case grants[h] = <-h.granted:
			case <-r.ctx.Done():
				t.Fatalf("%s: %v", h.path, r.ctx.Err())
			}
			if grants[h].hold == nil {
				t.FailNow()
			}
			if grants[h].at.After(last) {
				last = grants[h].at
			}
		}
	}
	// The followers' clients' sessions end as if the clients had crashed: after the
	// timeout, which the leader rounds up to the next tick.
	stalled := late()
	limit := r.timeout + r.scale.tick + expiryTime + stalled
	if took := last.Sub(struck); !r.fault.otherLeader && !r.fault.stops && took > limit {
		t.Errorf("handed over after %v, more than the timeout, a tick, and %v: %v", took, expiryTime, limit)
	}
	leader := r.leader
	if r.fault.otherLeader {
		var err error
		if leader, err = r.cluster.WaitLeader(r.ctx, r.leader); err != nil {
			t.Fatal(err)
		}
	}
	touches, err := leader.LastTouches(last)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range r.groups {
		if err := <-g.taken; err != nil {
			t.Fatal(err)
		}
		overlap := time.Until(g.control.until(r.timeout))
		t.Logf("on the %s: the control counts on for %v after its successor has the lock; told that its session is over: %v", g.place, overlap, g.control.told())
		for i, h := range g.holders {
			key := g.place + " " + h.name
			if sum[key] == nil {
				sum[key] = &trials{margin: time.Hour, sure: time.Hour}
			}
			if i == 0 && overlap > 0 && !g.control.told() {
				sum[key].control++
			}
			r.compare(h, grants[h], begun, touches, stalled, sum[key])
		}
	}
}

// compare judges one trial.
func (r *round) compare(h *holder, next grant, begun time.Time, touches map[int64]time.Time, stalled time.Duration, sum *trials) {
	t := r.t
	t.Helper()
	if next.err == nil {
		sum.doubles++
		t.Errorf("%s, %s: two hold: granted %v after the fault, and the old holder has %v left", h.path, h.name, next.at.Sub(begun), h.hold.Remaining())
	} else if !errors.Is(next.err, zklock.ErrLost) || next.hold.Token() <= h.hold.Token() {
		t.Errorf("%s, %s: %v, tokens %#x and then %#x", h.path, h.name, next.err, h.hold.Token(), next.hold.Token())
	}
	late := <-h.late
	if h.early {
		t.Logf("%s: lost before the fault: not counted", h.path)
		return
	}
	touch, noted := touches[h.session]
	if !noted {
		t.Errorf("%s: the leader's log does not say that session %#x lives", h.path, h.session)
		return
	}
	margin, sure := next.at.Sub(late), touch.Add(r.timeout).Sub(late)
	if sure <= 0 {
		// Assumption A4 may fail on a busy machine: it stands still, or the leader's last
		// ping before the fault was late. The client is late by no more than that.
		silent := begun.Sub(touch)
		if stalled > slack(r.timeout) && -sure < stalled || -sure < silent-r.scale.tick/2-slack(r.timeout) {
			t.Logf("%s, %s: lost %v after the timeout; the machine stood still for %v, and the leader had heard nothing for %v: not counted",
				h.path, h.name, -sure, stalled, silent)
			return
		}
		t.Errorf("%s, %s: lost %v after the fault, which is %v after the timeout of its session", h.path, h.name, late.Sub(begun), -sure)
	}
	sum.count++
	sum.margin, sum.sure = min(sum.margin, margin), min(sum.sure, sure)
}

// host returns the host of a server.
func (r *round) host(s *harness.Server) *harness.Host { return r.network.Hosts[s.ID()-1] }

// heal undoes all faults.
func (r *round) heal() {
	if err := r.network.Heal(); err != nil {
		r.t.Error(err)
	}
}

// cutPlaces cuts the followers and observers of the groups off, with their clients, and
// the leader's clients off the leader.
func cutPlaces(r *round) (end func()) {
	r.t.Helper()
	var wg sync.WaitGroup
	for _, g := range r.groups {
		wg.Go(func() {
			cut := r.host(g.server).CutQuorum
			if g.place == onLeader {
				cut = r.host(g.server).CutClients
			}
			if err := cut(); err != nil {
				r.t.Error(err)
			}
		})
	}
	wg.Wait()
	return r.heal
}

// cutLeader cuts the leader off with its clients, which connect to it again and again.
func cutLeader(r *round) (end func()) {
	r.t.Helper()
	if err := r.host(r.leader).CutQuorum(); err != nil {
		r.t.Fatal(err)
	}
	return r.flap(func(context.Context) {})
}

// pauseAndCutLeader cuts the leader off and stops it until the others have another one.
// Its clients come back to a server that is silent, which then resumes their sessions.
func pauseAndCutLeader(r *round) (end func()) {
	r.t.Helper()
	if err := r.host(r.leader).CutQuorum(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.leader.Stop(); err != nil {
		r.t.Fatal(err)
	}
	return r.flap(func(flapping context.Context) {
		harness.Sleep(flapping, r.scale.pause-cutFlap)
		for _, g := range r.groups {
			g.link.cut()
		}
		harness.Sleep(flapping, cutFlap)
		if err := r.leader.Cont(); err != nil {
			r.t.Error(err)
		}
	})
}

// flap cuts the clients' connections again and again, after first has returned.
func (r *round) flap(first func(context.Context)) (end func()) {
	flapping, cancel := context.WithCancel(r.ctx)
	over := make(chan struct{})
	go func() { // ends with flapping
		defer close(over)
		first(flapping)
		for harness.Sleep(flapping, cutFlap) {
			for _, g := range r.groups {
				g.link.cut()
			}
		}
	}()
	return func() {
		cancel()
		<-over
		r.heal()
	}
}

// pauseLeaderAndCutOneWay stops the leader until some clients have sent the second
// request of a proof. When the leader continues, it answers this request, and hears
// nothing more of the follower, not even its answer to a ping.
func pauseLeaderAndCutOneWay(r *round) (end func()) {
	r.t.Helper()
	if err := r.leader.Stop(); err != nil {
		r.t.Fatal(err)
	}
	gap := r.scale.tick/2 + slack(r.timeout)*3/2
	harness.Sleep(r.ctx, gap+time.Duration(rand.Int64N(int64(gap/2))))
	for _, g := range r.groups {
		if err := r.host(r.leader).DropFrom(r.host(g.server)); err != nil {
			r.t.Error(err)
		}
	}
	if err := r.leader.Cont(); err != nil {
		r.t.Fatal(err)
	}
	return r.heal
}

// holdPings delays the leader's pings while all its other threads continue. The returned
// function stops that; it may be called again.
func (r *round) holdPings() (stop func()) {
	r.t.Helper()
	thread, err := r.leader.Thread("QuorumPeer[")
	if err != nil {
		r.t.Fatal(err)
	}
	holding, cancel := context.WithCancel(r.ctx)
	over := make(chan struct{})
	go func() { // ends with holding
		defer close(over)
		for next := time.Now(); ; next = next.Add(r.pingInterval()) {
			if err := thread.Suspend(); err != nil {
				r.t.Error(err)
				return
			}
			goes := harness.Sleep(holding, time.Until(next))
			if err := thread.Resume(); err != nil {
				r.t.Error(err)
				return
			}
			// A ping is due, and takes the thread a moment.
			if !goes || !harness.Sleep(holding, r.scale.tick/20) {
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-over
		_ = thread.Close()
	})
}
