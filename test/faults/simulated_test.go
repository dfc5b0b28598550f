package faults

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/test/model"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

var simulations = flag.Int("faults.simulations", 2, "how many runs TestSimulatedNetwork makes for each kind of lock")

// The clients of a simulation. The session timeout is on the bubble's clock.
const (
	simulatedTimeout = 4 * time.Second
	simulatedTick    = 2 * time.Second
	simulatedClients = 4 // each with two workloads
)

// directDialer returns a function that connects to a server directly, without the relay and its
// faults.
func directDialer(srv *zktest.Server) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if server := srv.Server(); server != nil {
			return server.DialContext(ctx, network, addr)
		}
		return nil, net.ErrClosed // the server is down
	}
}

// A simulation runs workloads of one kind of lock on a simulated network.
type simulation struct {
	kind    Kind
	round   *round
	rec     *model.Recorder
	options zklock.Options
	guarded *guardAnswers
	hooks   *hookLog
	revoked atomic.Int64 // release requests that arrived
	closed  atomic.Int64 // clients that were closed while they were in use
}

// simulate runs workloads of a kind in a bubble and injects faults. It returns the history,
// and an error if guarded writes are in a wrong order or do not match their answers.
func simulate(t *testing.T, kind Kind, seed uint64) (h *model.History, sum Totals, wrong error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		server := &Server{
			Name: "simulated", Addr: srv.Servers(), DialContext: directDialer(srv), Timeout: simulatedTimeout, Tick: simulatedTick, Rounds: rounds{pause: simulatedTimeout / 4},
			Restart: func(context.Context) error {
				srv.Crash()
				srv.Restart(t)
				return nil
			},
			Log: func() string { return "none" },
		}
		r := NewRun(t, server, seed, t.TempDir())
		for _, f := range r.faults {
			if f.name == "operator closes a session" || f.name == "partition" {
				r.faults = append(r.faults, f, f, f) // these faults end most holds
			}
		}
		r.script = NewScript(seed, faultNames(r.faults))
		rec := model.NewRecorder(t.Name(), seed)
		s := &simulation{
			kind: kind, rec: rec, guarded: newGuardAnswers(), hooks: newHookLog(),
			options: zklock.Options{SessionTimeout: simulatedTimeout, DialContext: srv.DialContext, AllTimeout: -1},
			round: &round{
				tb: t, server: server, operator: r.operator, kinds: []Kind{kind}, seed: seed, relays: []*zktest.Relay{&srv.Relay},
				resource: newResource(), logs: map[string]*log{kind.Name: {rec: rec}},
			},
		}
		if seed%2 == 1 {
			s.options.SyncHeartbeat, s.options.ServerTick, s.options.PersistentParents = true, simulatedTimeout/8, true
		}
		ctx := t.Context()
		if err := r.operator.prepareGuard(ctx, s.round.kinds); err != nil {
			t.Fatal(err)
		}
		working, stop := context.WithCancel(ctx)
		defer stop()
		rested := make(chan struct{})
		var all, resting sync.WaitGroup
		for i := range simulatedClients {
			resting.Add(1)
			all.Go(func() { // ends after rested, which is closed when the test ends
				s.client(working, i, rand.New(rand.NewPCG(seed, uint64(i))), &resting, rested)
			})
		}
		for range 4 * len(r.faults) {
			r.step(ctx, s.round)
		}
		s.round.heal(ctx)
		harness.Sleep(ctx, simulatedTimeout/2)
		stop()
		resting.Wait()
		written, err := r.operator.checkGuarded(ctx, kind)
		if wrong = err; err == nil {
			wrong = s.guarded.check(written)
		}
		for _, n := range written {
			r.Totals.Guarded += n
		}
		if kind.Delayed {
			if err := acquireOnce(ctx, server, kind); err != nil {
				t.Error(err)
			}
		}
		if err := r.operator.waitEmpty(ctx, s.round.roots(), 2*simulatedTimeout+4*simulatedTick); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		close(rested)
		all.Wait()
		s.hooks.check(t)
		if s.guarded.refused < 5 && kind.canGuard() || s.closed.Load() < 5 || s.revoked.Load() < 5 {
			t.Errorf("seed %d: too little happened: %d guarded writes refused, %d clients closed in use, %d release requests", seed, s.guarded.refused, s.closed.Load(), s.revoked.Load())
		}
		h, sum = rec.History(), r.Totals
	})
	return h, sum, wrong
}

