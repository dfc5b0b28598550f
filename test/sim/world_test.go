package sim

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"
)

// A World is one history. Make it with [New] and run it once.
type World struct {
	cfg      Config
	rng      *rand.Rand
	now      time.Duration // true time
	agenda   agenda
	hist     history
	script   []fault
	err      error
	rule     string // what the first failure broke
	done     bool
	server   *server
	machines []*machine
	locks    []*lock
	// operated are the lock znodes that an operator took away, by path, by path
	// and czxid, and the records that went with them.
	operated map[string]bool
	revoked  map[string]bool // the znodes that a release request was written into
	// closedByOperator are the sessions that an operator has asked the server to close.
	closedByOperator map[int64]bool
	records          map[string]*record
	strays           []string // znodes that are no contenders, which no client may delete
	// disturbed is when a fault last began, ended, or had an effect.
	disturbed time.Duration
	healing   bool
	healedAt  time.Duration
	reached   time.Duration // when, healed, all clients were connected; 0: not yet
	closing   bool
	Stats     Stats
	Trace     io.Writer // where every request, answer and event is written; nil for nowhere
}

// Stats count what happened in a world, or in several. A run that did too little
// proves nothing, so tests look at them.
type Stats struct {
	Seeds, Events, Acquired, Failed, Lost, Verified, Faults int
	Restarts, Expired, Reconnects, Records, Snapshots       int
	// Guarded counts the verifies with operations, Revoked the holds that received a
	// release request, Delayed the grants after a holder crashed, KeptOff the acquires
	// that waited for a lock delay, Quarrels those that found another number of permits,
	// Foreign the readers that found entries that do not wait for them, Handed the entries
	// ahead of a grant that its own client had given up, and Renewed the transactions that
	// released one entry and created another.
	// Alone counts how often a client came to use a lock alone, and watched its parent.
	Alone int
	// Marked counts the releases that told the successor that nothing is ahead, and Told the
	// events by which clients learned so.
	Marked, Told                                                                       int
	Handed, Renewed, Guarded, Downgraded, Revoked, Delayed, KeptOff, Quarrels, Foreign int
	// Exhausted counts the acquires refused because the sequence numbers are used up,
	// Forbidden those refused without permission, Requests the requests to the server.
	Exhausted, Forbidden, Requests int
	// Joined are the requests that shared a transaction with others, Undone those
	// that were not done through the fault of another.
	Joined, Undone int
	Simulated      time.Duration
	ByFault        [faultKinds]int
	ByKind         [claimKinds]int // of those acquired
}

// Add adds another world's figures.
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
	s.Joined += o.Joined
	s.Undone += o.Undone
	s.Guarded += o.Guarded
	s.Downgraded += o.Downgraded
	s.Revoked += o.Revoked
	s.Delayed += o.Delayed
	s.Handed += o.Handed
	s.Renewed += o.Renewed
	s.Marked += o.Marked
	s.Alone += o.Alone
	s.Told += o.Told
	s.KeptOff += o.KeptOff
	s.Quarrels += o.Quarrels
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

// New makes a world.
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

// Run lives the whole history and returns what it broke, nil for nothing.
func (w *World) Run() error {
	told := w.cfg
	told.Only, told.Faults = nil, 0 // so that a script and its failing part give one history
	w.note("world %+v", told)
	w.server.boot()
	for _, m := range w.machines {
		w.after(w.upTo(time.Second), m.start)
	}
	w.planScript()
	// Whatever happens, it ends: first the faults, then what they left.
	w.agenda.add(w.cfg.Faults, w.heal)
	w.runUntil(func() bool { return w.done })
	w.Stats.Simulated = w.now
	w.checkFloors()
	return w.err
}

// ErrEndless is the end of a history that came to none by itself, with no verdict.
var ErrEndless = errors.New("no end in sight")

// mostEvents is far more than any history has.
const mostEvents = 20_000_000

// runUntil lets events happen until stop says so, or something is broken.
func (w *World) runUntil(stop func() bool) {
	for w.err == nil && !stop() {
		e, ok := w.agenda.next()
		if !ok {
			w.fail("nothing is left to happen")
			return
		}
		w.now = e.at
		if w.Stats.Events++; w.Stats.Events > mostEvents {
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

// around draws a duration with this mean: mostly short, sometimes long.
func (w *World) around(mean time.Duration) time.Duration {
	return time.Duration(min(w.rng.ExpFloat64(), 8) * float64(mean))
}

// oneIn is true once in n times.
func (w *World) oneIn(n int) bool { return w.rng.IntN(n) == 0 }

// source lets the world's chance be read as bytes.
type source struct{ rng *rand.Rand }

func (s source) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(s.rng.Uint32())
	}
	return len(p), nil
}
