package kinds

import (
	"context"
	"errors"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/history"
)

// Kind is a kind of lock: how it is asked for, and what it promises.
type Kind struct {
	Name string
	// Models are what must explain its histories.
	Models []history.Model
	// Ask is the n-th way to ask for it at a path, and, where it is of several
	// paths, at those whose last letter is another.
	Ask func(c *zklock.Client, path string, n int) (*zklock.Lock, []history.Claim)
	// Ways is how many there are.
	Ways int
	// Again says what becomes of the n-th way under a hold that claims this:
	// entered again, an error, or errOrdinary where it is an acquire as any other.
	// It is nil for a kind that is not asked for under its own hold.
	Again func(held []history.Claim, n int) error
	// Writer says of the n-th way that it is a read-write lock's writer.
	Writer func(n int) bool
	// Several is set where it is of several paths, so that no single lock shows who
	// holds and who waits.
	Several bool
	// Names is how many znodes stand for one entry.
	Names int
	// Options are what its clients need to be set; nil for nothing.
	Options func(*zklock.Options)
	// Delayed is set where a lost hold keeps the lock for a while: who waits then
	// is not said by a World.
	Delayed bool
	// Unguarded is set where a hold guards no operations, since its znode's name
	// does not tell it from another's.
	Unguarded bool
}

// errOrdinary says that an acquire under a hold goes its ordinary way.
var errOrdinary = errors.New("kinds: an ordinary acquire")

// lowers reports whether a hold can be downgraded.
func (k Kind) lowers(claims []history.Claim, way int) bool {
	return k.Writer != nil && k.Writer(way) && claims[0].Mode == history.Exclusive
}

// fences reports whether holds have a path to themselves that they can guard.
func (k Kind) fences() bool { return !k.Unguarded && k.Models[0].Name != "semaphore" }

// All are all kinds.
func All() []Kind {
	return []Kind{
		mutex(), reentrant(), readWrite(), semaphore(), nodeLock(), multi(),
		laid(readWrite(), "kazoo", zklock.KazooLayout()),
		mixed(),
		recipe(),
		laid(multi(), "mixed-multi", zklock.MixedLayout()),
		delayed(readWrite()),
	}
}

// laid is a kind in another layout.
func laid(k Kind, name string, l zklock.Layout) Kind {
	k.Name = name
	k.Options = func(o *zklock.Options) { o.Layout = l }
	return k
}

// mixed is the read-write lock in two layouts at once.
func mixed() Kind {
	k := laid(readWrite(), "mixed", zklock.MixedLayout())
	k.Names = 2
	return k
}

// recipe is the read-write lock as a team of its own may have made it.
func recipe() Kind {
	k := laid(readWrite(), "recipe", zklock.Layout{Prefix: "host", Exclusive: "-W-", Shared: "-R-"})
	k.Unguarded = true
	return k
}

// delayed is a kind with a lock-delay.
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

// exclusive is the claim of a mutex or a writer.
func exclusive(path string) history.Claim {
	return history.Claim{Path: path, Mode: history.Exclusive}
}

// shared is the claim of a reader.
func shared(path string) history.Claim { return history.Claim{Path: path, Mode: history.Shared} }

// mutex is the plain exclusive lock.
func mutex() Kind {
	return Kind{
		Name:   "mutex",
		Models: []history.Model{history.Mutex(), history.Owner(), history.Fenced()},
		Ask: func(c *zklock.Client, path string, _ int) (*zklock.Lock, []history.Claim) {
			return c.Mutex(path), []history.Claim{exclusive(path)}
		},
		Ways:  1,
		Again: func([]history.Claim, int) error { return zklock.ErrReentry },
	}
}

// reentrant is the mutex that may be entered again.
func reentrant() Kind {
	k := mutex()
	k.Name, k.Models = "reentrant", []history.Model{history.ReentrantFenced()}
	k.Ask = func(c *zklock.Client, path string, _ int) (*zklock.Lock, []history.Claim) {
		return c.Mutex(path).Reentrant(), []history.Claim{exclusive(path)}
	}
	k.Again = func([]history.Claim, int) error { return nil }
	return k
}

