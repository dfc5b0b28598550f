package faults

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

	"pgregory.net/rapid"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/model"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// Command is one step of a test. Its numbers select clients, holds, and details, modulo the
// number of choices.
type Command struct {
	Do     string
	Target int
	Way    int
	Detail int
}

// sequentialTimeout is the session timeout of the clients, on the bubble's clock.
const sequentialTimeout = 20 * time.Second

// sequence runs commands of some clients, each with its own session.
type sequence struct {
	kind          Kind
	srv           *zktest.Server
	direct        func(context.Context, string, string) (net.Conn, error)
	ops           *zk.Client // the operator's
	clients       []*zklock.Client
	inspector     *zklock.Client // its connection has no faults
	root          string
	rec           *model.Recorder
	attempts      map[int]*attempt
	names         int
	worlds        []*World // at least one of them matches the locks
	tooManyWorlds bool     // there are too many worlds
	faults        []*zktest.Fault
	running       sync.WaitGroup
}

// attempt is one acquire and its hold.
type attempt struct {
	id, client int
	way        int
	claims     []model.Claim
	cancel     context.CancelFunc
	answer     chan answer // receives the result of the acquire; nil afterwards
	levels     []level     // the levels of a hold; none while it waits
}

// answer is the result of an acquire.
type answer struct {
	hold *zklock.Hold
	err  error
	log  *model.Attempt
}

// patience bounds waits on the bubble's clock.
const patience = 10 * sequentialTimeout

