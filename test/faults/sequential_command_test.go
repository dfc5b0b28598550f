package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/model"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// commandNames returns the commands. Frequent ones are repeated.
func commandNames() []string {
	return []string{
		"acquire", "acquire", "acquire", "acquire", "try", "try", "release", "release", "release", "cancel",
		"again", "again", "downgrade", "guard", "verify", "expire", "expire", "cut", "drop", "drop", "restart", "pass",
		"revoke",
	}
}

// do runs one command and compares the result with the model.
func (s *sequence) do(t *testing.T, c Command) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// A fault stays armed only for its own step and the next one. Otherwise, it could affect
	// a much later command, and a shrunk run would not show the reason.
	armed := s.faults
	err := s.perform(ctx, t, c)
	if err == nil {
		err = s.compare()
	}
	for _, f := range armed {
		f.Stop()
	}
	s.faults = s.faults[len(armed):]
	return err
}

func (s *sequence) perform(ctx context.Context, t *testing.T, c Command) error {
	// A drawn number selects among the current holds and waiters, so that commands stay valid
	// if rapid omits earlier ones.
	holding := s.sorted(func(p *attempt) bool { return len(p.levels) > 0 })
	waiting := s.sorted(func(p *attempt) bool { return len(p.levels) == 0 })
	switch c.Do {
	case "acquire":
		// More waiters only lead to more worlds.
		if len(waiting) < 5 {
			s.acquire(t.Context(), c)
		}
	case "try":
		return s.try(ctx, c)
	case "cancel":
		if len(waiting) > 0 {
			s.giveUp(waiting[c.Target%len(waiting)])
		}
	case "expire":
		return s.expire(c.Target%len(s.clients), waiting)
	case "revoke":
		return s.revoke(ctx)
	case "cut", "drop", "restart", "pass":
		s.disturb(t, c)
	default:
		if len(holding) > 0 {
			return s.onHold(ctx, c, s.attempts[holding[c.Target%len(holding)]])
		}
	}
	return nil
}

// onHold runs a command on a hold.
func (s *sequence) onHold(ctx context.Context, c Command, p *attempt) error {
	l := p.levels[c.Detail%len(p.levels)]
	switch c.Do {
	case "release":
		return s.release(ctx, p, c.Detail%len(p.levels))
	case "again":
		return s.again(ctx, p, l, c.Way)
	case "downgrade":
		return s.downgrade(ctx, p, l)
	case "verify":
		// The answer may be lost.
		err := retry(ctx, func() error { return l.hold.Verify(ctx) })
		if s.kind.Unguarded && errors.Is(err, zklock.ErrInvalidLock) {
			return nil
		}
		return err
	case "guard":
		return s.guard(ctx, p, l)
	}
	return fmt.Errorf("unknown command %q", c.Do)
}

// newAttempt returns a new attempt.
func (s *sequence) newAttempt(c Command) (*attempt, *zklock.Lock) {
	s.names++
	p := &attempt{id: s.names, client: c.Target % len(s.clients), cancel: func() {}}
	p.way = c.Way % s.kind.Ways
	lock, claims := s.kind.Lock(s.clients[p.client], s.root+"/x", p.way)
	p.claims = claims
	return p, lock
}

func (s *sequence) client(p *attempt) string { return fmt.Sprintf("client %d", p.client) }

// acquire starts an acquire without a timeout.
func (s *sequence) acquire(parent context.Context, c Command) {
	p, lock := s.newAttempt(c)
	ctx, cancel := context.WithCancel(parent)
	p.cancel, p.answer = cancel, make(chan answer, 1)
	s.attempts[p.id] = p
	answers := p.answer
	s.running.Go(func() { // ends with the acquire, which close cancels
		log := s.rec.Acquire(s.client(p), false, recorded(p.claims)...)
		h, err := lock.Acquire(ctx)
		granted(log, h, err)
		answers <- answer{h, err, log}
	})
	s.update(func(w *World) *World { return w.Arrive(p.id, p.client, p.claims) })
}

