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
	cutTrials      = flag.Int("locks.trials", 0, "the number of holds for each fault of TestPartitionEndsHoldBeforeGrant, with ticks of 2 s; 0 uses shorter ticks")
	cutShortTrials = flag.Int("locks.short-trials", 1, "the same number with shorter ticks")
)

// A scale has the times of the servers and sessions of TestPartitionEndsHoldBeforeGrant, and
// the number of holders at a time.
type scale struct {
	tick    time.Duration
	sync    int // the number of ticks for which a server continues without the others
	timeout time.Duration
	// pause is how long a leader is stopped, until the others have elected another one. It is
	// shorter than the session timeout pausedTimeout. Otherwise, the leader would expire the
	// sessions itself when it continues.
	pause, pausedTimeout time.Duration
	late                 int // the delay of holdPings, in percent of the slack; the rest is for the machine
	writes, syncs        int // the number of holders with each kind of heartbeat
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

// The tick and the timeout of sessions shorter than two ticks.
const (
	longTick     = 2 * time.Second
	shortSession = 2 * time.Second
)

// cutFlap is the time between two cuts of the connections to a leader that is cut off. After
// each cut, the leader resumes the sessions.
const cutFlap = 400 * time.Millisecond

// slack is the largest delay of a leader's pings. After a pause, the leader pings within half of
// it (assumption A4).
func slack(timeout time.Duration) time.Duration { return timeout / 32 }

// A fault prevents requests of some clients from reaching the leader that decides about their
// sessions.
type fault struct {
	name   string
	places []string // the servers to which the holders are connected
	// otherLeader is set if the fault ends with another leader. stops is set if the fault stops
	// a server, so that a heartbeat by sync is no proof (assumption A5).
	otherLeader, stops bool
	// holdPings is set if the leader's pings are late by as much as assumption A4 permits.
	holdPings bool
	inject    func(r *round) (end func())
}

// The servers of holders.
const (
	onFollower = "follower"
	onObserver = "observer"
	onLeader   = "leader"
)

// TestPartitionEndsHoldBeforeGrant checks that, if the requests of a client do not reach the
// leader, its hold is lost before the leader expires its session. Some servers continue to
// answer such a client. So a client that counts the timeout from its pings holds the lock
// together with its successor.
//
// The servers expire sessions at multiples of the tick, up to a tick after the timeout. So the
// test also reads in the leader's log when the timeout began.
func TestPartitionEndsHoldBeforeGrant(t *testing.T) {
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
			{name: "follower", places: []string{onFollower, onObserver, onLeader}, inject: cutPlaces},
			{name: "paused leader", places: []string{onLeader}, otherLeader: true, stops: true, inject: pauseAndCutLeader},
		}},
		{"local sessions", times, map[string]string{"localSessionsEnabled": "true", "localSessionsUpgradingEnabled": "true"}, []fault{
			{name: "follower", places: []string{onFollower}, inject: cutPlaces},
			{name: "late pings", places: []string{onFollower}, holdPings: true, stops: true, inject: cutPlaces},
			{name: "leader", places: []string{onLeader}, otherLeader: true, inject: cutLeader},
			{name: "leader paused, then cut", places: []string{onFollower}, stops: true, inject: pauseLeaderAndCutOneWay},
		}},
		{"short sessions", short, map[string]string{"minSessionTimeout": fmt.Sprint(longTick.Milliseconds())}, []fault{
			{name: "follower", places: []string{onFollower}, inject: cutPlaces},
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
			s := &cutOffTest{scale: ensemble.times, network: n, cluster: harness.StartEnsembleAt(t, places, harness.ServerConfig{
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
							t.Fatal("the machine is too busy for the trials")
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

// trials has the results of some trials.
type trials struct {
	count   int
	doubles int           // trials in which two clients held the lock at the same time
	margin  time.Duration // the smallest time from a loss to the next grant
	sure    time.Duration // the smallest time from a loss to the session timeout in the leader's log
	control int           // how often a pinger held the lock together with its successor
}

// fewest returns the smallest number of trials with writes at any place.
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

// lines returns the totals, one line for each place and heartbeat.
func (sum tally) lines(ensemble string, f fault) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		s := sum[name]
		all = append(all, fmt.Sprintf("cut-off totals: servers=%q fault=%q holders=%q trials=%d double-holds=%d smallest-margin=%v without-rounding=%v control-double-holds=%d",
			ensemble, f.name, name, s.count, s.doubles, s.margin.Round(time.Millisecond), s.sure.Round(time.Millisecond), s.control))
	}
	return all
}

// cutOffTest is an ensemble on which rounds of trials run.
type cutOffTest struct {
	scale   scale
	network *harness.Network
	cluster *harness.Ensemble
	rounds  int // the number of rounds
}

// A round injects one fault into many holds at once.
type round struct {
	*cutOffTest
	t       *testing.T
	ctx     context.Context
	fault   fault
	timeout time.Duration
	groups  []*group
	leader  *harness.Server
}

// A group has the holders at one place.
type group struct {
	place   string
	server  *harness.Server
	link    *clientNetwork
	holders []*holder
	control *pinger
	taken   chan error // receives the result of the control's successor
}

// try runs one round.
func (s *cutOffTest) try(t *testing.T, f fault, sum tally) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	s.rounds++
	r := &round{cutOffTest: s, t: t, ctx: ctx, fault: f, timeout: s.scale.timeout}
	if f.otherLeader && f.stops {
		r.timeout = s.scale.pausedTimeout
	}
	other := r.servers()
	stopHolding := func() {}
	if f.holdPings {
		stopHolding = r.holdPings()
		defer stopHolding()
	}
	waits, successor, closeAll := r.connect(other)
	defer closeAll()
	for _, g := range r.groups {
		r.begin(g, waits, successor)
		defer g.control.stop()
	}
	// Inject the fault at any time between two heartbeats, right after one has proven a deadline,
	// or before a ping of the leader.
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
	end := f.inject(r)
	injected := time.Now()
	stopHolding()
	for _, g := range r.groups {
		go func() { g.taken <- succeed(ctx, successor, g.control.path) }() // ends with the lock, or ctx
	}
	ended := false
	defer func() {
		if !ended {
			end()
		}
	}()
	r.judge(begun, injected, late, sum)
	// Wait until the server that was cut off has noticed.
	harness.Sleep(ctx, time.Until(begun.Add(time.Duration(s.scale.sync+1)*s.scale.tick)))
	end()
	ended = true
}

// servers finds the servers of the groups, and returns a server without faults.
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
		r.groups = append(r.groups, &group{place: place, server: at[place], link: &clientNetwork{}, taken: make(chan error, 1)})
	}
	return followers[1]
}

