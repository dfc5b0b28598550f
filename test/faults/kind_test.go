package faults

import (
	"context"
	"errors"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/model"
)

// Kind is a kind of lock: how to acquire it, and what its histories must satisfy.
type Kind struct {
	Name string
	// Models must permit its histories.
	Models []model.Model
	// Lock returns the lock at a path, and its claims, for the n-th way to acquire it. A kind
	// with several paths also uses paths that differ in the last letter.
	Lock func(c *zklock.Client, path string, n int) (*zklock.Lock, []model.Claim)
	// Ways is the number of ways.
	Ways int
	// Reenter returns the expected result of an acquire in the n-th way under a hold: nil if
	// the hold is entered again, an error, or errOrdinary if it is an ordinary acquire.
	// Reenter is nil if the kind is not acquired under its own hold.
	Reenter func(held []model.Claim, n int) error
	// Writer reports whether the n-th way is the writer of a read-write lock.
	Writer func(n int) bool
	// Several is set if the kind has several paths. Then Inspect of one lock does not show
	// all holders and waiters.
	Several bool
	// Names is the number of znodes of one entry.
	Names int
	// Options sets the options of its clients; may be nil.
	Options func(*zklock.Options)
	// Delayed is set if the kind has a lock delay, which a World does not know.
	Delayed bool
	// Unguarded is set if Guard is not available, because the name of the hold's znode is not
	// unique.
	Unguarded bool
}

// errOrdinary reports that an acquire under a hold is an ordinary one.
var errOrdinary = errors.New("kinds: an ordinary acquire")

// canDowngrade reports whether a hold can be downgraded.
func (k Kind) canDowngrade(claims []model.Claim, way int) bool {
	return k.Writer != nil && k.Writer(way) && claims[0].Mode == model.Exclusive
}

// canGuard reports whether holds have exclusive paths and can guard writes.
func (k Kind) canGuard() bool { return !k.Unguarded && k.Models[0].Name != "semaphore" }

// All returns all kinds.
func All() []Kind {
	return []Kind{
		mutex(), reentrant(), readWrite(), semaphore(), nodeLock(), multi(),
		withLayout(readWrite(), "kazoo", zklock.KazooLayout()),
		mixed(),
		recipe(),
		withLayout(multi(), "mixed-multi", zklock.MixedLayout()),
		delayed(readWrite()),
	}
}

// withLayout returns a kind with another layout.
func withLayout(k Kind, name string, l zklock.Layout) Kind {
	k.Name = name
	k.Options = func(o *zklock.Options) { o.Layout = l }
	return k
}

// mixed returns the read-write lock in two layouts at once.
func mixed() Kind {
	k := withLayout(readWrite(), "mixed", zklock.MixedLayout())
	k.Names = 2
	return k
}

// recipe returns the read-write lock in a custom layout.
func recipe() Kind {
	k := withLayout(readWrite(), "recipe", zklock.Layout{Prefix: "host", Exclusive: "-W-", Shared: "-R-"})
	k.Unguarded = true
	return k
}

// delayed returns a kind with a lock delay.
func delayed(k Kind) Kind {
	k.Name, k.Delayed = "delayed", true
	k.Options = func(o *zklock.Options) { o.LockDelay = o.SessionTimeout / 8 }
	return k
}

// dial connects a client of the kind.
func (k Kind) dial(ctx context.Context, servers string, o zklock.Options) (*zklock.Client, error) {
	if k.Options != nil {
		k.Options(&o)
	}
	return zklock.Dial(ctx, servers, &o)
}

// exclusive returns the claim of a mutex or a writer.
func exclusive(path string) model.Claim {
	return model.Claim{Path: path, Mode: model.Exclusive}
}

// shared returns the claim of a reader.
func shared(path string) model.Claim { return model.Claim{Path: path, Mode: model.Shared} }

// mutex returns the exclusive lock.
func mutex() Kind {
	return Kind{
		Name:   "mutex",
		Models: []model.Model{model.Mutex(), model.Owner(), model.Fenced()},
		Lock: func(c *zklock.Client, path string, _ int) (*zklock.Lock, []model.Claim) {
			return c.Mutex(path), []model.Claim{exclusive(path)}
		},
		Ways:    1,
		Reenter: func([]model.Claim, int) error { return zklock.ErrReentry },
	}
}

// handoff returns the mutex with local handoff.
func handoff() Kind {
	k := mutex()
	k.Name, k.Models, k.Ways, k.Reenter = "handoff", []model.Model{model.HandedOff()}, 2, nil
	k.Lock = func(c *zklock.Client, path string, n int) (*zklock.Lock, []model.Claim) {
		return c.Mutex(path).LocalHandoff(2 + n), []model.Claim{exclusive(path)}
	}
	return k
}

// reentrant returns the re-entrant mutex.
func reentrant() Kind {
	k := mutex()
	k.Name, k.Models = "reentrant", []model.Model{model.ReentrantFenced()}
	k.Lock = func(c *zklock.Client, path string, _ int) (*zklock.Lock, []model.Claim) {
		return c.Mutex(path).Reentrant(), []model.Claim{exclusive(path)}
	}
	k.Reenter = func([]model.Claim, int) error { return nil }
	return k
}

