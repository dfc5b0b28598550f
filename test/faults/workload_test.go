package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/test/model"
	"github.com/zklock/zklock/zk"
)

// releaseWait bounds the wait for the confirmation of a release.
const releaseWait = 10 * time.Second

// guardPath is the parent of the znodes that guarded writes create. No fault changes it.
const guardPath = "/guarded"

// impossibleVersion is a version that [guardPath] never has.
const impossibleVersion = 99

// A workload is one goroutine of a client. It acquires, tries, cancels, enters again,
// downgrades, writes, and releases locks of one kind, and records each step.
type workload struct {
	kind    Kind
	client  string // its name in the history
	locks   *zklock.Client
	rec     *model.Recorder
	rng     *rand.Rand
	timeout time.Duration // of the session
	pace    time.Duration // the longest pause between two steps
	// write writes to the guarded resource.
	write func(token int64, paths []string) (place int64, err error)
	// wrongPath makes the workload lock another path than the history says.
	wrongPath bool
	// closing is set before the client is closed while in use; nil if that never happens.
	closing *atomic.Bool
	// guarded receives the answers to guarded writes; nil if they are not checked.
	guarded *guardAnswers
	// revoked is the number of release requests that arrived.
	revoked atomic.Int64
	// writes are the guarded writes in flight.
	writes sync.WaitGroup
}

// level is one level of a hold that may be entered several times.
type level struct {
	hold *zklock.Hold
	log  *model.Attempt
}

// lockPath is the path of a kind's locks.
func lockPath(kind string) string { return "/" + kind + "/x" }

// granted records the result of an acquire.
func granted(log *model.Attempt, h *zklock.Hold, err error) {
	if err != nil {
		log.Failed(err, errors.Is(err, zklock.ErrLocked))
		return
	}
	log.Granted(h.Token(), h.Session(), h.Remaining)
}

// granted records the result of an acquire. An acquire that fails because the test closes the
// client is recorded as a timeout.
func (w *workload) granted(log *model.Attempt, h *zklock.Hold, err error) {
	if errors.Is(err, zklock.ErrClosed) && w.closing != nil && w.closing.Load() {
		err = context.DeadlineExceeded
	}
	granted(log, h, err)
}

// lock returns a lock of the kind, and its claims.
func (w *workload) lock(way int) (*zklock.Lock, []model.Claim) {
	l, claims := w.kind.Lock(w.locks, lockPath(w.kind.Name), way)
	if w.wrongPath {
		l, _ = w.kind.Lock(w.locks, lockPath(w.kind.Name+w.client), way)
	}
	return l, recorded(claims)
}

// run acquires and releases until ctx is done. It returns an error of the resource.
func (w *workload) run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := w.once(ctx); err != nil {
			return err
		}
		harness.Sleep(ctx, w.random(w.pace/2))
	}
	return nil
}

// random returns a duration up to d.
func (w *workload) random(d time.Duration) time.Duration {
	return time.Duration(1 + w.rng.Int64N(int64(d)))
}

// once acquires, uses, and releases a lock.
func (w *workload) once(ctx context.Context) error {
	way := w.rng.IntN(w.kind.Ways)
	l, claims := w.lock(way)
	// The end of ctx does not cancel a started acquire. Only its own timeout does.
	wait, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	if w.rng.IntN(3) == 0 {
		wait, cancel = context.WithTimeout(wait, w.random(w.timeout))
		defer cancel()
	}
	try := w.rng.IntN(6) == 0
	log := w.rec.Acquire(w.client, try, claims...)
	acquire := l.Acquire
	if try {
		acquire = l.TryAcquire
	}
	h, err := acquire(wait)
	w.granted(log, h, err)
	if errors.Is(err, zk.ErrNoAuth) {
		harness.Sleep(ctx, w.timeout/16) // do not retry at once without permission
	}
	if err != nil {
		return nil
	}
	return w.hold(ctx, l, level{h, log}, way, claims)
}

// hold uses a lock and releases it.
func (w *workload) hold(ctx context.Context, lock *zklock.Lock, outer level, way int, claims []model.Claim) error {
	defer w.writes.Wait()
	levels := []level{outer}
	downgraded := false
	// Each check of the hold extends the time in which the history is certain of the hold.
	held := func() bool { return outer.log.Held(outer.hold.Err, outer.hold.Remaining) == nil }
	for range 1 + w.rng.IntN(3) {
		if !held() {
			break
		}
		if !downgraded {
			if err := w.use(ctx, outer, claims); err != nil {
				return err
			}
			if !held() {
				break
			}
		}
		w.idle(outer.hold)
		switch {
		case w.kind.Reenter != nil && !downgraded && w.rng.IntN(3) == 0:
			levels = append(levels, w.again(ctx, outer, claims)...)
		case w.kind.canDowngrade(claims, way) && len(levels) == 1 && !downgraded && w.rng.IntN(3) == 0:
			w.downgrade(outer)
			downgraded = true
		case w.rng.IntN(6) == 0:
			w.verify(ctx, outer)
		case w.rng.IntN(12) == 0:
			w.revoke(ctx, lock, outer.hold)
		}
	}
	return w.release(levels)
}

