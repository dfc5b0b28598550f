package sim

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// A World is one history. Create it with [New] and run it once.
type World struct {
	cfg      Config
	rng      *rand.Rand
	now      time.Duration // true time
	agenda   agenda
	hist     history
	script   []fault
	err      error
	rule     string // the first broken rule
	done     bool
	server   *server
	machines []*machine
	locks    []*lock
	// operated has the entries that an operator deleted, by path and by path and czxid, and
	// the paths of their records.
	operated map[string]bool
	revoked  map[string]bool // entries with a release request
	// closedByOperator has the sessions that an operator has requested to close.
	closedByOperator map[int64]bool
	records          map[string]*record
	strays           []string // znodes that are not entries, which no client may delete
	// disturbed is when a fault last began, ended, or had an effect.
	disturbed time.Duration
	healing   bool
	healedAt  time.Duration
	reached   time.Duration // when all clients were connected after the faults, or 0
	closing   bool
	Stats     Stats
	Trace     io.Writer // receives every request, answer, and event; may be nil
}

// Stats counts what happened in one or several worlds.
type Stats struct {
	Seeds, Events, Acquired, Failed, Lost, Verified, Faults int
	Restarts, Expired, Reconnects, Records, Snapshots       int
	// Guarded counts verifies with operations, Revoked release requests, Delayed grants after a
	// holder crashed, DelayWaits acquires that waited for a lock delay, SizeConflicts acquires
	// that found another number of permits, Foreign readers that found entries that do not wait
	// for readers, GivenUp canceled entries of the same client ahead of a grant, and Renewed
	// transactions that released one entry and created another. Alone counts how often a client
	// became the only user of a lock and watched its parent.
	Alone int
	// Marked counts releases that mark the successor, and MarkEvents the events of these marks.
	Marked, MarkEvents                                                                          int
	GivenUp, Renewed, Guarded, Downgraded, Revoked, Delayed, DelayWaits, SizeConflicts, Foreign int
	// Exhausted counts acquires that failed because the sequence numbers are exhausted,
	// Forbidden acquires without permission, Requests the requests to the server.
	Exhausted, Forbidden, Requests int
	// Batched counts batched requests, Undone requests that were not applied because another
	// request of the batch failed.
	Batched, Undone int
	Simulated       time.Duration
	ByFault         [faultKinds]int
	ByKind          [claimKinds]int // acquired
}

// Add adds the counts of another world.
func (s *Stats) Add(o *Stats) {
	s.Seeds++
	s.Events += o.Events
	s.Acquired += o.Acquired
	s.Failed += o.Failed
	s.Lost += o.Lost
	s.Verified += o.Verified
	s.Faults += o.Faults
	s.Restarts += o.Restarts
	s.Expired += o.Expired
	s.Reconnects += o.Reconnects
	s.Records += o.Records
	s.Snapshots += o.Snapshots
	s.Simulated += o.Simulated
	s.Batched += o.Batched
	s.Undone += o.Undone
	s.Guarded += o.Guarded
	s.Downgraded += o.Downgraded
	s.Revoked += o.Revoked
	s.Delayed += o.Delayed
	s.GivenUp += o.GivenUp
	s.Renewed += o.Renewed
	s.Marked += o.Marked
	s.Alone += o.Alone
	s.MarkEvents += o.MarkEvents
	s.DelayWaits += o.DelayWaits
	s.SizeConflicts += o.SizeConflicts
	s.Foreign += o.Foreign
	s.Exhausted += o.Exhausted
	s.Forbidden += o.Forbidden
	s.Requests += o.Requests
	for i := range s.ByKind {
		s.ByKind[i] += o.ByKind[i]
	}
	for i := range s.ByFault {
		s.ByFault[i] += o.ByFault[i]
	}
}

// New returns a new world.
func New(cfg Config) *World {
	w := &World{
		cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x776f726c64+cfg.Salt<<40)), hist: newHistory(),
		operated: map[string]bool{}, revoked: map[string]bool{}, closedByOperator: map[int64]bool{}, records: map[string]*record{},
	}
	for i, l := range cfg.Locks {
		w.locks = append(w.locks, newLock(l, i))
	}
	w.script = drawScript(&w.cfg)
	w.server = newServer(w)
	for i := range cfg.Clients {
		w.machines = append(w.machines, newMachine(w, i))
	}
	return w
}

// Run runs the complete history and returns the first failure, or nil.
func (w *World) Run() error {
	shown := w.cfg
	shown.Only, shown.Faults = nil, 0 // so that a script and its failing part give one history
	w.note("world %+v", shown)
	w.server.boot()
	for _, m := range w.machines {
		w.after(w.upTo(time.Second), m.start)
	}
	w.planScript()
	w.agenda.add(w.cfg.Faults, w.heal)
	w.runUntil(func() bool { return w.done })
	w.Stats.Simulated = w.now
	w.checkMinimum()
	return w.err
}

// ErrEndless reports a history with too many events. It has no result.
var ErrEndless = errors.New("no end in sight")

// maxEvents is far more than the number of events of any history.
const maxEvents = 20_000_000

// runUntil runs events until stop returns true or a rule is broken.
func (w *World) runUntil(stop func() bool) {
	for w.err == nil && !stop() {
		e, ok := w.agenda.next()
		if !ok {
			w.fail("nothing is left to happen")
			return
		}
		w.now = e.at
		if w.Stats.Events++; w.Stats.Events > maxEvents {
			w.err = fmt.Errorf("sim: seed %d at %.6f s: %w", w.cfg.Seed, w.now.Seconds(), ErrEndless)
			return
		}
		e.run()
	}
}

// upTo draws a duration below d.
func (w *World) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.rng.Int64N(int64(d)))
}

// around draws an exponentially distributed duration.
func (w *World) around(mean time.Duration) time.Duration {
	return time.Duration(min(w.rng.ExpFloat64(), 8) * float64(mean))
}

// oneIn returns true with probability 1/n.
func (w *World) oneIn(n int) bool { return w.rng.IntN(n) == 0 }

// source is an io.Reader of random bytes.
type source struct{ rng *rand.Rand }

func (s source) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.rng.Uint32())
	}
	return len(p), nil
}
