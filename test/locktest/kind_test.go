package locktest

import (
	"time"

	"github.com/zklock/zklock"
)

// A Kind is a kind of exclusive lock.
type Kind struct {
	Name string
	// Lock returns the lock with this name; nil means the client's Mutex.
	Lock func(c *zklock.Client, name string) *zklock.Lock
	// Options are the options of the clients. The LockTarget sets some of them.
	Options zklock.Options
	// Width is the number of entries of each holder or waiter; 0 means one.
	Width int
	// lacks has the features that the kind does not have.
	lacks needs
}

// needs is a set of features of a kind that a test needs.
type needs uint8

const (
	anything needs = 0
	ordered  needs = 1 << (iota - 1) // grants are in the order of arrival
	counted                          // each waiter has Width entries
	guarded                          // Verify works
	queued                           // the queue is the children of one znode
	mutex                            // the mutex in Curator's layout
)

func (k Kind) has(n needs) bool { return k.lacks&n == 0 }

// Kinds returns all kinds except the plain mutex.
func Kinds() []Kind {
	two := func(c *zklock.Client, name string) *zklock.Lock {
		return zklock.All(c.Mutex(name), c.RWMutex(name+"-too").Writer())
	}
	return []Kind{
		{Name: "writer", lacks: mutex,
			Lock: func(c *zklock.Client, name string) *zklock.Lock { return c.RWMutex(name).Writer() }},
		{Name: "reentrant", lacks: mutex,
			Lock: func(c *zklock.Client, name string) *zklock.Lock { return c.Mutex(name).Reentrant() }},
		{Name: "semaphore of one", lacks: mutex | queued | counted,
			Lock: func(c *zklock.Client, name string) *zklock.Lock { return c.Semaphore(name, 1) }},
		{Name: "semaphore, all permits", Width: 3, lacks: mutex | queued | counted,
			Lock: func(c *zklock.Client, name string) *zklock.Lock { return c.Semaphore(name, 3).Permits(3) }},
		{Name: "node lock", lacks: mutex | queued | counted | ordered | guarded,
			Lock: func(c *zklock.Client, name string) *zklock.Lock { return c.NodeLock(name) }},
		{Name: "all of two", Width: 2, lacks: mutex | queued, Lock: two},
		{Name: "all in order", Width: 2, lacks: mutex | queued | counted | ordered,
			Lock: func(c *zklock.Client, name string) *zklock.Lock { return two(c, name).InOrder() }},
		{Name: "kazoo's layout", lacks: mutex, Options: zklock.Options{Layout: zklock.KazooLayout()}},
		{Name: "mixed layout", Width: 2, lacks: mutex | queued, Options: zklock.Options{Layout: zklock.MixedLayout()}},
		{Name: "latch layout", lacks: mutex, Options: zklock.Options{Layout: zklock.LatchLayout()}},
		{Name: "custom layout", lacks: mutex | guarded,
			Options: zklock.Options{Layout: zklock.Layout{Prefix: "host", Exclusive: "-W-", Shared: "-R-"}}},
		{Name: "lock-delay", lacks: mutex, Options: zklock.Options{LockDelay: 500 * time.Millisecond}},
	}
}
