package bench

import (
	"context"
	"time"
)

// trial is one experiment: a recipe with a number of waiters. One goroutine runs
// it; the sessions' readers tell it of grants and troubles by channels.
type trial struct {
	recipe   Recipe
	sessions []*session
	entrants []*entrant
	entered  int // how often somebody entered

	exclusion exclusion
	grants    chan grant // has room for every entrant
	troubles  chan error // has room for the first
}

// entrant is a contender and where it is. The trial's goroutine alone uses it.
type entrant struct {
	contender
	home  *session
	write bool // as what it entered last: a writer, or a reader
}

// grant tells that an entrant holds the lock, or why it can't.
type grant struct {
	who *entrant
	at  time.Time
	err error
}

// newTrial spreads the contenders for the lock at path over the sessions, one
// after the other, so that neighbours in the queue have different ones.
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

// trouble ends the trial with an error, unless one has ended it already.
func (t *trial) trouble(err error) {
	select {
	case t.troubles <- err:
	default:
	}
}

// enter lets an entrant take its place. Of a read-write lock every second who
// arrives is a reader, so that each release lets in exactly one.
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

// settle waits until all is quiet, and finds out whether the trial is void.
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

// begin brings the first entrant to hold the lock and all others to wait. They
// take their places before any of them looks, so that a herd is not let loose by
// every arrival.
func (t *trial) begin(ctx context.Context) (*entrant, error) {
	// Without a queue the first one holds only if it is there before the others.
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

// measured does what act does, waits until all is quiet, and returns what that
// cost, with what the actor's own session was told apart.
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

// round lets the holder go and the next one in, then the old holder back to the
// end of the queue. It returns the new holder.
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
	// The time is the grant's own, not that at which this goroutine heard of it.
	row.count(release, arrival, next.at.Sub(began))
	return next.who, nil
}

// run counts releases into the row, at least one, until there are enough or the
// slice of time is over.
func (t *trial) run(ctx context.Context, releases int, slice time.Duration, row *Row) error {
	began := time.Now()
	holder, err := t.begin(ctx)
	for err == nil && row.Releases < releases && (row.Releases == 0 || time.Since(began) < slice) {
		holder, err = t.round(ctx, holder, row)
	}
	return err
}
