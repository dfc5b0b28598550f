package kinds

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// Command is one step of a play, as it was drawn: what is done, by or to whom.
// The numbers are taken modulo what there is to choose from.
type Command struct {
	Do   string
	Who  int
	How  int
	Some int
}

// sessionTimeout is that of the clients in a play, whose clock is the bubble's.
const sessionTimeout = 20 * time.Second

// stage is where a play is given: a server and some clients with a session each.
type stage struct {
	kind    Kind
	srv     *zktest.Server
	past    func(context.Context, string, string) (net.Conn, error)
	ops     *zk.Client // who looks and meddles
	clients []*zklock.Client
	looker  *zklock.Client // past the faults
	root    string
	rec     *history.Recorder
	parts   map[int]*part
	names   int
	worlds  []*World // one of them is the true one
	vague   bool     // there are too many
	faults  []*zktest.Fault
	running sync.WaitGroup
}

// part is one acquire and its hold.
type part struct {
	id, client int
	way        int
	claims     []history.Claim
	cancel     context.CancelFunc
	answer     chan answer // of an acquire that has not returned
	levels     []level     // of a hold; none while it waits
}

// level is one entry of a hold.
type level struct {
	hold *zklock.Hold
	log  *history.Attempt
}

// answer is what an acquire returned.
type answer struct {
	hold *zklock.Hold
	err  error
	log  *history.Attempt
}

// grant writes down what an acquire returned, at once.
func grant(log *history.Attempt, h *zklock.Hold, err error) answer {
	if err != nil {
		log.Failed(err, errors.Is(err, zklock.ErrLocked))
	} else {
		log.Granted(h.Token(), h.Session(), h.Remaining)
	}
	return answer{h, err, log}
}

// patience bounds what must not take long on the bubble's clock.
const patience = 10 * sessionTimeout

// Play carries out commands one by one in a bubble of its own, and returns the
// history, and what was unlike the model.
func Play(t *testing.T, kind Kind, commands []Command) (h *history.History, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &stage{
			kind: kind, srv: zktest.Start(t), root: "/" + kind.Name, rec: history.NewRecorder(t.Name(), 0),
			parts: map[int]*part{}, worlds: []*World{NewWorld()},
		}
		// Past the relay: the faults are not for this one.
		s.past = past(s.srv)
		s.ops = s.srv.Dial(t, func(o *zk.Options) { o.DialContext = s.past })
		err = s.open(t)
		for i, c := range commands {
			// After the first difference nothing means anything.
			if err != nil || s.vague {
				break
			}
			if err = s.do(t, c); err != nil {
				err = fmt.Errorf("step %d, %+v: %w", i, c, err)
			}
		}
		if e := s.close(t); err == nil {
			err = e
		}
		h = s.rec.History()
	})
	return h, err
}

// open makes the clients.
func (s *stage) open(t *testing.T) error {
	// Three sessions: one holds, one waits, and one is in the way of both.
	for range 3 {
		c, err := s.kind.dial(t.Context(), s.srv.Servers(), zklock.Options{
			SessionTimeout: sessionTimeout, DialContext: s.srv.DialContext, AllTimeout: -1,
		})
		if err != nil {
			return err
		}
		s.clients = append(s.clients, c)
	}
	looker, err := s.kind.dial(t.Context(), s.srv.Servers(), zklock.Options{SessionTimeout: sessionTimeout, DialContext: s.past})
	if err != nil {
		return err
	}
	s.looker = looker
	_, _, err = s.ops.Create(t.Context(), guardPath, nil, nil, 0)
	return err
}

// close ends everything in good order, and looks for what is left.
func (s *stage) close(t *testing.T) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// The end is in calm weather, so that what is left then is left for good.
	for _, f := range s.faults {
		f.Stop()
	}
	for _, p := range s.parts {
		p.cancel()
	}
	s.running.Wait()
	var err error
	for _, id := range s.sorted(func(*part) bool { return true }) {
		p := s.parts[id]
		s.collect(p)
		for _, l := range p.levels {
			err = errors.Join(err, release(ctx, l))
		}
	}
	s.settle()
	left, e := Left(ctx, s.ops, s.root)
	if len(left) > 0 {
		e = errors.Join(e, fmt.Errorf("left behind: %q", left))
	}
	err = errors.Join(err, e)
	for _, c := range append(s.clients, s.looker) {
		err = errors.Join(err, c.Close())
	}
	return err
}

// release gives one level back and writes down how that went.
func release(ctx context.Context, l level) error {
	done := l.log.Releasing()
	err := l.hold.Release(ctx)
	switch {
	case err == nil:
		done(history.OK, nil)
	case errors.Is(err, zklock.ErrLost):
		// It had ended before, which is no fault of the release's.
		done(history.Fail, err)
		return nil
	default:
		done(history.Info, err)
	}
	return err
}

// settle waits until nothing goes on any more.
func (s *stage) settle() {
	// Reconnecting takes a moment, and nothing that is asked here takes longer.
	time.Sleep(sessionTimeout / 8)
	synctest.Wait()
}

// sorted are the names of the parts that are wanted.
func (s *stage) sorted(want func(*part) bool) []int {
	var ids []int
	for id, p := range s.parts {
		if want(p) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// collect takes in what an acquire has returned, if it has.
func (s *stage) collect(p *part) error {
	if p.answer == nil {
		return nil
	}
	select {
	case a := <-p.answer:
		p.answer = nil
		if a.err != nil {
			return a.err
		}
		p.levels = []level{{a.hold, a.log}}
	default:
	}
	return nil
}

// compare takes in what has happened, and strikes out the worlds that are
// unlike it. At least one must be left.
func (s *stage) compare() error {
	s.settle()
	var held, waiting []int
	for _, id := range s.sorted(func(*part) bool { return true }) {
		p := s.parts[id]
		if err := s.collect(p); err != nil {
			return fmt.Errorf("the acquire of %d: %w", id, err)
		}
		if p.answer != nil {
			waiting = append(waiting, id)
			continue
		}
		// A hold that says lost is one less; whether it had to be is the worlds' to
		// say, where it holds on unless its session was ended.
		if err := p.lost(); err != nil {
			delete(s.parts, id)
			continue
		}
		if err := p.tokens(); err != nil {
			return err
		}
		held = append(held, id)
	}
	alike := slices.DeleteFunc(slices.Clone(s.worlds), func(w *World) bool {
		return !slices.Equal(w.Held(), held) || !slices.Equal(w.Waiting(), waiting)
	})
	if len(alike) == 0 {
		return fmt.Errorf("%v hold and %v wait, unlike every world of %v", held, waiting, s.worlds)
	}
	s.worlds = alike
	return s.shown(held, waiting)
}

// lost asks all levels of a hold whether they are held: all, or none.
func (p *part) lost() error {
	var first error
	// All are asked, and written down, so that the history's checks see each.
	for i, l := range p.levels {
		err := l.log.Held(l.hold.Err, l.hold.Remaining)
		if i == 0 {
			first = err
		}
	}
	return first
}

// become replaces the worlds by what they lead to, when all has come to rest.
func (s *stage) become(change func(*World) *World) {
	s.settle()
	// Different histories may lead to one world.
	var next []*World
	seen := map[string]bool{}
	for _, w := range s.worlds {
		for _, n := range change(w).Settle() {
			if k := n.key(); !seen[k] {
				seen[k] = true
				next = append(next, n)
			}
		}
	}
	s.worlds = next
	s.vague = s.vague || len(next) > tooMany
}

// tooMany worlds say too little to be worth going on.
const tooMany = 100
