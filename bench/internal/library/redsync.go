package library

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/zklock/zklock/bench/internal/lockwork"
)

// redsyncLibrary is redsync over go-redis, with one server.
type redsyncLibrary struct{}

func (redsyncLibrary) Open(ctx context.Context, servers string) (lockwork.Session, error) {
	client := redis.NewClient(&redis.Options{Addr: servers})
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &redsyncSession{client, redsync.New(goredis.NewPool(client))}, nil
}

type redsyncSession struct {
	client *redis.Client
	sync   *redsync.Redsync
}

func (s *redsyncSession) Lock(path string, w *lockwork.Work, _ bool) (lockwork.Lock, error) {
	if w.Kind != lockwork.Mutex {
		return nil, unsupported(w)
	}
	// The default is 32 tries, which takes only some seconds.
	const tries = 1 << 20
	return redsyncLock{s.sync.NewMutex(path, redsync.WithExpiry(sessionTimeout), redsync.WithTries(tries))}, nil
}

// Count returns an error: a redis server does not know the waiters.
func (s *redsyncSession) Count(context.Context, string) (int, error) {
	return 0, fmt.Errorf("%w: a queue", lockwork.ErrUnsupported)
}

func (s *redsyncSession) Close() error { return s.client.Close() }

type redsyncLock struct{ mutex *redsync.Mutex }

func (l redsyncLock) Acquire(ctx context.Context) error { return l.mutex.LockContext(ctx) }

func (l redsyncLock) Release(ctx context.Context) error {
	if ok, err := l.mutex.UnlockContext(ctx); err != nil || !ok {
		return fmt.Errorf("redsync: unlock: %t, %w", ok, err)
	}
	return nil
}
