package library

import (
	"context"
	"strings"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/bench/internal/lockwork"
)

// zklockLibrary is zklock.
type zklockLibrary struct{}

func (zklockLibrary) Open(ctx context.Context, servers string) (lockwork.Session, error) {
	c, err := zklock.Dial(ctx, servers, nil)
	if err != nil {
		return nil, err
	}
	return &zklockSession{c}, nil
}

type zklockSession struct{ client *zklock.Client }

func (s *zklockSession) Lock(path string, w *lockwork.Work, reader bool) (lockwork.Lock, error) {
	name := strings.TrimPrefix(path, "/")
	var l *zklock.Lock
	switch {
	case w.Kind == lockwork.Semaphore:
		l = s.client.Semaphore(name, w.Permits)
	case w.Kind == lockwork.ReadWrite && reader:
		l = s.client.RWMutex(name).Reader()
	case w.Kind == lockwork.ReadWrite:
		l = s.client.RWMutex(name).Writer()
	default:
		l = s.client.Mutex(name)
	}
	if w.Local > 0 {
		l = l.LocalHandoff(w.Local)
	}
	return &zklockLock{lock: l}, nil
}

func (s *zklockSession) Count(ctx context.Context, path string) (int, error) {
	entries, err := s.client.Mutex(strings.TrimPrefix(path, "/")).Inspect(ctx)
	if err != nil {
		return 0, err
	}
	return len(entries), nil
}

func (s *zklockSession) Close() error { return s.client.Close() }

type zklockLock struct {
	lock *zklock.Lock
	hold *zklock.Hold
}

func (l *zklockLock) Acquire(ctx context.Context) (err error) {
	l.hold, err = l.lock.Acquire(ctx)
	return err
}

func (l *zklockLock) Release(ctx context.Context) error { return l.hold.Release(ctx) }

func (l *zklockLock) ReleaseAsync() { _ = l.hold.ReleaseAsync() }
