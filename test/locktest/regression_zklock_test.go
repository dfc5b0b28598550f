package locktest_test

import (
	"context"
	"net"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// zklockContender is a lock of package zklock.
type zklockContender struct {
	lock *zklock.Lock
	hold *zklock.Hold
}

func (o *zklockContender) acquire(ctx context.Context) (err error) {
	o.hold, err = o.lock.Acquire(ctx)
	return err
}

func (o *zklockContender) release(ctx context.Context) error { return o.hold.Release(ctx) }

func (o *zklockContender) held() bool { return o.hold != nil && o.hold.Err() == nil }

// dialer opens connections of clients.
type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialZklock dials a client with the session timeout of all tests.
func dialZklock(s *bubble, dial dialer) *zklock.Client {
	s.Helper()
	c, err := zklock.Dial(s.Context(), s.srv.Servers(), &zklock.Options{SessionTimeout: timeout, DialContext: dial})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	return c
}

// zklockRecipe returns a recipe of a zklock lock.
func zklockRecipe(kind func(c *zklock.Client) *zklock.Lock) recipe {
	return recipe{name: "zklock", make: func(s *bubble, via *zktest.Route) contender {
		return &zklockContender{lock: kind(dialZklock(s, via.DialContext))}
	}}
}

// The recipes of zklock.
var (
	mutex    = zklockRecipe(func(c *zklock.Client) *zklock.Lock { return c.Mutex(dir) })
	nodeLock = zklockRecipe(func(c *zklock.Client) *zklock.Lock { return c.NodeLock(dir + "/node") })
	reader   = zklockRecipe(func(c *zklock.Client) *zklock.Lock { return c.RWMutex(dir).Reader() })
	writer   = zklockRecipe(func(c *zklock.Client) *zklock.Lock { return c.RWMutex(dir).Writer() })
	permit   = zklockRecipe(func(c *zklock.Client) *zklock.Lock { return c.Semaphore(dir, 2) })
)
