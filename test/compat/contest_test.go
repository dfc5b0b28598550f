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

var rounds = flag.Int("rounds", 100, "number of acquires in a contest, by all processes")

// perSide is the number of contending processes of each kind.
const perSide = 3

// stallLimit is longer than a handover on a busy machine, and shorter than the time after which a
// waiter of zklock lists the queue again.
const stallLimit = 15 * time.Second

// contestWait limits one contest.
const contestWait = 10 * time.Minute

// pool has the clients that contend on one server. It starts them on first use, for several
// contests.
type pool struct {
	t      *testing.T // the outermost test, which ends the clients
	server harness.SharedServer
	peers  map[string][]*harness.Peer // by kind
}

func newPool(t *testing.T, s harness.SharedServer) *pool {
	return &pool{t: t, server: s, peers: map[string][]*harness.Peer{}}
}

// of returns the clients of a kind. See startKind.
func (p *pool) of(kind string) []*harness.Peer {
	for len(p.peers[kind]) < perSide {
		p.peers[kind] = append(p.peers[kind], startKind(p.t, kind, p.server.Addr, harness.PeerSessionTimeout))
	}
	return p.peers[kind]
}

// startKind starts a client of a kind: curator, kazoo, zklock, or zklock:LAYOUT.
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

// goroutines returns the number of contending goroutines in a process of the kind. The kind
// zklock:curator has the layout of zklock and two goroutines, so the client hands over in memory.
func goroutines(kind string) int {
	if kind == "zklock:curator" {
		return 2
	}
	return 1
}

// contest is a lock, and the clients that contend for it.
type contest struct {
	name  string
	paths []string            // of the lock, or of the locks of a multi-lock; empty means the name
	sides map[string][]string // choices, as KIND=CLAIMS, by kind of client
	// limit limits each acquire, or those of the kind in limited. Zero means patience. With
	// hasty, the limit of an acquire is a random part of it.
	limit   time.Duration
	limited string
	hasty   bool
	// pause is the longest time between two rounds of a client.
	pause time.Duration
}

// bounds reports whether acquires of a kind may time out.
func (c *contest) bounds(kind string) bool {
	return c.limit > 0 && (c.limited == "" || c.limited == kind)
}

// nodes returns the paths of the contest's locks.
func (c *contest) nodes(clients *pool) []string {
	paths := slices.Clone(c.paths)
	if len(paths) == 0 {
		paths = []string{strings.ReplaceAll(c.name, " ", "-")}
	}
	for i := range paths {
		paths[i] = clients.server.Chroot + "/" + paths[i]
	}
	return paths
}