// release releases the levels of one hold in any order, or all at once.
func (w *workload) release(levels []level) error {
	var all sync.WaitGroup
	defer all.Wait()
	w.rng.Shuffle(len(levels), func(i, j int) { levels[i], levels[j] = levels[j], levels[i] })
	for _, l := range levels {
		early := w.rng.IntN(4) == 0
		one := func() {
			wait, cancel := context.WithTimeout(context.Background(), releaseWait)
			defer cancel()
			_ = l.release(wait, early) // the history has the outcome
		}
		if w.rng.IntN(2) == 0 {
			all.Go(one) // ends after releaseWait
		} else {
			one()
		}
	}
	all.Wait()
	for _, l := range levels {
		if err, left := l.hold.Err(), l.hold.Remaining(); err == nil || left != 0 {
			return fmt.Errorf("faults: %s: held for %v after its release", w.kind.Name, left)
		}
	}
	return nil
}

// idle does nothing for a short time, and for a long time in one of 200 calls.
func (w *workload) idle(h *zklock.Hold) {
	d := w.pace
	if w.rng.IntN(200) == 0 {
		d = w.timeout / 8
	}
	timer := time.NewTimer(w.random(d))
	defer timer.Stop()
	select {
	case <-h.Done():
	case <-timer.C:
	}
}

// use writes to the resource for the exclusive paths of the hold. Some holds also make
// guarded writes.
func (w *workload) use(ctx context.Context, l level, claims []model.Claim) error {
	var paths []string
	for _, c := range claims {
		if c.Mode == model.Exclusive {
			paths = append(paths, c.Path)
		}
	}
	token := l.hold.Token()
	if len(paths) == 0 || token == 0 {
		return nil
	}
	done := l.log.Writing(token)
	place, err := w.write(token, paths)
	done(place, err)
	if err == nil && !w.kind.Unguarded && w.rng.IntN(4) == 0 {
		w.guard(ctx, l.hold, paths)
	}
	return err
}

// guard makes a guarded write after a short pause, in which the hold may be downgraded,
// released, or lost. The write creates a sequential znode with the token for each path.
func (w *workload) guard(ctx context.Context, h *zklock.Hold, paths []string) {
	var ops []zk.Op
	token := strconv.FormatInt(h.Token(), 10)
	for _, p := range paths {
		ops = append(ops, zk.CreateOp(path.Join(guardPath, w.kind.Name, path.Base(p)+"-"), []byte(token), nil, zk.ModePersistentSequential))
	}
	if w.rng.IntN(8) == 0 {
		ops = append(ops, zk.CheckOp(guardPath, impossibleVersion))
	}
	pause := w.random(w.pace)
	w.writes.Go(func() { // ends with its timeout; hold waits for it
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.timeout)
		defer cancel()
		harness.Sleep(wait, pause)
		// The write may fail, or its outcome may be unknown. checkGuarded checks the order.
		err := h.Guard(wait, ops...)
		if w.guarded != nil {
			w.guarded.add(paths, token, err)
		}
	})
}

// verify checks the hold on the servers.
func (w *workload) verify(ctx context.Context, l level) {
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.timeout)
	defer cancel()
	_ = l.log.Verify(func() error { return l.hold.Verify(wait) })
}

// revoke sends a release request to all holders, and waits until the hold receives it or
// ends.
func (w *workload) revoke(ctx context.Context, lock *zklock.Lock, h *zklock.Hold) {
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.timeout/8)
	defer cancel()
	revoked := h.Revoked()
	if _, err := lock.Revoke(wait); err != nil {
		return // because of a fault
	}
	select {
	case <-revoked:
		w.revoked.Add(1)
	case <-h.Done():
	case <-wait.Done():
	}
}

// again enters the hold again, if the kind permits it.
func (w *workload) again(ctx context.Context, outer level, claims []model.Claim) []level {
	way := w.rng.IntN(w.kind.Ways)
	if w.kind.Reenter(claims, way) != nil {
		return nil
	}
	inner, cancel := outer.hold.Context(context.WithoutCancel(ctx))
	defer cancel()
	l, inside := w.lock(way)
	log := outer.log.Reenter(false, inside...)
	h, err := l.Acquire(inner)
	w.granted(log, h, err)
	if err != nil {
		return nil
	}
	levels := []level{{h, log}}
	if w.rng.IntN(3) == 0 {
		levels = append(levels, w.again(ctx, levels[0], inside)...)
	}
	return levels
}

// downgrade downgrades a hold.
func (w *workload) downgrade(l level) {
	wait, cancel := context.WithTimeout(context.Background(), w.timeout)
	defer cancel()
	done := l.log.Downgrading()
	if err := l.hold.Downgrade(wait); err != nil {
		// The downgrade may have failed, or may continue in the background.
		done(model.Info, err)
		return
	}
	done(model.OK, nil)
}

// release releases one level and records the outcome. If early, it ends the hold before it
// waits for the server. It returns no error for a hold that was lost before.
func (l level) release(ctx context.Context, early bool) error {
	done := l.log.Releasing()
	inner, cancel := l.hold.Context(context.WithoutCancel(ctx))
	defer cancel()
	if early {
		_ = l.hold.ReleaseAsync() // Release returns the outcome
	}
	err := l.hold.Release(ctx)
	<-inner.Done() // the context of a hold ends with it
	switch {
	case err == nil:
		done(model.OK, nil)
	case errors.Is(err, zklock.ErrLost):
		done(model.Fail, err)
		return nil
	default:
		done(model.Info, err)
	}
	return err
}
