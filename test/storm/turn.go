package storm

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/test/kinds"
	"github.com/zklock/zklock/zk"
)

// turn is one acquire and what is done with its hold.
type turn struct {
	*party
	client *zklock.Client
	conn   net.Conn // to the resource
	rng    *rand.Rand

	way    int
	claims []history.Claim
}

// level is one entry of a hold.
type level struct {
	hold *zklock.Hold
	log  *history.Attempt
}

// lockPath is where the locks of a kind are.
func lockPath(kind string) string { return "/" + kind + "/x" }

// logged are claims as histories know them: a node lock is exclusive there.
func logged(claims []history.Claim) []history.Claim {
	var all []history.Claim
	for _, c := range claims {
		if c.Mode == kinds.Node {
			c.Mode = history.Exclusive
		}
		all = append(all, c)
	}
	return all
}

// lock is the way-th lock of the kind, and what it claims.
func (t *turn) lock(way int) (*zklock.Lock, []history.Claim) {
	l, claims := t.kind.Ask(t.client, lockPath(t.kind.Name), way)
	if t.Impostor {
		l, _ = t.kind.Ask(t.client, lockPath(t.kind.Name+t.Name), way)
	}
	return l, logged(claims)
}

// run is the whole turn. An error is a failure of the test, not of the lock.
func (t *turn) run(ctx context.Context) error {
	t.way = t.rng.IntN(t.kind.Ways)
	var l *zklock.Lock
	l, t.claims = t.lock(t.way)
	// What is begun goes on when the worker is to rest: an acquire is bounded by its
	// own time only, if it has any.
	wait, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if t.rng.IntN(3) == 0 {
		wait, cancel = context.WithTimeout(wait, time.Duration(1+t.rng.Int64N(int64(t.Timeout))))
		defer cancel()
	}
	try := t.rng.IntN(6) == 0
	log := t.rec.Acquire(t.Name, try, t.claims...)
	acquire := l.Acquire
	if try {
		acquire = l.TryAcquire
	}
	h, err := acquire(wait)
	if err != nil {
		log.Failed(err, errors.Is(err, zklock.ErrLocked))
		if errors.Is(err, zk.ErrNoAuth) {
			rest(ctx, t.Timeout/16) // as anybody would who was told that it is of no use
		}
		return nil
	}
	log.Granted(h.Token(), h.Session(), h.Remaining)
	return t.hold(ctx, level{h, log})
}

// hold is what is done while the lock is held.
func (t *turn) hold(ctx context.Context, outer level) error {
	levels := []level{outer}
	lowered := false
	for range 1 + t.rng.IntN(3) {
		if outer.log.Held(outer.hold.Err, outer.hold.Remaining) != nil {
			break
		}
		if !lowered {
			if err := t.write(outer); err != nil {
				return err
			}
			if outer.log.Held(outer.hold.Err, outer.hold.Remaining) != nil {
				break
			}
		}
		t.linger(outer.hold)
		switch {
		case t.kind.Again != nil && !lowered && t.rng.IntN(3) == 0:
			levels = append(levels, t.again(ctx, outer)...)
		case t.lowers() && len(levels) == 1 && !lowered && t.rng.IntN(3) == 0:
			t.downgrade(outer)
			lowered = true
		}
	}
	// The holds of one lock are released in any order.
	t.rng.Shuffle(len(levels), func(i, j int) { levels[i], levels[j] = levels[j], levels[i] })
	for _, l := range levels {
		release(l)
	}
	return nil
}

// lowers reports whether the hold can be downgraded.
func (t *turn) lowers() bool {
	return t.kind.Writer != nil && t.kind.Writer(t.way) && t.claims[0].Mode == history.Exclusive
}

// linger does nothing for a moment, and now and then for a long one.
func (t *turn) linger(h *zklock.Hold) {
	idle := t.Idle
	if idle == 0 {
		idle = time.Millisecond
	}
	if t.rng.IntN(200) == 0 {
		idle = t.Timeout / 8
	}
	timer := time.NewTimer(time.Duration(1 + t.rng.Int64N(int64(idle))))
	defer timer.Stop()
	select {
	case <-h.Done():
	case <-timer.C:
	}
}

// write has the resource act on what the hold has to itself, if it has anything.
func (t *turn) write(l level) error {
	var paths []string
	for _, c := range t.claims {
		if c.Mode == history.Exclusive {
			paths = append(paths, c.Path)
		}
	}
	token := l.hold.Token()
	if len(paths) == 0 || token == 0 {
		return nil
	}
	done := l.log.Writing(token)
	place, err := ask(t.conn, token, t.Number, paths)
	done(place, err)
	return err
}

// again enters the hold once more, if it can.
func (t *turn) again(ctx context.Context, outer level) []level {
	way := t.rng.IntN(t.kind.Ways)
	if t.kind.Again(t.claims, way) != nil {
		return nil
	}
	inner, cancel := outer.hold.Context(context.WithoutCancel(ctx))
	defer cancel()
	l, claims := t.lock(way)
	log := outer.log.Again(false, claims...)
	h, err := l.Acquire(inner)
	if err != nil {
		log.Failed(err, errors.Is(err, zklock.ErrLocked))
		return nil
	}
	log.Granted(h.Token(), h.Session(), h.Remaining)
	return []level{{h, log}}
}

// downgrade makes the writer a reader, or finds out that nobody knows.
func (t *turn) downgrade(l level) {
	wait, cancel := context.WithTimeout(context.Background(), t.Timeout)
	defer cancel()
	done := l.log.Downgrading()
	if err := l.hold.Downgrade(wait); err != nil {
		done(history.Info, err)
		return
	}
	done(history.OK, nil)
}

// release gives one level back and writes down how that went.
func release(l level) {
	wait, cancel := context.WithTimeout(context.Background(), releaseWait)
	defer cancel()
	done := l.log.Releasing()
	err := l.hold.Release(wait)
	switch {
	case err == nil:
		done(history.OK, nil)
	case errors.Is(err, zklock.ErrLost):
		done(history.Fail, err) // it had ended before
	default:
		done(history.Info, err)
	}
}