// runCommands runs commands one by one in a bubble. It returns the history, and an error if
// the locks did not match the model.
func runCommands(t *testing.T, kind Kind, commands []Command) (h *model.History, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &sequence{
			kind: kind, srv: zktest.Start(t), root: "/" + kind.Name, rec: model.NewRecorder(t.Name(), 0),
			attempts: map[int]*attempt{}, worlds: []*World{NewWorld()},
		}
		s.direct = directDialer(s.srv)
		s.ops = s.srv.Dial(t, func(o *zk.Options) { o.DialContext = s.direct })
		err = s.open(t)
		for i, c := range commands {
			if err != nil || s.tooManyWorlds {
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

// open connects the clients.
func (s *sequence) open(t *testing.T) error {
	// Three sessions are enough for a holder and two waiters.
	for range 3 {
		c, err := s.kind.dial(t.Context(), s.srv.Servers(), zklock.Options{
			SessionTimeout: sequentialTimeout, DialContext: s.srv.DialContext, AllTimeout: -1,
		})
		if err != nil {
			return err
		}
		s.clients = append(s.clients, c)
	}
	inspector, err := s.kind.dial(t.Context(), s.srv.Servers(), zklock.Options{SessionTimeout: sequentialTimeout, DialContext: s.direct})
	if err != nil {
		return err
	}
	s.inspector = inspector
	_, _, err = s.ops.Create(t.Context(), guardPath, nil, nil, 0)
	return err
}

// close releases all holds, and checks that no entry is left.
func (s *sequence) close(t *testing.T) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	// Faults at the end could delete an entry that a client forgot.
	for _, f := range s.faults {
		f.Stop()
	}
	for _, p := range s.attempts {
		p.cancel()
	}
	s.running.Wait()
	var err error
	for _, id := range s.sorted(func(*attempt) bool { return true }) {
		p := s.attempts[id]
		s.collect(p)
		for _, l := range p.levels {
			err = errors.Join(err, l.release(ctx, false))
		}
	}
	s.quiesce()
	err = errors.Join(err, (&operator{s.ops}).waitEmpty(ctx, []string{s.root}, 0))
	for _, c := range append(s.clients, s.inspector) {
		err = errors.Join(err, c.Close())
	}
	return err
}

// quiesce waits until all goroutines are blocked.
func (s *sequence) quiesce() {
	// No operation takes longer than a reconnect.
	time.Sleep(sequentialTimeout / 8)
	synctest.Wait()
}

// sorted returns the IDs of the matching attempts.
func (s *sequence) sorted(want func(*attempt) bool) []int {
	var ids []int
	for id, p := range s.attempts {
		if want(p) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// collect reads the result of an acquire, if it has returned.
func (s *sequence) collect(p *attempt) error {
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

// compare reads the results, and removes the worlds that do not match them. At least one
// must be left.
func (s *sequence) compare() error {
	s.quiesce()
	var held, waiting []int
	for _, id := range s.sorted(func(*attempt) bool { return true }) {
		p := s.attempts[id]
		if err := s.collect(p); err != nil {
			return fmt.Errorf("the acquire of %d: %w", id, err)
		}
		if p.answer != nil {
			waiting = append(waiting, id)
			continue
		}
		// A lost hold is removed. It still exists in the worlds unless its session was ended.
		if err := p.lost(); err != nil {
			delete(s.attempts, id)
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
	return s.checkInspect(held, waiting)
}

// lost checks all levels of a hold.
func (p *attempt) lost() error {
	var first error
	// The history has a check of each level.
	for i, l := range p.levels {
		err := l.log.Held(l.hold.Err, l.hold.Remaining)
		if i == 0 {
			first = err
		}
	}
	return first
}

// update replaces the worlds with their outcomes after a change.
func (s *sequence) update(change func(*World) *World) {
	s.quiesce()
	// Different worlds may have the same outcome.
	var next []*World
	seen := map[string]bool{}
	for _, w := range s.worlds {
		for _, n := range change(w).Outcomes() {
			if k := n.key(); !seen[k] {
				seen[k] = true
				next = append(next, n)
			}
		}
	}
	s.worlds = next
	s.tooManyWorlds = s.tooManyWorlds || len(next) > tooMany
}

// tooMany is the number of worlds at which a sequence stops.
const tooMany = 100

// entries returns the number of znodes of holds, or of waiters, that Inspect must show.
func (s *sequence) entries(ids []int, held bool) int {
	n := 0
	for _, id := range ids {
		switch c := s.attempts[id].claims[0]; {
		case c.Mode == Node && !held:
		case c.Mode == model.Permit && held:
			n += c.Permits
		default:
			n += max(1, s.kind.Names)
		}
	}
	return n
}

// tokens checks that a hold has a token for each path, and the same token for all queues.
func (p *attempt) tokens() error {
	h := p.levels[0].hold
	for _, c := range p.claims {
		switch token := h.TokenOf(c.Path); {
		case token <= 0, c.Mode != model.Permit && token != h.Token():
			return fmt.Errorf("%d has the token %#x for %s, and %#x for all", p.id, token, c.Path, h.Token())
		}
	}
	return nil
}

// inspect counts the holders and waiters that Inspect shows.
func (s *sequence) inspect(ctx context.Context) (holders, waiters int, err error) {
	lock, _ := s.kind.Lock(s.inspector, s.root+"/x", 0)
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

// checkInspect checks that Inspect shows all holders and waiters.
func (s *sequence) checkInspect(held, waiting []int) error {
	if s.kind.Several {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	holders, waiters, err := s.inspect(ctx)
	if h, w := s.entries(held, true), s.entries(waiting, false); err == nil && (holders != h || waiters != w) {
		err = fmt.Errorf("inspect shows %d holders and %d waiters, of %d and %d", holders, waiters, h, w)
	}
	return err
}

// commands draws the commands of a run.
func commands(t *rapid.T) []Command {
	word := rapid.SampledFrom(commandNames())
	n := rapid.IntRange(0, 23)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Command {
		return Command{word.Draw(t, "do"), n.Draw(t, "who"), n.Draw(t, "how"), n.Draw(t, "some")}
	}), 15, 60).Draw(t, "commands")
}

// TestSequential checks under faults of the network that the holders are those of the model
// after each command, and that no entry is left at the end.
func TestSequential(t *testing.T) {
	t.Parallel()
	for _, kind := range All() {
		if kind.Delayed {
			continue
		}
		t.Run(kind.Name, func(t *testing.T) {
			var sum model.Floor
			rapid.Check(t, func(rt *rapid.T) {
				h, err := runCommands(t, kind, commands(rt))
				if err != nil {
					rt.Fatal(err)
				}
				for _, m := range kind.Models {
					r := model.Check(h, model.Rules{Model: m, Linger: time.Second, NoEarlyLoss: true})
					if len(r.Violations) > 0 {
						rt.Fatalf("%s: %v", m.Name, r.Violations)
					}
					sum.Add(r.Done)
				}
			})
			t.Logf("%+v", sum)
			if sum.Acquired < 100 || sum.Waited < 50 || sum.Refused < 30 || sum.Lost < 5 ||
				kind.Reenter != nil && kind.Name != "mutex" && sum.Reentered < 10 || kind.Writer != nil && sum.Downgraded < 5 {
				t.Error("too little happened")
			}
		})
	}
}

// TestSequentialRegressions repeats runs that failed in the past.
func TestSequentialRegressions(t *testing.T) {
	for _, c := range []struct {
		name     string
		kind     Kind
		commands []Command
	}{
		// Client A holds two of three permits. Client B waits for two at the gate. The answer
		// to the try's second listing, of the permits, is lost. The try must not wait.
		{"a try at a gate", semaphore(), []Command{
			{Do: "acquire", Way: 1}, {Do: "acquire", Way: 1}, {Do: "drop", Way: 3, Detail: 1}, {Do: "try"},
		}},
		// The answer to the try's create is lost. The entry's name is not unique, and only its
		// data shows which client created it.
		{"a try with a reusable name", recipe(), []Command{{Do: "drop", Target: 1, Detail: 1}, {Do: "try"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := runCommands(t, c.kind, c.commands); err != nil {
				t.Error(err)
			}
		})
	}
}

// falseLocks returns locks that lock less than they claim.
func falseLocks() []Kind {
	another := func(path string) string { return path[:len(path)-1] + "y" }
	two := mutex()
	two.Name, two.Ways, two.Reenter = "two-mutexes-as-one", 2, nil
	two.Lock = func(c *zklock.Client, path string, n int) (*zklock.Lock, []model.Claim) {
		return c.Mutex([]string{path, another(path)}[n]), []model.Claim{exclusive(path)}
	}
	readers := mutex()
	readers.Name, readers.Reenter = "readers-as-writers", nil
	readers.Lock = func(c *zklock.Client, path string, _ int) (*zklock.Lock, []model.Claim) {
		return c.RWMutex(path).Reader(), []model.Claim{exclusive(path)}
	}
	fewer := semaphore()
	fewer.Name = "fewer-permits-than-said"
	fewer.Lock = func(c *zklock.Client, path string, n int) (*zklock.Lock, []model.Claim) {
		return c.Semaphore(path, 3), []model.Claim{permits(path, n+1, 3)}
	}
	attempt := multi()
	attempt.Name, attempt.Ways = "one-of-two", 2
	attempt.Lock = func(c *zklock.Client, path string, n int) (*zklock.Lock, []model.Claim) {
		one := []*zklock.Lock{c.Mutex(path), c.Mutex(another(path))}[n]
		return zklock.All(one), []model.Claim{exclusive(path), exclusive(another(path))}
	}
	return []Kind{two, readers, fewer, attempt}
}

// TestSequentialFindsLocksThatDoNotLock checks that a false lock does not match the model.
func TestSequentialFindsLocksThatDoNotLock(t *testing.T) {
	for _, kind := range falseLocks() {
		t.Run(kind.Name, func(t *testing.T) {
			var commands []Command
			for i := range 8 {
				commands = append(commands, Command{Do: "acquire", Target: i, Way: i})
			}
			if _, err := runCommands(t, kind, commands); err == nil {
				t.Error("nothing was found")
			}
		})
	}
}
