package library

import (
	"context"

	"github.com/zklock/zklock/bench/internal/lockwork"
	"github.com/zklock/zklock/zk"
)

// floor is not a lock: it creates a znode and deletes it, with zklock's client. No lock
// that does both can be faster. For many sessions that wait for one lock, it is a
// [thinLoop].
type floor struct{}

func (floor) Open(ctx context.Context, servers string) (lockwork.Session, error) {
	c, err := zk.Dial(ctx, servers, nil)
	if err != nil {
		return nil, err
	}
	return floorSession{c}, nil
}

type floorSession struct{ client *zk.Client }

func (s floorSession) Lock(path string, w *lockwork.Work, _ bool) (lockwork.Lock, error) {
	if w.Kind != lockwork.Mutex || w.Workers > 1 || w.Async || w.Held > 0 {
		return nil, unsupported(w)
	}
	return &floorLock{client: s.client, path: "/floor-"}, nil
}

func (s floorSession) Count(context.Context, string) (int, error) {
	return 0, unsupported(&lockwork.Work{Kind: lockwork.Mutex})
}

func (s floorSession) Close() error { return s.client.Close() }

type floorLock struct {
	client *zk.Client
	path   string
	node   string
}

func (l *floorLock) Acquire(ctx context.Context) (err error) {
	l.node, _, err = l.client.Create(ctx, l.path, nil, zk.OpenACL(), zk.ModeEphemeralSequential)
	return err
}

func (l *floorLock) Release(ctx context.Context) error { return l.client.Delete(ctx, l.node, -1) }
