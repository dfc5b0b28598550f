package compat

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
)

// TestLocksExcludeWhileParentsAreDeleted deletes the parents of the locks whenever they are
// empty, as servers do with containers. Then sequence numbers start again, and tokens do not.
func TestLocksExcludeWhileParentsAreDeleted(t *testing.T) {
	const pause = 50 * time.Millisecond // in which a parent may be empty
	sides := func(choices ...string) map[string][]string {
		return map[string][]string{"zklock:containers": choices, "curator": choices}
	}
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		clients := newPool(t, s)
		for _, c := range []struct {
			contest
			below []string // directories to delete, the lock's znode last
		}{
			{contest{name: "mutex", sides: sides("mutex=a:x")}, []string{""}},
			{contest{name: "read-write", sides: sides("read=a:s", "write=a:x")}, []string{""}},
			{contest{name: "semaphore", sides: sides("semaphore:2=a:p1/2")}, []string{"/leases", "/locks", ""}},
			{contest{name: "semaphore's permits", sides: map[string][]string{
				"zklock:containers": {"semaphore:3:2=a:p2/3", "semaphore:3=a:p1/3"}, "curator": {"semaphore:3=a:p1/3"},
			}}, []string{"/leases", "/locks"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				c.pause, c.limit, c.limited = pause, patience, "curator" // creates a parent only once
				var dirs []string
				for _, dir := range c.below {
					dirs = append(dirs, c.nodes(clients)[0]+dir)
				}
				collector := collect(t, newObserver(t, s), dirs)
				c.excludes(t, clients)
				if n := collector(); n == 0 {
					t.Error("no parent was ever empty")
				} else {
					t.Logf("%d parents deleted", n)
				}
			})
		}
	})
}

// collect deletes the directories whenever they are empty. The returned function ends this and
// returns the number of deletions.
func collect(t *testing.T, o observer, dirs []string) (stop func() int) {
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	n := 0
	wg.Go(func() { // ends with ctx
		again := time.NewTicker(time.Millisecond)
		defer again.Stop()
		for ctx.Err() == nil {
			for _, dir := range dirs {
				switch err := o.Delete(context.WithoutCancel(ctx), dir, -1); {
				case err == nil:
					n++
				case !errors.Is(err, zk.ErrNotEmpty) && !errors.Is(err, zk.ErrNoNode):
					t.Errorf("delete %s: %v", dir, err)
				}
			}
			<-again.C
		}
	})
	return func() int {
		cancel()
		wg.Wait()
		return n
	}
}