// try makes a try. It must be refused in the worlds in which it would wait.
func (s *sequence) try(ctx context.Context, c Command) error {
	p, lock := s.newAttempt(c)
	log := s.rec.Acquire(s.client(p), true, recorded(p.claims)...)
	h, err := lock.TryAcquire(ctx)
	granted(log, h, err)
	// The result shows which of the worlds match.
	s.update(func(w *World) *World { return w.Arrive(p.id, p.client, p.claims) })
	could := func(w *World) bool { return slices.Contains(w.Held(), p.id) }
	before := s.worlds
	switch {
	case err == nil:
		s.worlds = slices.DeleteFunc(slices.Clone(before), func(w *World) bool { return !could(w) })
		p.levels = []level{{h, log}}
		s.attempts[p.id] = p
	case errors.Is(err, zklock.ErrLocked):
		s.worlds = slices.DeleteFunc(slices.Clone(before), could)
		s.update(func(w *World) *World { return w.Leave(p.id) })
	default:
		return err
	}
	if len(s.worlds) == 0 {
		return fmt.Errorf("the try of %v returned %v, in none of %v", p.claims, err, before)
	}
	return nil
}

// giveUp cancels a waiting acquire.
func (s *sequence) giveUp(id int) {
	p := s.attempts[id]
	p.cancel()
	<-p.answer // the client deletes the entry in the background, before compare
	delete(s.attempts, id)
	s.update(func(w *World) *World { return w.Leave(id) })
}

// release releases one level.
func (s *sequence) release(ctx context.Context, p *attempt, i int) error {
	if err := p.levels[i].release(ctx, false); err != nil {
		return err
	}
	if err := p.levels[i].hold.Err(); !errors.Is(err, zklock.ErrReleased) {
		return fmt.Errorf("after the release of %d: %w", p.id, err)
	}
	// The hold's other levels, if any, keep the lock.
	if p.levels = slices.Delete(p.levels, i, i+1); len(p.levels) == 0 {
		delete(s.attempts, p.id)
	}
	s.update(func(w *World) *World { return w.Exit(p.id) })
	return nil
}

// again acquires under the context of a hold.
func (s *sequence) again(ctx context.Context, p *attempt, l level, way int) error {
	if s.kind.Reenter == nil {
		return nil
	}
	inner, cancel := l.hold.Context(ctx)
	defer cancel()
	way %= s.kind.Ways
	lock, claims := s.kind.Lock(s.clients[p.client], s.root+"/x", way)
	want := s.kind.Reenter(p.claims, way)
	if want == errOrdinary {
		return nil
	}
	// Under its own hold, an acquire never waits, even if other clients wait: it is granted or
	// refused at once.
	log := l.log.Reenter(false, recorded(claims)...)
	h, err := lock.Acquire(inner)
	granted(log, h, err)
	switch {
	case !errors.Is(err, want), (err == nil) != (want == nil):
		return fmt.Errorf("reentry: %v, wanted %v", err, want)
	case err != nil:
		return nil
	case h.Token() != l.hold.Token() || h.Node() != l.hold.Node():
		return fmt.Errorf("reentry: token %#x of %s inside of %#x of %s", h.Token(), h.Node(), l.hold.Token(), l.hold.Node())
	}
	p.levels = append(p.levels, level{h, log})
	s.update(func(w *World) *World { return w.Enter(p.id) })
	return nil
}

// guard writes under the hold's guard.
func (s *sequence) guard(ctx context.Context, p *attempt, l level) error {
	if s.kind.Unguarded {
		if err := l.hold.Guard(ctx, zk.SetOp(guardPath, nil, -1)); !errors.Is(err, zklock.ErrInvalidLock) {
			return fmt.Errorf("a guard by %s, whose name is reusable: %w", l.hold.Node(), err)
		}
		return nil
	}
	// Another client must see the operation applied.
	mark := fmt.Sprintf("by %d", p.id)
	err := retry(ctx, func() error { return l.hold.Guard(ctx, zk.SetOp(guardPath, []byte(mark), -1)) })
	if err != nil {
		return err
	}
	data, _, err := s.ops.Get(ctx, guardPath)
	if err == nil && string(data) != mark {
		err = fmt.Errorf("the guarded operation wrote %q, not %q", data, mark)
	}
	return err
}

