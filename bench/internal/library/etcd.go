package library

import (
	"context"
	"errors"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/zklock/zklock/bench/internal/lockwork"
)

// etcd is the Mutex of etcd's client.
type etcd struct{}

func (etcd) Open(ctx context.Context, servers string) (lockwork.Session, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: strings.Split(servers, ","), DialTimeout: sessionTimeout})
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithTTL(int(sessionTimeout.Seconds())), concurrency.WithContext(ctx))
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &etcdSession{client, session}, nil
}

type etcdSession struct {
	client  *clientv3.Client
	session *concurrency.Session
}

// Lock returns a mutex that excludes those of other sessions: all mutexes of one session on
// one path share an entry.
func (s *etcdSession) Lock(path string, w *lockwork.Work, _ bool) (lockwork.Lock, error) {
	if w.Kind != lockwork.Mutex || w.Workers > w.Sessions && w.Workers > w.Locks {
		return nil, unsupported(w)
	}
	return etcdLock{concurrency.NewMutex(s.session, path)}, nil
}

func (s *etcdSession) Count(ctx context.Context, path string) (int, error) {
	r, err := s.client.Get(ctx, path+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return int(r.Count), nil
}

func (s *etcdSession) Close() error { return errors.Join(s.session.Close(), s.client.Close()) }

type etcdLock struct{ mutex *concurrency.Mutex }

func (l etcdLock) Acquire(ctx context.Context) error { return l.mutex.Lock(ctx) }

func (l etcdLock) Release(ctx context.Context) error { return l.mutex.Unlock(ctx) }