// readWrite returns the read-write lock, plain and re-entrant, and a mutex in the same queue.
func readWrite() Kind {
	const writer, reader, again = 0, 1, 2 // again is added for Reentrant; 4 is a mutex
	return Kind{
		Name:   "read-write",
		Models: []model.Model{model.ReadWrite()},
		Lock: func(c *zklock.Client, path string, n int) (*zklock.Lock, []model.Claim) {
			l, claim := c.RWMutex(path).Writer(), exclusive(path)
			switch {
			case n == 4:
				return c.Mutex(path), []model.Claim{claim}
			case n%again == reader:
				l, claim = c.RWMutex(path).Reader(), shared(path)
			}
			if n >= again {
				l = l.Reentrant()
			}
			return l, []model.Claim{claim}
		},
		Ways: 5,
		Reenter: func(held []model.Claim, n int) error {
			switch {
			case held[0].Mode == model.Shared && n%again == writer:
				return zklock.ErrUpgrade
			case n == 2 || n == 3:
				return nil
			case held[0].Mode == model.Exclusive:
				return zklock.ErrReentry
			}
			return errOrdinary
		},
		Writer: func(n int) bool { return n == 0 || n == 2 },
	}
}

// permits returns the claim of k permits of a semaphore.
func permits(path string, k, of int) model.Claim {
	return model.Claim{Path: path, Mode: model.Permit, Permits: k, Of: of}
}

// semaphore returns a semaphore with three permits. An acquire takes one, two, or three.
func semaphore() Kind {
	const of = 3
	return Kind{
		Name:   "semaphore",
		Models: []model.Model{model.Semaphore(of), model.Multi()},
		Lock: func(c *zklock.Client, path string, n int) (*zklock.Lock, []model.Claim) {
			return c.Semaphore(path, of).Permits(n + 1), []model.Claim{permits(path, n+1, of)}
		},
		Ways: of,
	}
}

// nodeLock returns the node lock, plain and re-entrant.
func nodeLock() Kind {
	return Kind{
		Name:   "node",
		Models: []model.Model{model.ReentrantFenced()},
		Lock: func(c *zklock.Client, path string, n int) (*zklock.Lock, []model.Claim) {
			l := c.NodeLock(path)
			if n == 1 {
				l = l.Reentrant()
			}
			return l, []model.Claim{{Path: path, Mode: Node}}
		},
		Ways: 2,
		Reenter: func(_ []model.Claim, n int) error {
			if n == 0 {
				return zklock.ErrReentry
			}
			return nil
		},
		Unguarded: true,
	}
}

// multi returns locks of all kinds except node locks, several at once and one by one.
func multi() Kind {
	const of = 2
	return Kind{
		Name:   "multi",
		Models: []model.Model{model.Multi()},
		Lock: func(c *zklock.Client, path string, n int) (*zklock.Lock, []model.Claim) {
			base := path[:len(path)-1]
			w, x, y, z := base+"w", base+"x", base+"y", base+"z"
			mutexX, writerX := c.Mutex(x), c.RWMutex(x).Writer()
			writerY, readerY := c.RWMutex(y).Writer(), c.RWMutex(y).Reader()
			oneW, oneZ, twoZ := c.Semaphore(w, of), c.Semaphore(z, of), c.Semaphore(z, of).Permits(2)
			ways := []struct {
				l      *zklock.Lock
				claims []model.Claim
			}{
				{zklock.All(mutexX, writerY), []model.Claim{exclusive(x), exclusive(y)}},
				{zklock.All(readerY, writerX), []model.Claim{shared(y), exclusive(x)}},
				{zklock.All(mutexX, oneZ), []model.Claim{exclusive(x), permits(z, 1, of)}},
				{zklock.All(twoZ, readerY), []model.Claim{permits(z, 2, of), shared(y)}},
				{zklock.All(oneZ, oneW), []model.Claim{permits(z, 1, of), permits(w, 1, of)}},
				{zklock.All(oneW, zklock.All(twoZ, mutexX), writerY), []model.Claim{permits(w, 1, of), permits(z, 2, of), exclusive(x), exclusive(y)}},
				{zklock.All(mutexX), []model.Claim{exclusive(x)}},
				{mutexX, []model.Claim{exclusive(x)}},
				{readerY, []model.Claim{shared(y)}},
				{oneZ, []model.Claim{permits(z, 1, of)}},
				{twoZ, []model.Claim{permits(z, 2, of)}},
			}
			return ways[n].l, ways[n].claims
		},
		Ways:    11,
		Several: true,
	}
}

// recorded returns claims for histories, in which a node lock is exclusive.
func recorded(claims []model.Claim) []model.Claim {
	var all []model.Claim
	for _, c := range claims {
		if c.Mode == Node {
			c.Mode = model.Exclusive
		}
		all = append(all, c)
	}
	return all
}
