package locktest_test

import (
	"context"
	"net"
	"sync/atomic"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/zklock/zklock/zktest"
)

// gozkContender is a lock of go-zookeeper. As its documentation recommends, the program assumes
// that the lock is lost when it learns that the session has expired.
type gozkContender struct {
	lock    *gozk.Lock
	conn    *gozk.Conn
	has     bool
	expired atomic.Bool
}

func (l *gozkContender) acquire(ctx context.Context) error {
	stop := context.AfterFunc(ctx, l.conn.Close) // Lock has no context
	defer stop()
	err := l.lock.Lock()
	l.has = err == nil
	return err
}

func (l *gozkContender) release(context.Context) error {
	err := l.lock.Unlock()
	l.has = l.has && err != nil
	return err
}

func (l *gozkContender) held() bool { return l.has && !l.expired.Load() }

// goZookeeper is the recipe of go-zookeeper.
var goZookeeper = recipe{name: "go-zookeeper", make: func(s *bubble, via *zktest.Route) contender {
	return dialGozk(s, via.DialContext)
}}

func dialGozk(s *bubble, dial dialer) *gozkContender {
	s.Helper()
	l := &gozkContender{}
	conn, _, err := gozk.Connect([]string{"127.0.0.1:2181"}, timeout,
		gozk.WithLogger(quiet{}),
		gozk.WithEventCallback(func(e gozk.Event) {
			if e.Type == gozk.EventSession && e.State == gozk.StateExpired {
				l.expired.Store(true)
			}
		}),
		gozk.WithDialer(func(network, addr string, _ time.Duration) (net.Conn, error) {
			return dial(s.Context(), network, addr)
		}))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(conn.Close)
	l.conn, l.lock = conn, gozk.NewLock(conn, dir, gozk.WorldACL(gozk.PermAll))
	return l
}

// quiet discards go-zookeeper's log.
type quiet struct{}

func (quiet) Printf(string, ...any) {}