// readWrite is the read-write lock, plain and re-entrant, with mutexes among
// them: a path is one queue.
func readWrite() Kind {
	const writer, reader, again = 0, 1, 2 // again is added for Reentrant; 4 is a mutex
	return Kind{
		Name:   "read-write",
		Models: []history.Model{history.ReadWrite()},
		Ask: func(c *zklock.Client, path string, n int) (*zklock.Lock, []history.Claim) {
			l, claim := c.RWMutex(path).Writer(), exclusive(path)
			switch {
			case n == 4:
				return c.Mutex(path), []history.Claim{claim}
			case n%again == reader:
				l, claim = c.RWMutex(path).Reader(), shared(path)
			}
			if n >= again {
				l = l.Reentrant()
			}
			return l, []history.Claim{claim}
		},
		Ways: 5,
		Again: func(held []history.Claim, n int) error {
			switch {
			case held[0].Mode == history.Shared && n%again == writer:
				return zklock.ErrUpgrade
			case n == 2 || n == 3:
				return nil
			case held[0].Mode == history.Exclusive:
				return zklock.ErrReentry
			}
			return errOrdinary
		},
		Writer: func(n int) bool { return n == 0 || n == 2 },
	}
}

// permits is the claim of k of the permits of a semaphore.
func permits(path string, k, of int) history.Claim {
	return history.Claim{Path: path, Mode: history.Permit, Permits: k, Of: of}
}

// semaphore has three permits, of which one, two or three are asked for.
func semaphore() Kind {
	const of = 3
	return Kind{
		Name:   "semaphore",
		Models: []history.Model{history.Semaphore(of), history.Multi()},
		Ask: func(c *zklock.Client, path string, n int) (*zklock.Lock, []history.Claim) {
			return c.Semaphore(path, of).Permits(n + 1), []history.Claim{permits(path, n+1, of)}
		},
		Ways: of,
	}
}

// nodeLock is one znode, which may be entered again.
func nodeLock() Kind {
	return Kind{
		Name:   "node",
		Models: []history.Model{history.ReentrantFenced()},
		Ask: func(c *zklock.Client, path string, n int) (*zklock.Lock, []history.Claim) {
			l := c.NodeLock(path)
			if n == 1 {
				l = l.Reentrant()
			}
			return l, []history.Claim{{Path: path, Mode: Node}}
		},
		Ways: 2,
		Again: func(_ []history.Claim, n int) error {
			if n == 0 {
				return zklock.ErrReentry
			}
			return nil
		},
		Unguarded: true,
	}
}

// multi is locks of all kinds but node locks, several at once and one by one.
func multi() Kind {
	const of = 2
	return Kind{
		Name:   "multi",
		Models: []history.Model{history.Multi()},
		Ask: func(c *zklock.Client, path string, n int) (*zklock.Lock, []history.Claim) {
			base := path[:len(path)-1]
			w, x, y, z := base+"w", base+"x", base+"y", base+"z"
			mutexX, writerX := c.Mutex(x), c.RWMutex(x).Writer()
			writerY, readerY := c.RWMutex(y).Writer(), c.RWMutex(y).Reader()
			oneW, oneZ, twoZ := c.Semaphore(w, of), c.Semaphore(z, of), c.Semaphore(z, of).Permits(2)
			ways := []struct {
				l      *zklock.Lock
				claims []history.Claim
			}{
				{zklock.All(mutexX, writerY), []history.Claim{exclusive(x), exclusive(y)}},
				{zklock.All(readerY, writerX), []history.Claim{shared(y), exclusive(x)}},
				{zklock.All(mutexX, oneZ), []history.Claim{exclusive(x), permits(z, 1, of)}},
				{zklock.All(twoZ, readerY), []history.Claim{permits(z, 2, of), shared(y)}},
				{zklock.All(oneZ, oneW), []history.Claim{permits(z, 1, of), permits(w, 1, of)}},
				{zklock.All(oneW, zklock.All(twoZ, mutexX), writerY), []history.Claim{permits(w, 1, of), permits(z, 2, of), exclusive(x), exclusive(y)}},
				{zklock.All(mutexX), []history.Claim{exclusive(x)}},
				{mutexX, []history.Claim{exclusive(x)}},
				{readerY, []history.Claim{shared(y)}},
				{oneZ, []history.Claim{permits(z, 1, of)}},
				{twoZ, []history.Claim{permits(z, 2, of)}},
			}
			return ways[n].l, ways[n].claims
		},
		Ways:    11,
		Several: true,
	}
}

// logged are claims as histories know them: a node lock is exclusive there.
func logged(claims []history.Claim) []history.Claim {
	var all []history.Claim
	for _, c := range claims {
		if c.Mode == Node {
			c.Mode = history.Exclusive
		}
		all = append(all, c)
	}
	return all
}
