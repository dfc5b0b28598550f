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

// TestLocksExcludeWhileParentsAreDeleted: the parents of the locks are deleted whenever
// nobody is below them, as the servers do with containers. The numbers begin anew
// each time; tokens do not.
func TestLocksExcludeWhileParentsAreDeleted(t *testing.T) {
	const pause = 50 * time.Millisecond // in which there may be nobody
	beside := func(choices ...string) map[string][]string {
		return map[string][]string{"zklock:containers": choices, "curator": choices}
	}
	onEach(t, func(t *testing.T, s harness.SharedServer) {
		f := newFleet(t, s)
		for _, c := range []struct {
			contest
			below []string // directories to delete, the lock's own last
		}{
			{contest{name: "mutex", sides: beside("mutex=a:x")}, []string{""}},
			{contest{name: "read-write", sides: beside("read=a:s", "write=a:x")}, []string{""}},
			{contest{name: "semaphore", sides: beside("semaphore:2=a:p1/2")}, []string{"/leases", "/locks", ""}},
			{contest{name: "semaphore's permits", sides: map[string][]string{
				"zklock:containers": {"semaphore:3:2=a:p2/3", "semaphore:3=a:p1/3"}, "curator": {"semaphore:3=a:p1/3"},
			}}, []string{"/leases", "/locks"}},
		} {
			t.Run(c.name, func(t *testing.T) {
				c.pause, c.limit, c.limited = pause, patience, "curator" // which makes a parent once
				var dirs []string
				for _, dir := range c.below {
					dirs = append(dirs, c.nodes(f)[0]+dir)
				}
				collector := collect(t, newObserver(t, s), dirs)
				c.excludes(t, f)
				if n := collector(); n == 0 {
					t.Error("no parent was ever empty")
				} else {
					t.Logf("%d parents deleted", n)
				}
			})
		}
	})
}

// collect deletes the directories whenever they are empty, until the returned
// function is called, which tells how often it did.
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
