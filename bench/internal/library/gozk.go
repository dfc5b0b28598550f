package library

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/zklock/bench/internal/lockwork"
)

// sessionTimeout is used with the libraries that let the caller choose the timeout.
const sessionTimeout = 20 * time.Second

// goZooKeeper is the Lock of go-zookeeper.
type goZooKeeper struct{}

// discard is a logger for go-zookeeper that prints nothing.
type discard struct{}

func (discard) Printf(string, ...any) {}

func (goZooKeeper) Open(ctx context.Context, servers string) (lockwork.Session, error) {
	conn, events, err := zk.Connect(strings.Split(servers, ","), sessionTimeout, zk.WithLogger(discard{}))
	if err != nil {
		return nil, err
	}
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return &goZooKeeperSession{conn}, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, fmt.Errorf("go-zookeeper: no session: %w", ctx.Err())
		}
	}
}

type goZooKeeperSession struct{ conn *zk.Conn }

func (s *goZooKeeperSession) Lock(path string, w *lockwork.Work, _ bool) (lockwork.Lock, error) {
	if w.Kind != lockwork.Mutex {
		return nil, unsupported(w)
	}
	return goZooKeeperLock{zk.NewLock(s.conn, path, zk.WorldACL(zk.PermAll))}, nil
}

func (s *goZooKeeperSession) Count(_ context.Context, path string) (int, error) {
	children, _, err := s.conn.Children(path)
	return len(children), err
}

func (s *goZooKeeperSession) Close() error {
	s.conn.Close()
	return nil
}

type goZooKeeperLock struct{ lock *zk.Lock }

// Acquire ignores its context, because Lock takes none.
func (l goZooKeeperLock) Acquire(context.Context) error { return l.lock.Lock() }

func (l goZooKeeperLock) Release(context.Context) error { return l.lock.Unlock() }