// client runs two workloads over one zklock client after another until ctx is done. It closes
// every second client while the workloads use it. The last client stays open until rested is
// closed, so that forgotten entries stay on the server.
func (s *simulation) client(ctx context.Context, number int, rng *rand.Rand, resting *sync.WaitGroup, rested <-chan struct{}) {
	for n := 0; ; n++ {
		c, err := s.dial(ctx, number)
		if err != nil { // because of a fault
			if harness.Sleep(ctx, simulatedTimeout/8) {
				continue
			}
			resting.Done()
			return
		}
		var closing atomic.Bool
		session, cancel := context.WithTimeout(ctx, time.Duration(2+rng.IntN(8))*simulatedTimeout)
		var all sync.WaitGroup
		for range 2 {
			w := &workload{
				kind: s.kind, client: fmt.Sprintf("client %d", number), locks: c.locks, rec: s.rec, rng: rand.New(rand.NewPCG(rng.Uint64(), 0)),
				timeout: simulatedTimeout, pace: simulatedTimeout / 8, closing: &closing, guarded: s.guarded,
				write: func(token int64, paths []string) (int64, error) { return s.round.resource.Write(token, paths...), nil },
			}
			all.Go(func() { // ends after session and its last acquire
				if err := w.run(session); err != nil {
					s.round.tb.Error(err)
				}
				s.revoked.Add(w.revoked.Load())
			})
		}
		<-session.Done()
		if n%2 == 0 && ctx.Err() == nil {
			closing.Store(true)
			s.closed.Add(1)
			s.close(c)
		}
		all.Wait()
		cancel()
		if ctx.Err() != nil {
			resting.Done()
			<-rested
			s.close(c)
			return
		}
		s.close(c)
	}
}

// simulatedClient is a zklock client, and its session if the test dialed it.
type simulatedClient struct {
	locks   *zklock.Client
	session *zk.Client
}

// dial connects a client. Clients with odd numbers use a session that they do not own.
func (s *simulation) dial(ctx context.Context, number int) (c simulatedClient, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialWait)
	defer cancel()
	o := s.options
	s.hooks.set(&o)
	if number%2 == 0 {
		c.locks, err = s.kind.dial(ctx, s.round.server.Addr, o)
		return c, err
	}
	if c.session, err = zk.Dial(ctx, s.round.server.Addr, &zk.Options{SessionTimeout: o.SessionTimeout, DialContext: o.DialContext}); err != nil {
		return c, err
	}
	if s.kind.Options != nil {
		s.kind.Options(&o)
	}
	c.locks = zklock.New(c.session, &o)
	return c, nil
}

// close closes a client and its session. The history records that an operator ends the
// session.
func (s *simulation) close(c simulatedClient) {
	done := s.rec.Expire(c.locks.Health().Session)
	_ = c.locks.Close() // without a connection, the server cannot confirm the close
	if c.session != nil {
		_ = c.session.Close()
	}
	done(nil)
}

// A hookLog has the calls of all clients' hooks for each acquire.
type hookLog struct {
	mu      sync.Mutex // guards what follows
	clients int
	state   map[string]string
	errs    []error
	count   map[string]int
}

func newHookLog() *hookLog { return &hookLog{state: map[string]string{}, count: map[string]int{}} }

