package sim

import (
	"math/rand/v2"
	"time"
)

// Config says what a world is like. [NewConfig] draws one.
type Config struct {
	Seed uint64
	// Faults is how long faults happen. Then the world heals.
	Faults time.Duration
	// Clients is how many machines run a client process each, Actors how many
	// goroutines of each want locks.
	Clients, Actors int
	Locks           []LockConfig
	// Several is how many of a hundred claims are of several locks; Ordered has
	// those take one after the other, instead of all queues at once. Both in one
	// world could deadlock, as the one takes a lock while it has another.
	Several int
	Ordered bool
	// Unordered has them take the locks in any order, which deadlocks.
	Unordered bool
	// Ticking lets the timer of the lock core expire after each notice of the
	// session, not after one in fifty.
	Ticking bool
	// StandingClock stops the clock of a process while the process is stopped,
	// which breaks what is assumed about clocks.
	StandingClock bool
	// Patient lets no actor give up: no tries, no contexts that end.
	Patient bool
	// Sprees lets an actor acquire one lock many times in a row at times, so that no
	// other client uses it meanwhile.
	Sprees bool
	// JoinWindow is how many requests a client sends before it keeps others back, to
	// batch them.
	JoinWindow int
	// Alone says that there is one actor whose process never ends, so that a lock
	// is never another's.
	Alone bool
	// LockDelay is how long acquires wait before they take a lock whose holder crashed.
	LockDelay time.Duration
	// Timeout is the session timeout.
	Timeout time.Duration
	// Think is the mean time between two acquires of an actor, Between that
	// between two faults.
	Think, Between time.Duration
	// Delay is the ordinary time on the way of a link, Spread what is added at
	// most, Sync the longest ordinary sync of the disk.
	Delay, Spread, Sync time.Duration
	// Drift is the largest difference between clock rates, in millionths.
	Drift int64
	// Operators delete znodes and end sessions of others.
	Operators bool
	// Syncs has heartbeats be syncs, where sessions are long enough for that.
	Syncs bool
	// Jumps lets sequence numbers come near their limit at times.
	Jumps bool
	// InitialZxid is the transaction id before the first.
	InitialZxid int64
	// Persistent makes the clients make persistent parents, not containers.
	Persistent bool
	// Inherits has the clients read the lists of parents before they make entries.
	Inherits bool
	// Sweep is how often the server collects containers.
	Sweep time.Duration
	// SnapshotEvery is after how many records the server takes a snapshot.
	SnapshotEvery int
	// Calm leaves all faults out but those that a test plans itself.
	Calm bool
	// Only are the numbers of those faults of the script that happen; nil for all.
	Only []int
	// Salt gives all that is no fault other chances.
	Salt uint64
}

// NewConfig draws the world of a seed.
func NewConfig(seed uint64) Config {
	c, by := draw(seed)
	c.stretch(by)
	return c
}

// draw draws the world of a seed, and by how much it is to be stretched.
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
	// The fewer the clients and the longer they wait, the rarer the faults: else
	// there is a history of faults and nothing more.
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
	c.Patient = r.IntN(4) == 0
	c.Drift = []int64{10_000, 10_000, 10_000, 50_000, 0}[r.IntN(5)]
	c.Jumps = r.IntN(6) == 0
	if r.IntN(4) == 0 {
		c.InitialZxid = int64(r.IntN(4))<<32 | 1<<32 - 1 - r.Int64N(5000) // the low word is soon used up
	}
	by = r.IntN(5)
	c.Syncs = r.IntN(4) == 0
	c.JoinWindow = 1 + r.IntN(4)
	c.Inherits = r.IntN(4) == 0
	c.Sprees = r.IntN(4) == 0
	return c, by
}

// stretch makes all that depends on the session timeout longer, by a power of
// two: with it the whole history, with no more and no less in it.
func (c *Config) stretch(by int) {
	for _, d := range []*time.Duration{&c.Faults, &c.Timeout, &c.Think, &c.LockDelay, &c.Between, &c.Sweep} {
		*d <<= by
	}
}