// downgrade downgrades a hold.
func (s *sequence) downgrade(ctx context.Context, p *attempt, l level) error {
	// The holds of readers and mutexes, and a hold that was entered again, cannot be
	// downgraded, and the call must have no effect.
	if len(p.levels) > 1 || !s.kind.canDowngrade(p.claims, p.way) {
		if err := l.hold.Downgrade(ctx); !errors.Is(err, zklock.ErrInvalidLock) {
			return fmt.Errorf("a downgrade of %v: %w", p.claims, err)
		}
		return nil
	}
	token := l.hold.Token()
	done := l.log.Downgrading()
	if err := l.hold.Downgrade(ctx); err != nil {
		done(model.Fail, err)
		return err
	}
	done(model.OK, nil)
	if l.hold.Token() != token {
		return fmt.Errorf("token %#x after the downgrade of %#x", l.hold.Token(), token)
	}
	p.claims = slices.Clone(p.claims)
	p.claims[0].Mode = model.Shared
	s.update(func(w *World) *World { return w.Downgrade(p.id) })
	return nil
}

// expire makes an operator end a client's session. Its holds must report that. It does
// nothing if more than two waiters would enqueue again, which leads to too many worlds.
func (s *sequence) expire(client int, waiting []int) error {
	var session int64
	back := slices.DeleteFunc(waiting, func(id int) bool { return s.attempts[id].client != client })
	if len(back) > 2 {
		return nil
	}
	for _, p := range s.attempts {
		if p.client == client && len(p.levels) > 0 {
			session = p.levels[0].hold.Session()
		}
	}
	if session == 0 {
		return nil // without a hold, the session is unknown
	}
	// From here on, the hold is not certain, although the client does not know yet.
	done := s.rec.Expire(session)
	err := s.srv.ExpireSession(session)
	done(err)
	s.update(func(w *World) *World { return w.Expire(client) })
	return err
}

// disturb injects a fault that must not change the locks.
func (s *sequence) disturb(t *testing.T, c Command) {
	switch c.Do {
	case "cut":
		s.srv.CutConnections()
	case "drop":
		m := zktest.Match{Op: []string{"create2", "multi", "delete", "getChildren2", "exists", "getData"}[c.Way%6], Skip: c.Detail % 2}
		// A lost reply and a lost request look the same to the client. Only in the first case,
		// the request was applied.
		drop := s.srv.DropReply
		if c.Target%2 == 0 {
			drop = s.srv.DropRequest
		}
		s.faults = append(s.faults, drop(m))
	case "restart":
		s.srv.Restart(t)
	case "pass":
		// Several heartbeats, and up to two timeouts: sessions must stay alive.
		time.Sleep(time.Duration(1+c.Detail%8) * sequentialTimeout / 4)
	}
}

// revoke sends a release request to the holders. Each of them must receive it, and no hold
// may change.
func (s *sequence) revoke(ctx context.Context) error {
	if s.kind.Several {
		return nil
	}
	held := s.sorted(func(p *attempt) bool { return len(p.levels) > 0 })
	received := map[int]<-chan struct{}{}
	for _, id := range held {
		received[id] = s.attempts[id].levels[0].hold.Revoked()
	}
	s.quiesce()
	lock, _ := s.kind.Lock(s.inspector, s.root+"/x", 0)
	requested, err := lock.Revoke(ctx)
	if n := s.entries(held, true); err == nil && len(requested) != n {
		err = fmt.Errorf("revoke sent requests to %d holders, not %d", len(requested), n)
	}
	if err != nil {
		return err
	}
	s.quiesce()
	for id, c := range received {
		select {
		case <-c:
		default:
			return fmt.Errorf("%d did not receive the release request", id)
		}
	}
	return nil
}
