package compat

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// handoverWait limits one test of handovers.
const handoverWait = 5 * time.Minute

// queueing is a list of clients that enqueue for a lock, and the expected order of grants.
type queueing struct {
	name string
	// Each has the kind of client, a space, and the kind of lock.
	acquirers []string
	// groups are the indexes of the acquirers that hold together, in order. A group is granted
	// when all of the previous group have released. The first group is granted at once.
	groups [][]int
	// counts are the numbers of znodes after each acquirer is granted (the first group) or
	// waits (the others). Nil means one for each.
	counts []int
	below  []string // the lock's directories; nil means the lock itself
}

// TestReleaseHandsOverToOtherLibrary checks that a release grants the lock to the next client in
// the queue, whichever library it uses.
func TestReleaseHandsOverToOtherLibrary(t *testing.T) {
	one := [][]int{{0}, {1}, {2}, {3}}
	semaphore := []string{"locks", "leases"} // the first waiter has two znodes, a later one has one
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		clients := newPool(t, s)
		for _, q := range []queueing{
			{name: "mutex from ours", groups: one,
				acquirers: []string{"zklock mutex", "curator mutex", "zklock mutex", "curator mutex"}},
			{name: "mutex from Curator's", groups: one,
				acquirers: []string{"curator mutex", "zklock mutex", "curator mutex", "zklock mutex"}},
			{name: "kazoo from ours", groups: one,
				acquirers: []string{"zklock mutex", "kazoo lock-shared", "zklock mutex", "kazoo lock-shared"}},
			{name: "kazoo from kazoo's", groups: one,
				acquirers: []string{"kazoo lock-shared", "zklock mutex", "kazoo lock-shared", "zklock mutex"}},
			{name: "kazoo without extra_lock_patterns first", groups: one[:3],
				acquirers: []string{"kazoo lock", "zklock mutex", "curator mutex"}},
			{name: "read-write from ours", groups: [][]int{{0}, {1, 2}, {3}, {4}},
				acquirers: []string{"zklock write", "curator read", "zklock read", "curator write", "zklock read"}},
			{name: "read-write from Curator's", groups: [][]int{{0}, {1, 2}, {3}, {4}},
				acquirers: []string{"curator write", "zklock read", "curator read", "zklock write", "curator read"}},
			{name: "readers first", groups: [][]int{{0, 1}, {2}, {3, 4}},
				acquirers: []string{"zklock read", "curator read", "zklock write", "curator read", "zklock read"}},
			{name: "semaphore from ours", groups: one[:3], below: semaphore, counts: []int{1, 3, 4},
				acquirers: []string{"zklock semaphore:1", "curator semaphore:1", "zklock semaphore:1"}},
			{name: "semaphore from Curator's", groups: one[:3], below: semaphore, counts: []int{1, 3, 4},
				acquirers: []string{"curator semaphoremutex", "zklock semaphoremutex", "curator semaphoremutex"}},
			{name: "semaphore of 2", groups: [][]int{{0, 1}, {2, 3}}, below: semaphore, counts: []int{1, 2, 4, 5},
				acquirers: []string{"zklock semaphore:2", "curator semaphore:2", "zklock semaphore:2", "curator semaphore:2"}},
			{name: "permits", groups: [][]int{{0}, {1}, {2}}, below: semaphore, counts: []int{3, 7, 8},
				acquirers: []string{"zklock semaphore:4:3", "zklock semaphore:4:3", "curator semaphore:4:2"}},
			{name: "latch from ours", groups: one,
				acquirers: []string{"zklock:latch mutex", "curator latch", "zklock:latch mutex", "curator latch"}},
			{name: "selector from Curator's", groups: one,
				acquirers: []string{"curator selector", "zklock mutex", "curator selector", "zklock mutex"}},
			{name: "kazoo layout from ours", groups: one,
				acquirers: []string{"zklock:kazoo mutex", "kazoo lock", "zklock:kazoo mutex", "kazoo lock"}},
			// No writer may follow a waiting kazoo reader, which would wait for the writer.
			{name: "kazoo layout writers", groups: one,
				acquirers: []string{"zklock:kazoo write", "kazoo write", "zklock:kazoo write", "kazoo write"}},
			{name: "kazoo layout readers last", groups: [][]int{{0}, {1, 2}},
				acquirers: []string{"kazoo write", "zklock:kazoo read", "kazoo read"}},
			{name: "kazoo layout readers first", groups: [][]int{{0, 1}, {2}, {3}},
				acquirers: []string{"kazoo read", "zklock:kazoo read", "kazoo write", "zklock:kazoo read"}},
			{name: "mixed layout and Curator", groups: one, counts: []int{2, 3, 5, 6},
				acquirers: []string{"zklock:mixed mutex", "curator mutex", "zklock:mixed mutex", "curator mutex"}},
			{name: "mixed layout and kazoo", groups: one, counts: []int{2, 3, 5, 6},
				acquirers: []string{"zklock:mixed mutex", "kazoo lock", "zklock:mixed mutex", "kazoo lock"}},
		} {
			t.Run(q.name, func(t *testing.T) { q.run(t, clients) })
		}
	})
}

