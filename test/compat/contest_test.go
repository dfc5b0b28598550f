package compat

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

var rounds = flag.Int("rounds", 100, "how often the processes of a contest take the lock, all together")

// perSide is how many processes of each kind contend.
const perSide = 3

// stallLimit is longer than a hand-over takes on the busiest machine, and shorter
// than the pause after which a waiter of ours looks again by itself.
const stallLimit = 15 * time.Second

// contestWait bounds one contest, of any number of rounds.
const contestWait = 10 * time.Minute

// fleet is the clients that contend on one server, started when first needed and
// used by one contest after the other.
type fleet struct {
	t      *testing.T // the outermost, which ends them
	server harness.SharedServer
	peers  map[string][]*harness.Peer // by kind
}

// newFleet has no client yet.
func newFleet(t *testing.T, s harness.SharedServer) *fleet {
	return &fleet{t: t, server: s, peers: map[string][]*harness.Peer{}}
}

// of returns the clients of a kind, see startKind.
func (f *fleet) of(kind string) []*harness.Peer {
	for len(f.peers[kind]) < perSide {
		f.peers[kind] = append(f.peers[kind], startKind(f.t, kind, f.server.Addr, harness.PeerSessionTimeout))
	}
	return f.peers[kind]
}

// startKind starts a client of the kind: curator, kazoo, or zklock, with a colon
// and the name of a layout or without, in a session of the timeout.
func startKind(t *testing.T, kind, addr string, session time.Duration) *harness.Peer {
	t.Helper()
	switch name, layout, _ := strings.Cut(kind, ":"); name {
	case "curator":
		return harness.CuratorSession(t, addr, session)
	case "kazoo":
		return harness.KazooSession(t, addr, session)
	default:
		return Zklock(t, ZklockOptions{Servers: addr, Layout: layout, Session: session, Goroutines: goroutines(kind)})
	}
}

// goroutines is how many contend in a process of the kind. One kind, of the same
// layout as zklock, does it in pairs, so that holds are handed over in memory.
func goroutines(kind string) int {
	if kind == "zklock:curator" {
		return 2
	}
	return 1
}

// contest is a lock, and who contends for it how.
type contest struct {
	name  string
	paths []string            // of the lock, or of a multi-lock's; empty means the name
	sides map[string][]string // by kind of client: KIND=CLAIMS
	// limit bounds each acquire of all, or of those of the kind in limited; zero
	// means patience. With hasty it is a random part of that.
	limit   time.Duration
	limited string
	hasty   bool
	// pause is the longest time between two rounds of one.
	pause time.Duration
}

// bounds reports whether a kind's acquires may run out of time.
func (c *contest) bounds(kind string) bool {
	return c.limit > 0 && (c.limited == "" || c.limited == kind)
}

// nodes are the paths of the contest's locks.
func (c *contest) nodes(f *fleet) []string {
	paths := slices.Clone(c.paths)
	if len(paths) == 0 {
		paths = []string{strings.ReplaceAll(c.name, " ", "-")}
	}
	for i := range paths {
		paths[i] = f.server.Chroot + "/" + paths[i]
	}
	return paths
}

// run has all processes contend, and returns what the witness saw and how many
// acquires ran out of time, by the side.
func (c *contest) run(t *testing.T, f *fleet) (Report, map[string]int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), contestWait)
	defer cancel()
	paths := c.nodes(f)
	parties := 0
	for kind := range c.sides {
		parties += len(f.of(kind)) * goroutines(kind)
	}
	w := NewWitness(t, parties)
	each := (*rounds + perSide*len(c.sides) - 1) / (perSide * len(c.sides))
	var wg sync.WaitGroup
	var mu sync.Mutex // guards timeouts
	timeouts := map[string]int{}
	begun := time.Now()
	// All take up their commands now, and begin together when the last one has
	// joined the witness.
	for kind, choices := range c.sides {
		for i, p := range f.of(kind) {
			// Each begins with another choice.
			turned := append(slices.Clone(choices[i%len(choices):]), choices[:i%len(choices)]...)
			one := &part{
				Path: strings.Join(paths, ","), Rounds: each, Witness: w, Name: fmt.Sprintf("%s-%d", kind, i),
				Choices: turned, Limit: patience, Pause: c.pause,
			}
			if c.bounds(kind) {
				one.Limit, one.Hasty = c.limit, c.hasty
			}
			wg.Go(func() { // ends with the contest, or with ctx
				n, err := one.contend(ctx, p)
				if err != nil {
					t.Error(err)
					cancel() // nobody else need wait
				}
				mu.Lock()
				defer mu.Unlock()
				timeouts[kind] += n
			})
		}
	}
	wg.Wait()
	r := w.Report()
	for kind := range c.sides {
		if r.Entries[kind] != perSide*each && !t.Failed() {
			t.Errorf("%s entered %d times, want %d", kind, r.Entries[kind], perSide*each)
		}
	}
	t.Logf("%d rounds in %v: %d conflicts, %d hand-overs between kinds, %d beside another kind, timeouts %v, stalled for %v %s",
		each*perSide*len(c.sides), time.Since(begun).Round(time.Millisecond), r.Conflicts, r.Handovers, r.Beside, timeouts,
		r.Stall.Round(time.Millisecond), r.Stalled)
	return r, timeouts
}

