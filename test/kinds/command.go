package kinds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// guardPath is the znode that guarded operations write to.
const guardPath = "/guarded"

// Words are the commands, each as often as it is to be drawn.
func Words() []string {
	return []string{
		"acquire", "acquire", "acquire", "acquire", "try", "try", "release", "release", "release", "cancel",
		"again", "again", "downgrade", "guard", "verify", "expire", "expire", "cut", "drop", "drop", "restart", "pass",
		"revoke",
	}
}

// do carries out one command and compares what came of it with the model.
func (s *stage) do(t *testing.T, c Command) error {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	// A fault stays armed for the step that arms it and the next one. Longer, and it
	// would hit in the midst of something long after, where a play that is shrunk
	// shows no reason for it.
	armed := s.faults
	err := s.perform(ctx, t, c)
	if err == nil {
		err = s.compare()
	}
	for _, f := range armed {
		f.Stop() // it had this whole step to find its request
	}
	s.faults = s.faults[len(armed):]
	return err
}

func (s *stage) perform(ctx context.Context, t *testing.T, c Command) error {
	// What is drawn is a number; whom it means depends on who is there by now, so
	// that commands stay meaningful when rapid leaves out some before them.
	holding := s.sorted(func(p *part) bool { return len(p.levels) > 0 })
	waiting := s.sorted(func(p *part) bool { return len(p.levels) == 0 })
	switch c.Do {
	case "acquire":
		// More waiters make more orders to be told apart, and show nothing new.
		if len(waiting) < 5 {
			s.acquire(t.Context(), c)
		}
	case "try":
		return s.try(ctx, c)
	case "cancel":
		if len(waiting) > 0 {
			s.giveUp(waiting[c.Who%len(waiting)])
		}
	case "expire":
		return s.expire(c.Who%len(s.clients), waiting)
	case "revoke":
		return s.revoke(ctx)
	case "cut", "drop", "restart", "pass":
		s.disturb(t, c)
	default:
		if len(holding) > 0 {
			return s.onHold(ctx, c, s.parts[holding[c.Who%len(holding)]])
		}
	}
	return nil
}

// onHold does something with a hold.
func (s *stage) onHold(ctx context.Context, c Command, p *part) error {
	l := p.levels[c.Some%len(p.levels)]
	switch c.Do {
	case "release":
		return s.release(ctx, p, c.Some%len(p.levels))
	case "again":
		return s.again(ctx, p, l, c.How)
	case "downgrade":
		return s.downgrade(ctx, p, l)
	case "verify":
		err := l.hold.Verify(ctx)
		if s.kind.Unguarded && errors.Is(err, zklock.ErrInvalidLock) {
			return nil
		}
		return err
	case "guard":
		return s.guard(ctx, p, l)
	}
	return fmt.Errorf("unknown command %q", c.Do)
}

// begin names a new part.
func (s *stage) begin(c Command) (*part, *zklock.Lock) {
	s.names++
	p := &part{id: s.names, client: c.Who % len(s.clients), cancel: func() {}}
	p.way = c.How % s.kind.Ways
	lock, claims := s.kind.Ask(s.clients[p.client], s.root+"/x", p.way)
	p.claims = claims
	return p, lock
}

func (s *stage) client(p *part) string { return fmt.Sprintf("client %d", p.client) }

// acquire begins one that waits as long as it must.
func (s *stage) acquire(parent context.Context, c Command) {
	p, lock := s.begin(c)
	ctx, cancel := context.WithCancel(parent)
	p.cancel, p.answer = cancel, make(chan answer, 1)
	s.parts[p.id] = p
	answers := p.answer
	s.running.Go(func() { // ends with the acquire, which close cancels at the latest
		log := s.rec.Acquire(s.client(p), false, logged(p.claims)...)
		h, err := lock.Acquire(ctx)
		answers <- grant(log, h, err)
	})
	s.become(func(w *World) *World { return w.Arrive(p.id, p.client, p.claims) })
}

// try asks, and is refused in those worlds in which it would have to wait.
func (s *stage) try(ctx context.Context, c Command) error {
	p, lock := s.begin(c)
	log := s.rec.Acquire(s.client(p), true, logged(p.claims)...)
	h, err := lock.TryAcquire(ctx)
	grant(log, h, err)
	// A try is an acquire that may not wait: it arrives as any other, and what it
	// returned tells in which of the worlds we are.
	s.become(func(w *World) *World { return w.Arrive(p.id, p.client, p.claims) })
	could := func(w *World) bool { return slices.Contains(w.Held(), p.id) }
	before := s.worlds
	switch {
	case err == nil:
		s.worlds = slices.DeleteFunc(slices.Clone(before), func(w *World) bool { return !could(w) })
		p.levels = []level{{h, log}}
		s.parts[p.id] = p
	case errors.Is(err, zklock.ErrLocked):
		s.worlds = slices.DeleteFunc(slices.Clone(before), could)
		s.become(func(w *World) *World { return w.Leave(p.id) })
	default:
		return err
	}
	if len(s.worlds) == 0 {
		return fmt.Errorf("the try of %v returned %v, in none of %v", p.claims, err, before)
	}
	return nil
}

// giveUp cancels an acquire that waits.
func (s *stage) giveUp(id int) {
	p := s.parts[id]
	p.cancel()
	<-p.answer // it returns at once; its znodes go in the background, before anything is compared
	delete(s.parts, id)
	s.become(func(w *World) *World { return w.Leave(id) })
}

