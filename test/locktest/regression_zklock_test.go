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

// dialer is how clients reach a server.
type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// dialZklock makes a client with the sessions that all have here.
func dialZklock(s *scene, dial dialer) *zklock.Client {
	s.Helper()
	c, err := zklock.Dial(s.Context(), s.srv.Servers(), &zklock.Options{SessionTimeout: timeout, DialContext: dial})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { c.Close() })
	return c
}

// of makes the recipe that is this project's lock of some kind.
func of(kind func(c *zklock.Client) *zklock.Lock) recipe {
	return recipe{name: "zklock", make: func(s *scene, via *zktest.Route) contender {
		return &zklockContender{lock: kind(dialZklock(s, via.DialContext))}
	}}
}

// The recipes of this project.
var (
	mutex    = of(func(c *zklock.Client) *zklock.Lock { return c.Mutex(dir) })
	nodeLock = of(func(c *zklock.Client) *zklock.Lock { return c.NodeLock(dir + "/node") })
	reader   = of(func(c *zklock.Client) *zklock.Lock { return c.RWMutex(dir).Reader() })
	writer   = of(func(c *zklock.Client) *zklock.Lock { return c.RWMutex(dir).Writer() })
	permit   = of(func(c *zklock.Client) *zklock.Lock { return c.Semaphore(dir, 2) })
)
