package inspect_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
)

// describeAll returns all fields of the locks, except those that only a Watcher knows.
func describeAll(locks []*inspect.Lock) string {
	var text strings.Builder
	for _, l := range locks {
		fmt.Fprintf(&text, "%s %s %d %v %v\n", l.Path, l.Kind, l.Permits, l.Layouts, l.Warnings)
		for _, e := range l.Entries {
			e.Granted = time.Time{}
			fmt.Fprintf(&text, "  %+v\n", e)
		}
	}
	return text.String()
}

// runRandomLocks acquires and releases locks of all kinds for a while, and sometimes leaves
// entries.
func runRandomLocks(t *testing.T, sc *watcherTest, n int, until time.Time) {
	rnd := rand.New(rand.NewPCG(uint64(n), 7))
	layouts := []zklock.Layout{{}, {}, {}, zklock.KazooLayout(), zklock.MixedLayout(), zklock.LatchLayout(), {Exclusive: "-W-", Shared: "-R-"}}
	z := sc.srv.Dial(t)
	c := zklock.New(z, &zklock.Options{Layout: layouts[n%len(layouts)]})
	defer c.Close()
	for time.Now().Before(until) {
		name := fmt.Sprintf("lock-%d", rnd.IntN(4))
		var l *zklock.Lock
		switch rnd.IntN(6) {
		case 0:
			l = c.NodeLock("node-" + name)
		case 1:
			l = c.Semaphore("semaphore-"+name, 3).Permits(1 + rnd.IntN(2))
		case 2:
			if n%len(layouts) > 2 {
				continue
			}
			l = c.RWMutex("rw-" + name).Reader()
		case 3:
			l = c.RWMutex("rw-" + name).Writer()
		default:
			l = c.Mutex(name)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rnd.IntN(2000))*time.Millisecond)
		hold, err := l.Acquire(ctx)
		cancel()
		if err != nil {
			continue
		}
		time.Sleep(time.Duration(rnd.IntN(500)) * time.Millisecond)
		switch rnd.IntN(20) {
		case 0:
			_ = sc.srv.ExpireClient(z) // which ends the hold
		case 1:
			_, _ = l.Revoke(t.Context())
		}
		if rnd.IntN(8) > 0 { // otherwise the hold ends with its session
			_ = hold.Release(t.Context())
		}
	}
}

// TestWatcherMatchesListAfterRandomLocks checks that a Watcher shows the locks that exist after
// random acquires and releases, even if its own connection was cut and its session expired.
func TestWatcherMatchesListAfterRandomLocks(t *testing.T) {
	for seed := range 3 {
		cuts := seed > 0 // of the watcher's connection
		t.Run(fmt.Sprintf("cuts=%t,%d", cuts, seed), func(t *testing.T) {
			testWatcher(t, inspect.WatchOptions{RelistInterval: 2 * time.Second}, func(t *testing.T, sc *watcherTest) {
				rnd := rand.New(rand.NewPCG(uint64(seed), 11))
				until := time.Now().Add(time.Minute)
				var all sync.WaitGroup // ended before the test
				for n := range 7 {
					all.Go(func() { runRandomLocks(t, sc, n, until) })
				}
				for checks := 0; time.Now().Before(until); checks++ {
					time.Sleep(time.Duration(rnd.IntN(8000)) * time.Millisecond)
					switch {
					case cuts && checks%3 == 0:
						sc.way.CutConnections()
					case cuts && checks%7 == 1:
						_ = sc.srv.ExpireClient(sc.z)
					}
				}
				all.Wait()
				checkMatchesList(t, sc)
				for n := range 4 {
					for _, kind := range []string{"", "node-", "semaphore-", "rw-"} {
						path := fmt.Sprintf("/zklock/%slock-%d", kind, n)
						if h := sc.s.History(path); !cuts && h.Grants != h.Releases {
							t.Errorf("%s: at the end, %d releases of %d grants", path, h.Releases, h.Grants)
						}
					}
				}
				if h := sc.s.History(""); !cuts && (h.Grants < 100 || h.Grants != h.Releases) {
					t.Errorf("at the end, the history is %+v", h)
				}
			})
		})
	}
}

// TestWatcherMatchesListWithRandomEntries does the same with holders, waiters, and strays of other
// libraries.
func TestWatcherMatchesListWithRandomEntries(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		rnd := rand.New(rand.NewPCG(1, 13))
		other := sc.srv.Dial(t)
		names := []string{mutexName, readName, id32 + "__lock__", id32 + "__rlock__", "_c_" + id32 + "-lock-", "_c_" + id36 + "-latch-", "stray-"}
		var there []string
		for _, parent := range []string{"/zklock", "/zklock/a", "/zklock/b", "/zklock/a/c"} {
			if _, _, err := other.Create(t.Context(), parent, nil, nil, zk.ModePersistent); err != nil {
				t.Fatal(err)
			}
		}
		for step := range 400 {
			if len(there) > 0 && rnd.IntN(5) < 2 {
				i := rnd.IntN(len(there))
				if err := other.Delete(t.Context(), there[i], -1); err != nil {
					t.Fatal(err)
				}
				there = slices.Delete(there, i, i+1)
			} else {
				parent := []string{"/zklock/a", "/zklock/b", "/zklock/a/c"}[rnd.IntN(3)]
				made, _, err := other.Create(t.Context(), parent+"/"+names[rnd.IntN(len(names))], []byte("x"), nil, zk.ModeEphemeralSequential)
				if err != nil {
					t.Fatal(err)
				}
				there = append(there, made)
			}
			if rnd.IntN(3) == 0 {
				time.Sleep(time.Duration(rnd.IntN(300)) * time.Millisecond)
			}
			if step%100 == 99 {
				checkMatchesList(t, sc)
			}
		}
	})
}

// checkMatchesList waits until the watcher is current, and compares it with a listing.
func checkMatchesList(t *testing.T, sc *watcherTest) {
	t.Helper()
	time.Sleep(30 * time.Second) // longer than session timeouts and background work
	r := inspect.NewReader(sc.srv.Dial(t), zklock.Layout{})
	defer r.Close()
	want, err := r.List(t.Context(), "/zklock", inspect.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := describeAll(sc.s.Snapshot().Locks), describeAll(want.Locks); got != want {
		t.Errorf("the watcher shows\n%s\nthe list is\n%s\n%+v", got, want, sc.s.Status())
	}
}