// connect connects a client that waits for all locks, and a client that reads the holders'
// znodes and is the successor of the controls. The returned function closes both.
func (r *round) connect(other *harness.Server) (waits *zklock.Client, successor *zk.Client, closeAll func()) {
	r.t.Helper()
	// These sessions must survive a busy machine.
	long := 20 * r.scale.tick
	waits = dial(r.t, r.ctx, other.Addr(), &zklock.Options{SessionTimeout: long, ServerTick: r.scale.tick})
	successor, err := zk.Dial(r.ctx, other.Addr(), &zk.Options{SessionTimeout: long})
	if err != nil {
		r.t.Fatal(err)
	}
	return waits, successor, func() { _, _ = waits.Close(), successor.Close() }
}

// begin makes a group's holders and its control acquire their locks.
func (r *round) begin(g *group, waits *zklock.Client, successor *zk.Client) {
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
			r.t.Cleanup(func() { _ = holds.Close() }) // the session has ended
			if err := h.acquire(r.t, r.ctx, holds, waits); err != nil {
				r.t.Error(err)
				return
			}
			if err := r.queued(waits, h); err != nil {
				r.t.Error(err)
				return
			}
			stat, found, err := successor.Exists(r.ctx, h.hold.Node())
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
	r.t.Cleanup(func() { _ = control.Close() }) // the session has ended
	g.control = newPinger(r.t, r.ctx, control, fmt.Sprintf("/control-%d-%s", r.rounds, g.place))
}

// queued waits until the next client waits for the lock, or the hold is lost, which happens to
// short sessions on a busy machine.
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
	if err := r.host(r.groups[0].server).Heal(); err != nil { // measures how long a cut takes
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

// expiryTime bounds the time in which servers close an expired session and notify the next
// client. It does not depend on the tick, because shorter ticks do not make the machine faster.
const expiryTime = 2 * time.Second

// judge waits until all locks are granted again, and checks each trial. The fault began and was
// complete at the given times.
func (r *round) judge(begun, injected time.Time, late func() time.Duration, sum tally) {
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
	// The sessions of the followers' clients expire like those of crashed clients: after the
	// timeout, which the leader rounds up to the next tick.
	stalled := late()
	limit := r.timeout + r.scale.tick + expiryTime + stalled
	if took := last.Sub(injected); !r.fault.otherLeader && !r.fault.stops && took > limit {
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
		t.Logf("on the %s: the control assumes that it holds for %v after its successor acquires the lock; received the end of its session: %v", g.place, overlap, g.control.told())
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

// compare checks one trial.
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
		t.Errorf("%s: session %#x is not in the leader's log", h.path, h.session)
		return
	}
	margin, sure := next.at.Sub(late), touch.Add(r.timeout).Sub(late)
	if sure <= 0 {
		// Assumption A4 may not be true on a busy machine: it stalls, or the leader's last ping
		// before the fault was late. The client may be late by the same time.
		silent := begun.Sub(touch)
		if stalled > slack(r.timeout) && -sure < stalled || -sure < silent-r.scale.tick/2-slack(r.timeout) {
			t.Logf("%s, %s: lost %v after the timeout; the machine stalled for %v, and the leader had received nothing for %v: not counted",
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

// heal ends all faults.
func (r *round) heal() {
	if err := r.network.Heal(); err != nil {
		r.t.Error(err)
	}
}

// cutPlaces cuts the followers and observers of the groups off, together with their clients,
// and cuts the leader's clients off the leader.
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

// cutLeader cuts the leader off together with its clients, which reconnect repeatedly.
func cutLeader(r *round) (end func()) {
	r.t.Helper()
	if err := r.host(r.leader).CutQuorum(); err != nil {
		r.t.Fatal(err)
	}
	return r.flap(func(context.Context) {})
}

// pauseAndCutLeader cuts the leader off and stops it until the others have elected another one.
// Its clients reconnect to the silent server, which resumes their sessions when it continues.
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

// flap cuts the clients' connections repeatedly, after first has returned.
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

// pauseLeaderAndCutOneWay stops the leader until some clients have sent the second request of a
// proof. When the leader continues, it answers this request, and receives nothing more from the
// follower, not even its answer to a ping.
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

// holdPings delays the leader's pings while its other threads continue. The returned function
// stops that; it may be called several times.
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
			// Let the thread send the ping.
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