// acquirer is one client of a queueing.
type acquirer struct {
	peer    *harness.Peer
	kind    string
	granted chan struct{} // closed after err is set
	err     error
}

// run enqueues the acquirers one by one, and then lets them hold and release in turn. It waits for
// the grant of each acquirer of the first group before the next one enqueues, because an acquire
// of a semaphore has two znodes for a short time.
func (q *queueing) run(t *testing.T, clients *pool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), handoverWait)
	defer cancel()
	path := clients.server.Chroot + "/" + strings.ReplaceAll(q.name, " ", "-")
	watch := newObserver(t, clients.server)
	below := []string{path}
	if q.below != nil {
		below = slices.Clone(q.below)
		for i := range below {
			below[i] = path + "/" + below[i]
		}
	}
	line := q.line(clients)
	for i, c := range line {
		c.acquire(ctx, path, func(err error) {
			if err != nil && ctx.Err() == nil {
				t.Errorf("%d (%s): %v", i, q.acquirers[i], err)
				cancel() // the others need not wait
			}
		})
		if slices.Contains(q.groups[0], i) {
			if err := c.wait(ctx); err != nil {
				t.Fatalf("%d (%s), acquire of a free lock: %v", i, q.acquirers[i], err)
			}
		}
		want := i + 1
		if q.counts != nil {
			want = q.counts[i]
		}
		watch.await(t, ctx, want, below...)
	}
	for g, group := range q.groups {
		for _, i := range group {
			if err := line[i].wait(ctx); err != nil {
				t.Fatalf("%d (%s), after the release of the previous group: %v", i, q.acquirers[i], err)
			}
		}
		// An acquirer that was granted too early may have reported it by now. The contests
		// detect the others.
		for _, later := range slices.Concat(q.groups[g+1:]...) {
			select {
			case <-line[later].granted:
				t.Fatalf("%d (%s) was granted before its turn, next to %v: %v", later, q.acquirers[later], group, line[later].err)
			default:
			}
		}
		for _, i := range group {
			if err := line[i].peer.Release(ctx); err != nil {
				t.Error(err)
			}
		}
	}
	watch.await(t, ctx, 0, below...)
}

// line returns the acquirers, each with another client.
func (q *queueing) line(clients *pool) []*acquirer {
	used := map[string]int{}
	line := make([]*acquirer, len(q.acquirers))
	for i, text := range q.acquirers {
		client, kind, _ := strings.Cut(text, " ")
		line[i] = &acquirer{peer: clients.of(client)[used[client]], kind: kind}
		used[client]++
	}
	return line
}

// acquire starts to acquire the lock at path, and calls report with the result.
func (c *acquirer) acquire(ctx context.Context, path string, report func(error)) {
	c.granted = make(chan struct{})
	go func() { // ends with the grant, or with ctx
		_, c.err = c.peer.Acquire(ctx, c.kind, path, handoverWait)
		report(c.err)
		close(c.granted)
	}()
}

// wait waits for the grant.
func (c *acquirer) wait(ctx context.Context) error {
	select {
	case <-c.granted:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
