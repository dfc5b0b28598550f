package kinds

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/history"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// Target is what a storm rages over.
type Target struct {
	// Servers and Options reach the server through the relay.
	Servers string
	Options zklock.Options
	// Relay is what the faults are asked of.
	Relay *zktest.Relay
	// Ops reaches the server past the relay.
	Ops *zk.Client
	// Restart ends the server at once and starts it again; nil for one that must
	// not be harmed.
	Restart func()
	// Timeout is the clients' session timeout, the measure of everything.
	Timeout time.Duration
}

// Storm is several clients of one kind of lock that do what they like, while the
// network and the server do what they can.
type Storm struct {
	Kind    Kind
	Target  Target
	Path    string        // of the locks
	Clients int           // each with a session of its own
	Workers int           // for each client
	Lasts   time.Duration // at least
	Least   int           // how many acquires must have been granted before it may end
	Pace    time.Duration // the most that a worker waits between two steps
	Calm    time.Duration // the longest pause between two faults
	Seed    uint64

	tb  testing.TB
	rec *history.Recorder
	all sync.WaitGroup

	mu      sync.Mutex // guards what follows
	session int64      // of the last grant
	grants  int
	faults  []*zktest.Fault
	guards  int // how many writes were to be made under guard
}

// Run lets the storm rage and returns what was written down.
func (s *Storm) Run(tb testing.TB, ctx context.Context) *history.History {
	tb.Helper()
	s.tb, s.rec = tb, history.NewRecorder(tb.Name(), s.Seed)
	// What holds write under their guard must have a parent, which no fault may hit.
	for _, path := range []string{guardPath, s.guarded()} {
		if _, _, err := s.Target.Ops.Create(ctx, path, nil, nil, 0); err != nil && !errors.Is(err, zk.ErrNodeExists) {
			tb.Error(err)
		}
	}
	var clients []*zklock.Client
	for range s.Clients {
		c, err := s.Kind.dial(ctx, s.Target.Servers, s.Target.Options)
		if err != nil {
			tb.Error(err)
			break
		}
		clients = append(clients, c)
	}
	raging, stop := context.WithCancel(ctx)
	defer stop()
	s.all.Go(func() { // ends with the storm's time, or with ctx
		defer stop()
		wait(ctx, s.Lasts)
		for ctx.Err() == nil && s.granted() < s.Least {
			wait(ctx, s.Pace)
		}
	})
	for i, c := range clients {
		for j := range s.Workers {
			s.all.Go(func() { s.worker(raging, i, c, s.random(100*i+j)) }) // ends with raging, or a patient wait later
		}
	}
	s.all.Go(func() { s.trouble(raging, s.random(-1)) })
	s.all.Wait()
	for _, f := range s.faults {
		f.Stop()
	}
	s.tidy(ctx, clients)
	for _, c := range clients {
		if err := c.Close(); err != nil {
			tb.Logf("close: %v", err) // then its session times out
		}
	}
	return s.rec.History()
}

// tidy has somebody take and release the lock of a kind that leaves records of
// lost holds behind for the next one.
func (s *Storm) tidy(ctx context.Context, clients []*zklock.Client) {
	if !s.Kind.Delayed || len(clients) == 0 {
		return
	}
	l, _ := s.Kind.Ask(clients[0], s.Path, 0)
	if err := zklock.Do(ctx, l, func(context.Context, *zklock.Hold) error { return nil }); err != nil {
		s.tb.Errorf("after the storm: %v", err)
	}
}

// random is the source of one goroutine's choices.
func (s *Storm) random(n int) *rand.Rand { return rand.New(rand.NewPCG(s.Seed, uint64(n))) }

// pause waits for some part of d, or until ctx is done.
func pause(ctx context.Context, r *rand.Rand, d time.Duration) {
	wait(ctx, time.Duration(r.Int64N(int64(d))))
}

// wait waits for d, or until ctx is done.
func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// worker takes and gives back until ctx is done.
func (s *Storm) worker(ctx context.Context, client int, c *zklock.Client, r *rand.Rand) {
	for ctx.Err() == nil {
		way := r.IntN(s.Kind.Ways)
		lock, claims := s.Kind.Ask(c, s.Path, way)
		try := r.IntN(4) == 0
		// Some waits are too short to be granted: giving up is a path of its own.
		wait, cancel := context.WithTimeout(ctx, time.Duration(1+r.Int64N(int64(4*s.Target.Timeout))))
		log := s.rec.Acquire(fmt.Sprintf("client %d", client), try, logged(claims)...)
		acquire := lock.Acquire
		if try {
			acquire = lock.TryAcquire
		}
		h, err := acquire(wait)
		grant(log, h, err)
		if err == nil {
			s.note(h.Session())
			s.holding(ctx, r, c, way, claims, level{h, log})
		} else if !errors.Is(err, zklock.ErrLocked) && wait.Err() == nil {
			// Weather is no reason to fail: an acquire waits until it is over.
			s.tb.Errorf("an acquire failed: %v", err)
		}
		cancel()
		pause(ctx, r, s.Pace/2)
	}
}

func (s *Storm) note(session int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = session
	s.grants++
}

func (s *Storm) granted() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.grants
}