// run runs the contest, and returns the report of the witness and the number of timeouts by kind.
func (c *contest) run(t *testing.T, clients *pool) (Report, map[string]int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), contestWait)
	defer cancel()
	paths := c.nodes(clients)
	parties := 0
	for kind := range c.sides {
		parties += len(clients.of(kind)) * goroutines(kind)
	}
	w := NewWitness(t, parties)
	each := (*rounds + perSide*len(c.sides) - 1) / (perSide * len(c.sides))
	var wg sync.WaitGroup
	var mu sync.Mutex // guards timeouts
	timeouts := map[string]int{}
	begun := time.Now()
	// The clients start together when the last one has joined the witness.
	for kind, choices := range c.sides {
		for i, p := range clients.of(kind) {
			// Each client begins with another choice.
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
					cancel() // the others need not wait
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
	t.Logf("%d rounds in %v: %d conflicts, %d handovers between kinds, %d together with another kind, timeouts %v, stalled for %v %s",
		each*perSide*len(c.sides), time.Since(begun).Round(time.Millisecond), r.Conflicts, r.Handovers, r.Together, timeouts,
		r.Stall.Round(time.Millisecond), r.Stalled)
	return r, timeouts
}

// excludes runs the contest. There must be no conflict, handovers between the kinds, and no znode
// left.
func (c *contest) excludes(t *testing.T, clients *pool) Report {
	t.Helper()
	r, timeouts := c.run(t, clients)
	if r.Conflicts > 0 || r.Stale > 0 || r.Abandoned > 0 {
		t.Errorf("%d conflicts, %d stale tokens, %d abandoned: %q", r.Conflicts, r.Stale, r.Abandoned, r.First)
	}
	// If one kind was done before the other began, they did not contend.
	if len(c.sides) > 1 && r.Handovers < perSide {
		t.Errorf("%d handovers between kinds: they did not contend", r.Handovers)
	}
	// A lost wake-up cannot stop a hasty contest. On a busy machine, all its acquires may time
	// out for a while.
	if r.Stall > stallLimit && !c.hasty {
		t.Errorf("no client entered or left for %v, %s: a wake-up was lost", r.Stall, r.Stalled)
	}
	for kind, n := range timeouts {
		if n > 0 && !c.bounds(kind) {
			t.Errorf("%s timed out %d times", kind, n)
		}
	}
	// The clients keep their sessions, so a leaked ephemeral znode is still there.
	o := newObserver(t, clients.server)
	for _, path := range c.nodes(clients) {
		o.awaitNoEphemerals(t, path)
	}
	return r
}

// part is one client's part in a contest.
type part struct {
	Path    string
	Rounds  int
	Witness *Witness
	// Name is the client's name for the witness: KIND-NUMBER.
	Name string
	// Choices are KIND=CLAIMS: a kind of lock, and the claims for the witness. The rounds use
	// them in turn.
	Choices []string
	// Limit limits each acquire. With Hasty, the limit is a random part of it. After a timeout,
	// the client tries again.
	Limit time.Duration
	Hasty bool
	// Pause is the longest time between two rounds. Each pause is a random part of it.
	Pause time.Duration
}

// contend makes the client contend after all parties have joined the witness. It returns the
// number of timeouts.
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

// TestWitnessDetectsMissingExclusion runs contests without a lock, and with locks that do not
// exclude each other.
func TestWitnessDetectsMissingExclusion(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		clients := newPool(t, s)
		for _, c := range []contest{
			{name: "curator unguarded", sides: map[string][]string{"curator": {"none=a:x"}}},
			{name: "kazoo unguarded", sides: map[string][]string{"kazoo": {"none=a:x"}}},
			{name: "one side unguarded", sides: map[string][]string{"curator": {"mutex=a:x"}, "kazoo": {"none=a:x"}}},
			{name: "curator and kazoo", sides: map[string][]string{"curator": {"mutex=a:x"}, "kazoo": {"lock=a:x"}}},
			{name: "readers as writers", sides: map[string][]string{"curator": {"read=a:x"}}},
			{name: "a lease too many", sides: map[string][]string{"curator": {"semaphore:2=a:x"}}},
			{name: "zklock unguarded", sides: map[string][]string{"zklock": {"none=a:x"}}},
			{name: "zklock's permits", sides: map[string][]string{"zklock": {"semaphore:3:2=a:p2/3", "semaphore:3:1=a:p2/3"}}},
			{name: "kazoo without extra_lock_patterns", sides: map[string][]string{"zklock": {"mutex=a:x"}, "kazoo": {"lock=a:x"}}},
			{name: "kazoo layout next to Curator", sides: map[string][]string{"zklock:kazoo": {"mutex=a:x"}, "curator": {"mutex=a:x"}}},
			{name: "writer next to a mutex of Curator", sides: map[string][]string{"zklock": {"write=a:x"}, "curator": {"mutex=a:x"}}},
		} {
			t.Run(c.name, func(t *testing.T) {
				// Two clients may not hold together in one contest.
				for range togetherTries {
					if r, _ := c.run(t, clients); t.Failed() || r.Conflicts > 0 {
						return
					}
				}
				t.Errorf("the witness saw no conflict in %d contests", togetherTries)
			})
		}
	})
}

// TestOtherLibrariesExcludeThemselves runs contests of one other library.
func TestOtherLibrariesExcludeThemselves(t *testing.T) {
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		clients := newPool(t, s)
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
			t.Run(c.name, func(t *testing.T) { c.excludes(t, clients) })
		}
	})
}
