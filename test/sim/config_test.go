package sim

import (
	"math/rand/v2"
	"time"
)

// Config configures a world. [NewConfig] draws one.
type Config struct {
	Seed uint64
	// Faults is how long faults happen. After that, all faults end.
	Faults time.Duration
	// Clients is the number of machines with one client process each. Actors is the number
	// of goroutines in each process.
	Clients, Actors int
	Locks           []LockConfig
	// Several is the percentage of claims of several locks. If Ordered is set, these claims
	// take the locks one after another, not all queues at once. Both in one world could
	// deadlock.
	Several int
	Ordered bool
	// Unordered makes claims take the locks in any order, which deadlocks.
	Unordered bool
	// Ticking makes the timer of the lock core expire after each notice of the session, not
	// after one in fifty.
	Ticking bool
	// StoppedClock stops the clock of a process together with the process, which breaks the
	// assumption about clocks.
	StoppedClock bool
	// NoCancel disables tries and contexts that end.
	NoCancel bool
	// Repeats makes an actor sometimes acquire one lock many times in a row, so that no other
	// client uses it.
	Repeats bool
	// BatchWindow is the number of unanswered requests from which on a client batches
	// requests.
	BatchWindow int
	// OneActor is set if there is one actor and its process never ends. Then no other client
	// holds a lock.
	OneActor bool
	// LockDelay is how long acquires wait before they take a lock whose holder crashed.
	LockDelay time.Duration
	// Timeout is the session timeout.
	Timeout time.Duration
	// Think is the mean time between two acquires of an actor, Between the mean time between
	// two faults.
	Think, Between time.Duration
	// Delay is the minimum delay of a link without faults, Spread the maximum addition, and
	// Sync the longest sync of the disk without faults.
	Delay, Spread, Sync time.Duration
	// Drift is the largest difference between clock rates, in millionths.
	Drift int64
	// Operators makes operators delete znodes and end sessions.
	Operators bool
	// Syncs makes heartbeats syncs if sessions are long enough.
	Syncs bool
	// Jumps makes sequence numbers sometimes jump near their limit.
	Jumps bool
	// InitialZxid is the transaction id before the first.
	InitialZxid int64
	// Persistent makes the clients create persistent parents, not containers.
	Persistent bool
	// Inherits makes the clients read the ACLs of parents before they create entries.
	Inherits bool
	// Sweep is how often the server collects containers.
	Sweep time.Duration
	// SnapshotEvery is the number of records between two snapshots of the server.
	SnapshotEvery int
	// NoFaults omits all faults except those that a test injects.
	NoFaults bool
	// Only has the numbers of the faults of the script that happen; nil means all.
	Only []int
	// Salt changes all random choices that are not faults.
	Salt uint64
}

// NewConfig draws the world of a seed.
func NewConfig(seed uint64) Config {
	c, by := draw(seed)
	c.stretch(by)
	return c
}

// draw draws the world of a seed, and the factor for stretch.
func draw(seed uint64) (c Config, by int) {
	r := rand.New(rand.NewPCG(seed, 0x636f6e666967))
	ms := func(from, to int) time.Duration {
		return time.Duration(from+r.IntN(to-from+1)) * time.Millisecond
	}
	c = Config{
		Seed:          seed,
		Faults:        ms(200_000, 660_000),
		Clients:       2 + r.IntN(5),
		Actors:        1 + r.IntN(3),
		Timeout:       ms(1000, 4000),
		Think:         ms(100, 2000),
		Delay:         time.Duration(50+r.IntN(2000)) * time.Microsecond,
		Sync:          ms(0, 10),
		Drift:         10_000,
		Operators:     r.IntN(4) == 0,
		Persistent:    r.IntN(4) == 0,
		Sweep:         ms(200, 5000),
		SnapshotEvery: 50 + r.IntN(2000),
	}
	// With fewer clients and longer timeouts, faults are rarer. Otherwise clients would
	// acquire almost nothing.
	c.Between = c.Timeout * time.Duration(25+r.IntN(125)) / 100 * 6 / time.Duration(c.Clients)
	c.Between = min(c.Between, c.Faults/40)
	c.Spread = c.Delay * time.Duration(1+r.IntN(10))
	c.Locks = drawLocks(r, 1+r.IntN(4))
	if r.IntN(2) == 0 {
		c.Several, c.Ordered = 10+r.IntN(60), r.IntN(4) == 0
	}
	if r.IntN(2) == 0 {
		c.LockDelay = ms(50, 1500)
	}
	c.NoCancel = r.IntN(4) == 0
	c.Drift = []int64{10_000, 10_000, 10_000, 50_000, 0}[r.IntN(5)]
	c.Jumps = r.IntN(6) == 0
	if r.IntN(4) == 0 {
		c.InitialZxid = int64(r.IntN(4))<<32 | 1<<32 - 1 - r.Int64N(5000) // the low word soon overflows
	}
	by = r.IntN(5)
	c.Syncs = r.IntN(4) == 0
	c.BatchWindow = 1 + r.IntN(4)
	c.Inherits = r.IntN(4) == 0
	c.Repeats = r.IntN(4) == 0
	return c, by
}

// stretch multiplies all times that depend on the session timeout by a power of two. The
// history takes longer, with the same number of events.
func (c *Config) stretch(by int) {
	for _, d := range []*time.Duration{&c.Faults, &c.Timeout, &c.Think, &c.LockDelay, &c.Between, &c.Sweep} {
		*d <<= by
	}
}