// excludes runs the contest and wants no conflict, that the kinds have taken
// turns, and that no znode of theirs is left.
func (c *contest) excludes(t *testing.T, f *fleet) Report {
	t.Helper()
	r, timeouts := c.run(t, f)
	if r.Conflicts > 0 || r.Stale > 0 || r.Abandoned > 0 {
		t.Errorf("%d conflicts, %d stale tokens, %d abandoned: %q", r.Conflicts, r.Stale, r.Abandoned, r.First)
	}
	// A contest in which one side was done before the other began shows nothing.
	if len(c.sides) > 1 && r.Handovers < perSide {
		t.Errorf("%d hand-overs between kinds: they did not contend", r.Handovers)
	}
	// A lost wake-up cannot stop a hasty contest, and a busy machine may leave no acquire the
	// time for its round trips.
	if r.Stall > stallLimit && !c.hasty {
		t.Errorf("nobody moved for %v, %s: a wake-up was lost", r.Stall, r.Stalled)
	}
	for kind, n := range timeouts {
		if n > 0 && !c.bounds(kind) {
			t.Errorf("%s ran out of time %d times", kind, n)
		}
	}
	// The clients live on, so what is left would be for as long as they do.
	o := newObserver(t, f.server)
	for _, path := range c.nodes(f) {
		o.awaitNoEphemerals(t, path)
	}
	return r
}

// part is one client's part in a contest.
type part struct {
	Path    string
	Rounds  int
	Witness *Witness
	// Name is what the witness knows the client by: KIND-NUMBER.
	Name string
	// Choices are KIND=CLAIMS: which lock to take, and what the witness is told
	// while it is held. The rounds go through them in turn.
	Choices []string
	// Limit bounds each acquire. With Hasty, each has a random part of it. What is
	// not acquired is tried again.
	Limit time.Duration
	Hasty bool
	// Pause is the longest time between two rounds, each a random part of it.
	Pause time.Duration
}

// contend makes the client take locks again and again while others do the same, once
// all parties have joined the witness. It returns how many acquires ran out of time.
func (c *part) contend(ctx context.Context, p *harness.Peer) (timeouts int, err error) {
	millis := c.Limit.Milliseconds()
	if c.Hasty {
		millis = -millis
	}
	words := []string{
		"contend", c.Path, fmt.Sprint(c.Rounds), fmt.Sprint(millis), fmt.Sprint(c.Pause.Milliseconds()),
		c.Witness.Addr(), c.Name,
	}
	a, err := p.Do(ctx, append(words, c.Choices...)...)
	return a.Timeouts, err
}

// TestWitnessSeesConflicts is the control of all contests: the same processes
// without a lock, and with locks that do not exclude each other.
func TestWitnessSeesConflicts(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		f := newFleet(t, s)
		for _, c := range []contest{
			{name: "curator unguarded", sides: map[string][]string{"curator": {"none=a:x"}}},
			{name: "kazoo unguarded", sides: map[string][]string{"kazoo": {"none=a:x"}}},
			{name: "one side unguarded", sides: map[string][]string{"curator": {"mutex=a:x"}, "kazoo": {"none=a:x"}}},
			{name: "curator beside kazoo", sides: map[string][]string{"curator": {"mutex=a:x"}, "kazoo": {"lock=a:x"}}},
			{name: "readers as writers", sides: map[string][]string{"curator": {"read=a:x"}}},
			{name: "a lease too many", sides: map[string][]string{"curator": {"semaphore:2=a:x"}}},
			{name: "zklock unguarded", sides: map[string][]string{"zklock": {"none=a:x"}}},
			{name: "zklock's permits", sides: map[string][]string{"zklock": {"semaphore:3:2=a:p2/3", "semaphore:3:1=a:p2/3"}}},
			{name: "kazoo not told of us", sides: map[string][]string{"zklock": {"mutex=a:x"}, "kazoo": {"lock=a:x"}}},
			{name: "kazoo layout beside Curator", sides: map[string][]string{"zklock:kazoo": {"mutex=a:x"}, "curator": {"mutex=a:x"}}},
			{name: "writer beside a mutex of Curator's", sides: map[string][]string{"zklock": {"write=a:x"}, "curator": {"mutex=a:x"}}},
		} {
			t.Run(c.name, func(t *testing.T) {
				// Whether two meet in one contest is chance.
				for range togetherTries {
					if r, _ := c.run(t, f); t.Failed() || r.Conflicts > 0 {
						return
					}
				}
				t.Errorf("the witness saw no conflict in %d contests", togetherTries)
			})
		}
	})
}

// TestPeersAmongThemselves: what the other libraries promise on their own, with
// the same processes and witness.
func TestPeersAmongThemselves(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		f := newFleet(t, s)
		for _, c := range []contest{
			{name: "mutex", sides: map[string][]string{"curator": {"mutex=a:x"}}},
			{name: "read-write", sides: map[string][]string{"curator": {"read=a:s", "write=a:x", "read=a:s"}}},
			{name: "semaphore", sides: map[string][]string{"curator": {"semaphore:2=a:p1/2"}}},
			{name: "several leases", sides: map[string][]string{"curator": {"semaphore:4:2=a:p2/4"}}},
			{name: "semaphore mutex", sides: map[string][]string{"curator": {"semaphoremutex=a:x"}}},
			{name: "multi-lock", paths: []string{"m1", "m2"}, sides: map[string][]string{"curator": {"multi=a:x,b:x"}}},
			{name: "kazoo's lock", sides: map[string][]string{"kazoo": {"lock=a:x"}}},
			{name: "kazoo's read-write", limit: 50 * time.Millisecond, sides: map[string][]string{"kazoo": {"read=a:s", "write=a:x", "read=a:s"}}},
			{name: "kazoo's semaphore", sides: map[string][]string{"kazoo": {"semaphore:2=a:p1/2"}}},
		} {
			t.Run(c.name, func(t *testing.T) { c.excludes(t, f) })
		}
	})
}