// holding is what a worker does while it holds.
func (s *Storm) holding(ctx context.Context, r *rand.Rand, c *zklock.Client, way int, claims []history.Claim, outer level) {
	levels := []level{outer}
	for range r.IntN(4) {
		pause(ctx, r, s.Pace)
		if r.IntN(2) == 0 {
			s.guard(ctx, outer, claims)
		}
		// Only a hold that is looked at is known to be held: each look moves the time
		// up to which nobody else may have been granted.
		if outer.log.Held(outer.hold.Err, outer.hold.Remaining) != nil {
			break
		}
		switch {
		case s.Kind.Again != nil && r.IntN(2) == 0:
			levels = append(levels, s.again(ctx, r, c, claims, outer)...)
		case s.Kind.lowers(claims, way) && len(levels) == 1 && r.IntN(2) == 0:
			s.downgrade(ctx, outer)
			claims = []history.Claim{{Path: claims[0].Path, Mode: history.Shared}}
		}
	}
	// The holds of one lock are released in any order.
	r.Shuffle(len(levels), func(i, j int) { levels[i], levels[j] = levels[j], levels[i] })
	for _, l := range levels {
		wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Target.Timeout)
		_ = release(wait, l) // whatever becomes of it is written down
		cancel()
	}
}

// guarded is the parent of what is written under the guard of holds.
func (s *Storm) guarded() string { return guardPath + "/" + s.Kind.Name }

// guard writes the hold's token in a znode of its own for each path that it has
// to itself. The server numbers them in the order in which it made them.
func (s *Storm) guard(ctx context.Context, l level, claims []history.Claim) {
	var ops []zk.Op
	token := strconv.FormatInt(l.hold.Token(), 10)
	for _, c := range claims {
		if c.Mode == history.Exclusive {
			ops = append(ops, zk.CreateOp(s.guarded()+"/"+path.Base(c.Path)+"-", []byte(token), nil, zk.ModePersistentSequential))
		}
	}
	s.mu.Lock()
	s.guards += len(ops)
	s.mu.Unlock()
	if len(ops) == 0 {
		return
	}
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Target.Timeout)
	defer cancel()
	// Where it fails, or nobody knows, what is there in the end has to be right all
	// the same.
	_ = l.hold.Guard(wait, ops...)
}

// Fenced returns how many writes were made under guard, and an error if of two
// on one path the later one has the smaller token. It looks again if the servers are
// not there, until ctx is done.
func (s *Storm) Fenced(ctx context.Context) (int, error) {
	for {
		n, err := s.fenced(ctx)
		if !errors.Is(err, zk.ErrSessionExpired) && !errors.Is(err, zk.ErrConnectionLost) || ctx.Err() != nil {
			return n, err
		}
		wait(ctx, s.Target.Timeout/40)
	}
}

// fenced is Fenced, once.
func (s *Storm) fenced(ctx context.Context) (int, error) {
	names, _, err := s.Target.Ops.Children(ctx, s.guarded())
	if err != nil {
		return 0, err
	}
	// The parent's counter gives the numbers, so they are in the order of the
	// transactions, whichever lock a name begins with.
	const digits = 10
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(a[len(a)-digits:], b[len(b)-digits:]) })
	last := map[string]int64{}
	for _, name := range names {
		data, _, err := s.Target.Ops.Get(ctx, s.guarded()+"/"+name)
		if err != nil {
			return 0, err
		}
		token, err := strconv.ParseInt(string(data), 10, 64)
		if err != nil {
			return 0, err
		}
		lock := name[:len(name)-digits]
		if token < last[lock] {
			return 0, fmt.Errorf("%s was written by token %#x after %#x", name, token, last[lock])
		}
		last[lock] = token
	}
	return len(names), nil
}

// again enters the hold once more, if it can.
func (s *Storm) again(ctx context.Context, r *rand.Rand, c *zklock.Client, claims []history.Claim, outer level) []level {
	way := r.IntN(s.Kind.Ways)
	if s.Kind.Again(claims, way) != nil {
		return nil
	}
	inner, cancel := outer.hold.Context(ctx)
	defer cancel()
	lock, inside := s.Kind.Ask(c, s.Path, way)
	log := outer.log.Again(false, logged(inside)...)
	h, err := lock.Acquire(inner)
	grant(log, h, err)
	if err != nil {
		return nil
	}
	return []level{{h, log}}
}

// downgrade makes the writer a reader, or finds out that nobody knows.
func (s *Storm) downgrade(ctx context.Context, l level) {
	wait, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Target.Timeout)
	defer cancel()
	done := l.log.Downgrading()
	if err := l.hold.Downgrade(wait); err != nil {
		// It may be refused, be lost with the hold, or go on in the background.
		done(history.Info, err)
		return
	}
	done(history.OK, nil)
}

// trouble does harm until ctx is done.
func (s *Storm) trouble(ctx context.Context, r *rand.Rand) {
	relay := s.Target.Relay
	for ctx.Err() == nil {
		pause(ctx, r, s.Calm)
		switch r.IntN(9) {
		case 0:
			relay.CutConnections()
		case 1:
			relay.HalfOpen()
		case 2, 3:
			s.drop(relay.DropReply, r)
		case 4:
			s.drop(relay.DropRequest, r)
		case 5:
			// Longer than a timeout at times: then holds are lost by their deadlines.
			relay.Blackhole(true)
			pause(ctx, r, 2*s.Target.Timeout)
			relay.Blackhole(false)
		case 6, 7:
			s.expire()
		case 8:
			if s.Target.Restart != nil {
				s.Target.Restart()
			}
		}
	}
}

// drop arms a fault on a request of any kind.
func (s *Storm) drop(fault func(zktest.Match) *zktest.Fault, r *rand.Rand) {
	ops := []string{"", "create2", "multi", "delete", "getChildren2", "exists", "getData"}
	f := fault(zktest.Match{Op: ops[r.IntN(len(ops))], Skip: r.IntN(3)})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, f)
}

// expire ends the session that was granted last, most often while it holds.
func (s *Storm) expire() {
	s.mu.Lock()
	session := s.session
	s.mu.Unlock()
	if session != 0 {
		done := s.rec.Expire(session)
		done(s.Target.Relay.ExpireSession(session))
	}
}
