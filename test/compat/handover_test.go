package compat

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
)

// handoverWait bounds one test of who is next.
const handoverWait = 5 * time.Minute

// queueing is a list of clients that acquire one lock one after the other, and the
// order in which the lock is granted to them.
type queueing struct {
	name string
	// Each is the kind of client, a blank, and the kind of lock.
	comers []string
	// groups are the numbers of the comers that hold at once, in order: all of a
	// group release before the next one is granted. The first group is granted at once.
	groups [][]int
	// counts are how many znodes there are after each of the comers is granted (the first
	// group) or waits (the others); nil means one for each.
	counts []int
	below  []string // the lock's directories; nil means the lock itself
}

// TestReleaseHandsOverToOtherLibrary: the lock goes from one library to the other in order of arrival,
// both ways, at once.
func TestReleaseHandsOverToOtherLibrary(t *testing.T) {
	one := [][]int{{0}, {1}, {2}, {3}}
	semaphore := []string{"locks", "leases"} // a waiter at the gate has two znodes, one behind it one
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		f := newFleet(t, s)
		for _, q := range []queueing{
			{name: "mutex from ours", groups: one,
				comers: []string{"zklock mutex", "curator mutex", "zklock mutex", "curator mutex"}},
			{name: "mutex from Curator's", groups: one,
				comers: []string{"curator mutex", "zklock mutex", "curator mutex", "zklock mutex"}},
			{name: "kazoo from ours", groups: one,
				comers: []string{"zklock mutex", "kazoo lock-shared", "zklock mutex", "kazoo lock-shared"}},
			{name: "kazoo from kazoo's", groups: one,
				comers: []string{"kazoo lock-shared", "zklock mutex", "kazoo lock-shared", "zklock mutex"}},
			{name: "kazoo that does not know us first", groups: one[:3],
				comers: []string{"kazoo lock", "zklock mutex", "curator mutex"}},
			{name: "read-write from ours", groups: [][]int{{0}, {1, 2}, {3}, {4}},
				comers: []string{"zklock write", "curator read", "zklock read", "curator write", "zklock read"}},
			{name: "read-write from Curator's", groups: [][]int{{0}, {1, 2}, {3}, {4}},
				comers: []string{"curator write", "zklock read", "curator read", "zklock write", "curator read"}},
			{name: "readers first", groups: [][]int{{0, 1}, {2}, {3, 4}},
				comers: []string{"zklock read", "curator read", "zklock write", "curator read", "zklock read"}},
			{name: "semaphore from ours", groups: one[:3], below: semaphore, counts: []int{1, 3, 4},
				comers: []string{"zklock semaphore:1", "curator semaphore:1", "zklock semaphore:1"}},
			{name: "semaphore from Curator's", groups: one[:3], below: semaphore, counts: []int{1, 3, 4},
				comers: []string{"curator semaphoremutex", "zklock semaphoremutex", "curator semaphoremutex"}},
			{name: "semaphore of 2", groups: [][]int{{0, 1}, {2, 3}}, below: semaphore, counts: []int{1, 2, 4, 5},
				comers: []string{"zklock semaphore:2", "curator semaphore:2", "zklock semaphore:2", "curator semaphore:2"}},
			{name: "permits", groups: [][]int{{0}, {1}, {2}}, below: semaphore, counts: []int{3, 7, 8},
				comers: []string{"zklock semaphore:4:3", "zklock semaphore:4:3", "curator semaphore:4:2"}},
			{name: "latch from ours", groups: one,
				comers: []string{"zklock:latch mutex", "curator latch", "zklock:latch mutex", "curator latch"}},
			{name: "selector from Curator's", groups: one,
				comers: []string{"curator selector", "zklock mutex", "curator selector", "zklock mutex"}},
			{name: "kazoo layout from ours", groups: one,
				comers: []string{"zklock:kazoo mutex", "kazoo lock", "zklock:kazoo mutex", "kazoo lock"}},
			// No writer behind a kazoo reader that waits: it would wait for it.
			{name: "kazoo layout writers", groups: one,
				comers: []string{"zklock:kazoo write", "kazoo write", "zklock:kazoo write", "kazoo write"}},
			{name: "kazoo layout readers last", groups: [][]int{{0}, {1, 2}},
				comers: []string{"kazoo write", "zklock:kazoo read", "kazoo read"}},
			{name: "kazoo layout readers first", groups: [][]int{{0, 1}, {2}, {3}},
				comers: []string{"kazoo read", "zklock:kazoo read", "kazoo write", "zklock:kazoo read"}},
			{name: "mixed layout and Curator", groups: one, counts: []int{2, 3, 5, 6},
				comers: []string{"zklock:mixed mutex", "curator mutex", "zklock:mixed mutex", "curator mutex"}},
			{name: "mixed layout and kazoo", groups: one, counts: []int{2, 3, 5, 6},
				comers: []string{"zklock:mixed mutex", "kazoo lock", "zklock:mixed mutex", "kazoo lock"}},
		} {
			t.Run(q.name, func(t *testing.T) { q.run(t, f) })
		}
	})
}

// comer is one client in line.
type comer struct {
	peer    *harness.Peer
	kind    string
	granted chan struct{} // closed after err is set
	err     error
}

// run enqueues the comers one by one, and then has them hold and release in turn. It
// waits for the grant of each comer of the first group before the next comer enqueues:
// an acquire of a semaphore has two znodes for a moment, so the number of znodes alone
// does not show that the comer is done.
func (q *queueing) run(t *testing.T, f *fleet) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), handoverWait)
	defer cancel()
	path := f.server.Chroot + "/" + strings.ReplaceAll(q.name, " ", "-")
	watch := newObserver(t, f.server)
	below := []string{path}
	if q.below != nil {
		below = slices.Clone(q.below)
		for i := range below {
			below[i] = path + "/" + below[i]
		}
	}
	line := q.line(f)
	for i, c := range line {
		c.acquire(ctx, path, func(err error) {
			if err != nil && ctx.Err() == nil {
				t.Errorf("%d (%s): %v", i, q.comers[i], err)
				cancel() // the others need not wait
			}
		})
		if slices.Contains(q.groups[0], i) {
			if err := c.wait(ctx); err != nil {
				t.Fatalf("%d (%s), for which the lock is free: %v", i, q.comers[i], err)
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
				t.Fatalf("%d (%s), whose turn it was: %v", i, q.comers[i], err)
			}
		}
		// Who was granted before its turn may have said so by now. (Who has not is
		// caught by the contests.)
		for _, later := range slices.Concat(q.groups[g+1:]...) {
			select {
			case <-line[later].granted:
				t.Fatalf("%d (%s) was granted before its turn, next to %v: %v", later, q.comers[later], group, line[later].err)
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

// line is the comers, each with a client of its own.
func (q *queueing) line(f *fleet) []*comer {
	used := map[string]int{}
	line := make([]*comer, len(q.comers))
	for i, text := range q.comers {
		client, kind, _ := strings.Cut(text, " ")
		line[i] = &comer{peer: f.of(client)[used[client]], kind: kind}
		used[client]++
	}
	return line
}

// acquire starts to acquire the lock at path, and calls report with the result.
func (c *comer) acquire(ctx context.Context, path string, report func(error)) {
	c.granted = make(chan struct{})
	go func() { // ends with the grant, or with ctx
		_, c.err = c.peer.Acquire(ctx, c.kind, path, handoverWait)
		report(c.err)
		close(c.granted)
	}()
}

// wait waits for the comer's grant.
func (c *comer) wait(ctx context.Context) error {
	select {
	case <-c.granted:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