// release gives one level back.
func (s *stage) release(ctx context.Context, p *part, i int) error {
	if err := release(ctx, p.levels[i]); err != nil {
		return err
	}
	if err := p.levels[i].hold.Err(); !errors.Is(err, zklock.ErrReleased) {
		return fmt.Errorf("after the release of %d: %w", p.id, err)
	}
	// The hold's other levels, if it has any, keep the lock.
	if p.levels = slices.Delete(p.levels, i, i+1); len(p.levels) == 0 {
		delete(s.parts, p.id)
	}
	s.become(func(w *World) *World { return w.Exit(p.id) })
	return nil
}

// again asks under the context of a hold.
func (s *stage) again(ctx context.Context, p *part, l level, way int) error {
	if s.kind.Again == nil {
		return nil
	}
	inner, cancel := l.hold.Context(ctx)
	defer cancel()
	way %= s.kind.Ways
	lock, claims := s.kind.Ask(s.clients[p.client], s.root+"/x", way)
	want := s.kind.Again(p.claims, way)
	if want == errOrdinary {
		return nil
	}
	// Under its own hold an acquire never waits, whoever else does: it is granted or
	// refused while nobody moves. That it returns at all is part of the test.
	log := l.log.Again(false, logged(claims)...)
	h, err := lock.Acquire(inner)
	grant(log, h, err)
	switch {
	case !errors.Is(err, want), (err == nil) != (want == nil):
		return fmt.Errorf("again: %v, wanted %v", err, want)
	case err != nil:
		return nil
	case h.Token() != l.hold.Token() || h.Node() != l.hold.Node():
		return fmt.Errorf("again: token %#x of %s inside of %#x of %s", h.Token(), h.Node(), l.hold.Token(), l.hold.Node())
	}
	p.levels = append(p.levels, level{h, log})
	s.become(func(w *World) *World { return w.Enter(p.id) })
	return nil
}

// guard writes under the hold's guard.
func (s *stage) guard(ctx context.Context, p *part, l level) error {
	if s.kind.Unguarded {
		if err := l.hold.Guard(ctx, zk.SetOp(guardPath, nil, -1)); !errors.Is(err, zklock.ErrInvalidLock) {
			return fmt.Errorf("a guard by %s, whose name is not its own: %w", l.hold.Node(), err)
		}
		return nil
	}
	// The operation is not just accepted: somebody else sees it done.
	mark := fmt.Sprintf("by %d", p.id)
	if err := l.hold.Guard(ctx, zk.SetOp(guardPath, []byte(mark), -1)); err != nil {
		return err
	}
	data, _, err := s.ops.Get(ctx, guardPath)
	if err == nil && string(data) != mark {
		err = fmt.Errorf("the guarded operation wrote %q, not %q", data, mark)
	}
	return err
}

// downgrade makes a writer a reader.
func (s *stage) downgrade(ctx context.Context, p *part, l level) error {
	// A reader's hold, a mutex's and one that was entered again can't be lowered, and
	// nothing may come of the attempt.
	if len(p.levels) > 1 || !s.kind.lowers(p.claims, p.way) {
		if err := l.hold.Downgrade(ctx); !errors.Is(err, zklock.ErrInvalidLock) {
			return fmt.Errorf("a downgrade of %v: %w", p.claims, err)
		}
		return nil
	}
	token := l.hold.Token()
	done := l.log.Downgrading()
	if err := l.hold.Downgrade(ctx); err != nil {
		done(history.Fail, err)
		return err
	}
	done(history.OK, nil)
	if l.hold.Token() != token {
		return fmt.Errorf("token %#x after the downgrade of %#x", l.hold.Token(), token)
	}
	p.claims = slices.Clone(p.claims)
	p.claims[0].Mode = history.Shared
	s.become(func(w *World) *World { return w.Lower(p.id) })
	return nil
}

// expire has an operator end a client's session. What it held must say so. The
// order in which more than two waiters come back would be too open.
func (s *stage) expire(client int, waiting []int) error {
	var session int64
	back := slices.DeleteFunc(waiting, func(id int) bool { return s.parts[id].client != client })
	if len(back) > 2 {
		return nil
	}
	for _, p := range s.parts {
		if p.client == client && len(p.levels) > 0 {
			session = p.levels[0].hold.Session()
		}
	}
	if session == 0 {
		return nil // it holds nothing that would tell its session
	}
	// It is written down before it is done: from here on the hold is not certain,
	// although the client can't know yet.
	done := s.rec.Expire(session)
	err := s.srv.ExpireSession(session)
	done(err)
	s.become(func(w *World) *World { return w.Expire(client) })
	return err
}

// disturb does what must not change anything.
func (s *stage) disturb(t *testing.T, c Command) {
	switch c.Do {
	case "cut":
		s.srv.CutConnections()
	case "drop":
		m := zktest.Match{Op: []string{"create2", "multi", "delete", "getChildren2", "exists", "getData"}[c.How%6], Skip: c.Some % 2}
		// A reply that is lost leaves a request that was applied, of which the client
		// can't know; a request that is lost looks the same to it and is not.
		drop := s.srv.DropReply
		if c.Who%2 == 0 {
			drop = s.srv.DropRequest
		}
		s.faults = append(s.faults, drop(m))
	case "restart":
		s.srv.Restart(t)
	case "pass":
		// Several heartbeats, and up to two timeouts: what lives by them has to.
		time.Sleep(time.Duration(1+c.Some%8) * sessionTimeout / 4)
	}
}
