package bench

import (
	"context"
	"time"
)

// trial is one experiment: a recipe with a number of waiters. One goroutine runs it, and
// the sessions' readers send grants and errors to it.
type trial struct {
	recipe   Recipe
	sessions []*session
	entrants []*entrant
	entered  int // number of calls of enter

	exclusion exclusion
	grants    chan grant // has room for every entrant
	troubles  chan error // has room for the first
}

// entrant is a contender and its session. Only the trial's goroutine uses it.
type entrant struct {
	contender
	home  *session
	write bool // whether it last entered as a writer
}

// grant reports that an entrant holds the lock, or why its acquire failed.
type grant struct {
	who *entrant
	at  time.Time
	err error
}

// newTrial distributes the contenders for the lock at path over the sessions, so that
// neighbors in the queue have different sessions.
func newTrial(recipe Recipe, path string, sessions []*session, contenders int) *trial {
	t := &trial{
		recipe: recipe, sessions: sessions,
		grants: make(chan grant, contenders), troubles: make(chan error, 1),
	}
	for i := range contenders {
		home := sessions[i%len(sessions)]
		e := &entrant{contender: recipe.join(home.client, path), home: home}
		home.members = append(home.members, e.contender)
		t.entrants = append(t.entrants, e)
	}
	for _, s := range sessions {
		s.listen(t.trouble)
	}
	return t
}

// trouble ends the trial with an error, unless it has ended with one already.
func (t *trial) trouble(err error) {
	select {
	case t.troubles <- err:
	default:
	}
}

// enter enqueues an entrant. In a read-write lock, every second entrant is a reader, so
// that each release grants exactly one.
func (t *trial) enter(ctx context.Context, e *entrant) error {
	write := t.recipe.Kind != ReadWrite || t.entered%2 == 0
	t.entered++
	e.write = write
	return e.enter(ctx, write, func(err error) {
		if err == nil && !t.exclusion.grant(write) {
			t.trouble(ErrExclusion)
		}
		t.grants <- grant{e, time.Now(), err}
	})
}

// granted waits for the next grant, or for the first error.
func (t *trial) granted(ctx context.Context) (grant, error) {
	select {
	case g := <-t.grants:
		return g, g.err
	case err := <-t.troubles:
		return grant{}, err
	case <-ctx.Done():
		return grant{}, ctx.Err()
	}
}

// settle waits for the end of all traffic, and returns an error if the trial is invalid.
func (t *trial) settle(ctx context.Context) error {
	if err := quiet(ctx, t.sessions); err != nil {
		return err
	}
	select {
	case err := <-t.troubles:
		return err
	default:
		return nil
	}
}

// begin makes the first entrant the holder and all others waiters. They enqueue before any
// of them waits, so that their arrivals do not wake a herd.
func (t *trial) begin(ctx context.Context) (*entrant, error) {
	// Without a queue, the first entrant is the holder only if it acquires before the
	// others try.
	first := t.entrants[0]
	if err := t.enter(ctx, first); err != nil {
		return nil, err
	}
	first.wait()
	if _, err := t.granted(ctx); err != nil {
		return nil, err
	}
	for _, e := range t.entrants[1:] {
		if err := t.enter(ctx, e); err != nil {
			return nil, err
		}
	}
	for _, e := range t.entrants[1:] {
		e.wait()
	}
	return first, t.settle(ctx)
}

// measured calls act, waits for the end of all traffic, and returns its cost. It counts the
// events of the actor's session separately.
func (t *trial) measured(ctx context.Context, actor *session, act func() error) (Traffic, error) {
	var before []Traffic
	for _, s := range t.sessions {
		before = append(before, s.meter.read())
	}
	if err := act(); err != nil {
		return Traffic{}, err
	}
	if err := t.settle(ctx); err != nil {
		return Traffic{}, err
	}
	var cost Traffic
	for i, s := range t.sessions {
		one := s.meter.read().minus(before[i])
		switch {
		case s == actor:
			one.Own, one.Notifications = one.Notifications, 0
		case one.Notifications > 0:
			one.Woken = 1
		}
		cost.add(one)
	}
	return cost, nil
}

// round releases the lock, waits for the next holder, and enqueues the former holder again.
// It returns the new holder.
func (t *trial) round(ctx context.Context, holder *entrant, row *Row) (*entrant, error) {
	var next grant
	var began time.Time
	release, err := t.measured(ctx, holder.home, func() (err error) {
		t.exclusion.leave(holder.write)
		began = time.Now()
		if err = holder.leave(ctx); err == nil {
			next, err = t.granted(ctx)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	arrival, err := t.measured(ctx, holder.home, func() error {
		if err := t.enter(ctx, holder); err != nil {
			return err
		}
		holder.wait()
		return nil
	})
	if err != nil {
		return nil, err
	}
	// The time is that of the grant, not that at which this goroutine received it.
	row.count(release, arrival, next.at.Sub(began))
	return next.who, nil
}

// run counts releases in the row, at least one, until there are enough or the slice of time
// is over.
func (t *trial) run(ctx context.Context, releases int, slice time.Duration, row *Row) error {
	began := time.Now()
	holder, err := t.begin(ctx)
	for err == nil && row.Releases < releases && (row.Releases == 0 || time.Since(began) < slice) {
		holder, err = t.round(ctx, holder, row)
	}
	return err
}
