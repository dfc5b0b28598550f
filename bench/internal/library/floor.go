package library

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/zklock/bench/internal/lockwork"
	"github.com/zklock/zklock/zk"
)

// floor is not a lock: it creates a znode and deletes it, with zklock's client. No lock
// that does both can be faster. For many sessions that wait for one lock, it is a
// [thinLoop]. For many locks of one session, it is a loop of transactions.
type floor struct{}

// batches is how many transactions the loop of transactions keeps in flight.
const batches = 2

// Loop does a work in which every worker has its own session and all want the same lock, or
// all use one session and every worker has its own lock.
func (floor) Loop(ctx context.Context, server string, w lockwork.Work) (lockwork.Result, error) {
	if w.Sessions > 1 {
		return thin(ctx, server, w)
	}
	return transact(ctx, server, w)
}

// transact creates and deletes a znode for each lock, in transactions of many locks each.
func transact(ctx context.Context, server string, w lockwork.Work) (r lockwork.Result, err error) {
	c, err := zk.Dial(ctx, server, nil)
	if err != nil {
		return r, err
	}
	defer c.Close()
	var cycles atomic.Int64
	var errs [batches]error
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range batches {
		wg.Go(func() { errs[i] = batch(ctx, c, &w, i, begin, &cycles) })
	}
	wg.Wait()
	r.Cycles, r.Time = cycles.Load(), time.Since(begin)
	return r, errors.Join(errs[:]...)
}

// batch creates and deletes the znodes of every lock whose number is i modulo batches.
func batch(ctx context.Context, c *zk.Client, w *lockwork.Work, i int, begin time.Time, cycles *atomic.Int64) error {
	var create, remove []zk.Op
	for lock := i; lock < w.Locks; lock += batches {
		path := fmt.Sprintf("/floor-%05d-%s", lock, entryPrefix)
		create = append(create, zk.CreateOp(path, entryData, zk.OpenACL(), zk.ModeEphemeral))
		remove = append(remove, zk.DeleteOp(path, -1))
	}
	for time.Since(begin) < w.Time {
		for _, ops := range [][]zk.Op{create, remove} {
			if _, err := c.Multi(ctx, ops...); err != nil {
				return err
			}
		}
		cycles.Add(int64(len(create)))
	}
	return nil
}

func (floor) Open(ctx context.Context, servers string) (lockwork.Session, error) {
	c, err := zk.Dial(ctx, servers, nil)
	if err != nil {
		return nil, err
	}
	return floorSession{c}, nil
}

type floorSession struct{ client *zk.Client }

func (s floorSession) Lock(path string, w *lockwork.Work, _ bool) (lockwork.Lock, error) {
	if w.Kind != lockwork.Mutex || w.Workers > w.Sessions || w.Async || w.Held > 0 {
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