// set makes the hooks of one more client report to the log.
func (l *hookLog) set(o *zklock.Options) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clients++
	name := fmt.Sprintf("client %d", l.clients)
	hook := func(from, to string) func(zklock.Event) {
		return func(e zklock.Event) { l.add(fmt.Sprintf("%s, acquire %d", name, e.Attempt), from, to) }
	}
	o.OnWait, o.OnAcquire, o.OnFail = hook("", "waits"), hook("", "holds"), hook("", "failed")
	o.OnRelease, o.OnLost = hook("holds", "has ended"), hook("holds", "has ended")
}

// add adds a call of a hook. An acquire may wait several times before it holds or fails. A
// hold ends once.
func (l *hookLog) add(acquire, from, to string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if was := l.state[acquire]; was != from && !(from == "" && was == "waits") {
		l.errs = append(l.errs, fmt.Errorf("hooks: %s %s, and %q before", acquire, to, was))
	}
	l.state[acquire] = to
	l.count[to]++
}

// check checks after the close of all clients that each acquire has ended.
func (l *hookLog) check(t *testing.T) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	for acquire, state := range l.state {
		if state != "has ended" && state != "failed" {
			l.errs = append(l.errs, fmt.Errorf("hooks: %s %s at the end", acquire, state))
		}
	}
	for i, err := range l.errs {
		if i < 10 {
			t.Error(err)
		}
	}
	if l.count["holds"] < 50 || l.count["failed"] < 20 {
		t.Errorf("hooks: too little happened: %v", l.count)
	}
}

// saveHistory writes a history to the test's artifacts.
func saveHistory(t *testing.T, h *model.History) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.ArtifactDir(), fmt.Sprintf("history-%d.jsonl", h.Seed)))
	if err != nil {
		t.Error(err)
		return
	}
	if err := h.Write(f); err != nil {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("the history is in %s", f.Name())
}

// TestSimulatedNetwork checks under all faults that the histories of clients satisfy the
// models of each kind, and that no entries are left.
func TestSimulatedNetwork(t *testing.T) {
	t.Parallel()
	for _, kind := range append(All(), handoff()) {
		t.Run(kind.Name, func(t *testing.T) {
			for seed := range uint64(*simulations) {
				h, sum, err := simulate(t, kind, seed)
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				v := judge(kind, h, simulatedTimeout, 0)
				v.report(t, fmt.Sprintf("seed %d", seed))
				sum.Add(v)
				t.Logf("seed %d: %s", seed, &sum)
				if len(v.Violations) > 0 {
					saveHistory(t, h)
				}
				floor := model.Floor{Acquired: 200, Waited: 100, Refused: 40, Cancelled: 40, Lost: 5, Expired: 5, Tampered: 10}
				if kind.Reenter != nil && kind.Ways != 1 {
					floor.Reentered = 30
				}
				if kind.Delayed {
					floor.Lost, floor.Expired = 2, 2 // an operator finds fewer sessions
				}
				if kind.Writer != nil {
					floor.Downgraded = 10
				}
				if lack := v.Done.Below(floor); len(lack) > 0 {
					t.Errorf("seed %d: too little happened: %q", seed, lack)
				}
				if len(sum.Faults) < 20 || !kind.Unguarded && kind.canGuard() && sum.Guarded < 20 {
					t.Errorf("seed %d: %d kinds of faults, %d guarded writes", seed, len(sum.Faults), sum.Guarded)
				}
			}
		})
	}
}

// TestSimulationFindsLocksThatDoNotLock checks that the history and the guarded writes detect
// a false lock.
func TestSimulationFindsLocksThatDoNotLock(t *testing.T) {
	t.Parallel()
	for _, kind := range falseLocks() {
		t.Run(kind.Name, func(t *testing.T) {
			h, _, err := simulate(t, kind, 1)
			if err == nil && kind.canGuard() {
				t.Error("the guarded writes are in order")
			}
			for _, m := range kind.Models {
				r := model.Check(h, model.Rules{Model: m, Limit: time.Second})
				if len(r.Violations) == 0 {
					t.Errorf("%s explains the history", m.Name)
				}
			}
		})
	}
}
