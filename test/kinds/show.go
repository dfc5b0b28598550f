package kinds

import (
	"context"
	"fmt"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/history"
)

// entries is how many znodes of a hold, or of a waiter, Inspect shows.
func (s *stage) entries(ids []int, held bool) int {
	n := 0
	for _, id := range ids {
		switch c := s.parts[id].claims[0]; {
		case c.Mode == Node && !held:
		case c.Mode == history.Permit && held:
			n += c.Permits
		default:
			n += max(1, s.kind.Names)
		}
	}
	return n
}

// tokens checks that a hold has a token for each of its paths, and that those of
// its queues are the same.
func (p *part) tokens() error {
	h := p.levels[0].hold
	for _, c := range p.claims {
		switch token := h.TokenOf(c.Path); {
		case token <= 0, c.Mode != history.Permit && token != h.Token():
			return fmt.Errorf("%d has the token %#x for %s, and %#x for all", p.id, token, c.Path, h.Token())
		}
	}
	return nil
}

// look asks the lock, past all faults, who holds and who waits.
func (s *stage) look(ctx context.Context) (holders, waiters int, err error) {
	lock, _ := s.kind.Ask(s.looker, s.root+"/x", 0)
	found, err := lock.Inspect(ctx)
	for _, e := range found {
		switch {
		case e.Mode == zklock.Stray:
			err = fmt.Errorf("a stray %s", e.Node)
		case e.Holder:
			holders++
		default:
			waiters++
		}
	}
	return holders, waiters, err
}

// shown checks that Inspect shows those who hold and those who wait.
func (s *stage) shown(held, waiting []int) error {
	if s.kind.Several {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	holders, waiters, err := s.look(ctx)
	if h, w := s.entries(held, true), s.entries(waiting, false); err == nil && (holders != h || waiters != w) {
		err = fmt.Errorf("inspect shows %d holders and %d waiters, of %d and %d", holders, waiters, h, w)
	}
	return err
}

// revoke asks the holders to give the lock back: each of them is told, and
// nothing else happens.
func (s *stage) revoke(ctx context.Context) error {
	if s.kind.Several {
		return nil
	}
	held := s.sorted(func(p *part) bool { return len(p.levels) > 0 })
	told := map[int]<-chan struct{}{}
	for _, id := range held {
		told[id] = s.parts[id].levels[0].hold.Revoked()
	}
	s.settle()
	lock, _ := s.kind.Ask(s.looker, s.root+"/x", 0)
	asked, err := lock.Revoke(ctx)
	if n := s.entries(held, true); err == nil && len(asked) != n {
		err = fmt.Errorf("revoke asked %d, not the %d who hold", len(asked), n)
	}
	if err != nil {
		return err
	}
	s.settle()
	for id, c := range told {
		select {
		case <-c:
		default:
			return fmt.Errorf("%d was not told that the lock is asked back", id)
		}
	}
	return nil
}
