package inspect_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestLockThatBecomesUnreadableIsOmitted checks that the watcher does not show a lock that the
// client may not read any more as it was before, and that it says so.
func TestLockThatBecomesUnreadableIsOmitted(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{RelistInterval: 5 * time.Second}, func(t *testing.T, sc *watcherTest) {
		root := sc.srv.Dial(t)
		if err := root.AddAuth(t.Context(), "digest", []byte("root:secret")); err != nil {
			t.Fatal(err)
		}
		hold, other := sc.acquire(sc.locks.Mutex("closed")), sc.acquire(sc.locks.Mutex("open"))
		sc.shows("/zklock/closed queue 1+0", "/zklock/open queue 1+0")
		if _, err := root.SetACL(t.Context(), "/zklock/closed", zk.CreatorACL(), -1); err != nil {
			t.Fatal(err)
		}
		sc.way.CutConnections() // the servers report no change of an ACL
		sc.await("a list without the closed lock", func() bool {
			return slices.Equal(outlines(sc.s.Snapshot().Locks), []string{"/zklock/open queue 1+0"})
		})
		sc.await("a listing", func() bool { return sc.s.Snapshot().Unknown("/zklock/free") == nil })
		for path, unknown := range map[string]error{
			"/zklock/closed": inspect.ErrUnreadable, "/zklock/closed/below": inspect.ErrUnreadable, "/zklock/closed2": nil, "/zklock/open": nil,
		} {
			if err := sc.s.Snapshot().Unknown(path); !errors.Is(err, unknown) {
				t.Errorf("%s is unknown because of %v, want %v", path, err, unknown)
			}
		}
		if err := sc.s.Snapshot().Unknown("/elsewhere"); err == nil {
			t.Error("a lock that is not below the prefix is shown as free")
		}
		sc.await("the reason", func() bool {
			status := sc.s.Status()
			return !status.Complete && strings.Contains(status.Reason, "no permission") && strings.Contains(status.Reason, "/zklock/closed")
		})
		if _, err := root.SetACL(t.Context(), "/zklock/closed", zk.OpenACL(), -1); err != nil {
			t.Fatal(err)
		}
		sc.release(hold)
		hold = sc.acquire(sc.locks.Mutex("closed"))
		sc.shows("/zklock/closed queue 1+0", "/zklock/open queue 1+0")
		sc.release(hold)
		sc.release(other)
		sc.shows()
	})
}

// TestLockWhoseListBecomesTooLargeIsOmitted checks that the watcher omits locks whose children
// it cannot list any more, says how many, and shows them again.
func TestLockWhoseListBecomesTooLargeIsOmitted(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		sc.z = sc.way.Dial(t, func(o *zk.Options) { o.MaxReply = 8 << 10 })
		defer sc.start(inspect.WatchOptions{})()
		sc.await("the walk", func() bool { return sc.s.Status().Listed })
		hold, other := sc.acquire(sc.locks.Mutex("wide")), sc.acquire(sc.locks.Mutex("open"))
		decoy := sc.acquire(sc.locks.Mutex("decoy"))
		sc.shows("/zklock/decoy queue 1+0", "/zklock/open queue 1+0", "/zklock/wide queue 1+0")
		root := sc.srv.Dial(t)
		names := func(lock string) (paths []string) {
			for i := range 9 {
				paths = append(paths, fmt.Sprintf("/zklock/%s/%s%d", lock, strings.Repeat("x", 1<<10), i))
			}
			return paths
		}
		omits := func(reason string, paths ...string) {
			t.Helper()
			sc.await("the reason "+reason, func() bool {
				status := sc.s.Status()
				return !status.Complete && strings.Contains(status.Reason, inspect.ErrTooMany.Error()) && strings.Contains(status.Reason, reason)
			})
			for _, path := range paths {
				if err := sc.s.Snapshot().Omitted(path); !errors.Is(err, inspect.ErrTooMany) {
					t.Errorf("%s is omitted because of %v", path, err)
				}
			}
		}
		createZnodes(t, root, names("wide")...)
		sc.shows("/zklock/decoy queue 1+0", "/zklock/open queue 1+0")
		omits("1 path, first /zklock/wide", "/zklock/wide")
		createZnodes(t, root, names("decoy")...)
		sc.shows("/zklock/open queue 1+0")
		omits("2 paths, first /zklock/decoy", "/zklock/wide", "/zklock/decoy")
		sc.way.CutConnections() // so that the watcher lists all locks again
		omits("too large a list of them", "/zklock/wide", "/zklock/decoy")
		for _, path := range append(names("wide"), names("decoy")...) {
			if err := root.Delete(t.Context(), path, -1); err != nil {
				t.Fatal(err)
			}
		}
		sc.shows("/zklock/decoy queue 1+0", "/zklock/open queue 1+0", "/zklock/wide queue 1+0")
		sc.await("a complete list", func() bool { return sc.s.Status().Complete && sc.s.Snapshot().Omitted("/zklock/wide") == nil })
		sc.release(hold)
		sc.release(decoy)
		sc.release(other)
	})
}

// TestSemaphoreWhoseListBecomesReadableIsComplete checks that the watcher lists again after it could
// read a semaphore whose permits the last listing could not list.
func TestSemaphoreWhoseListBecomesReadableIsComplete(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		sc.z = sc.way.Dial(t, func(o *zk.Options) { o.MaxReply = 8 << 10 })
		defer sc.start(inspect.WatchOptions{})()
		sc.await("the walk", func() bool { return sc.s.Status().Listed })
		hold := sc.acquire(sc.locks.Semaphore("sem", 2))
		sc.shows("/zklock/sem semaphore 1+0")
		root := sc.srv.Dial(t)
		var names []string
		for i := range 9 {
			names = append(names, fmt.Sprintf("/zklock/sem/leases/%s%d", strings.Repeat("x", 1<<10), i))
		}
		createZnodes(t, root, names...)
		sc.way.CutConnections() // so that the watcher lists all locks again
		sc.await("a listing without the permits", func() bool { return strings.Contains(sc.s.Status().Reason, "too large a list of them") })
		for _, path := range names {
			if err := root.Delete(t.Context(), path, -1); err != nil {
				t.Fatal(err)
			}
		}
		next := sc.acquire(sc.locks.Semaphore("sem", 2))
		sc.shows("/zklock/sem semaphore 2+0")
		sc.await("a complete list", func() bool { return sc.s.Status().Complete })
		sc.release(hold)
		sc.release(next)
	})
}

// TestLockThatOnlyListingsOmitIsListedAgainOnce checks that a lock that takes too long in a
// listing, but which the watcher can read, does not make it list all locks again and again.
func TestLockThatOnlyListingsOmitIsListedAgainOnce(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{Prefix: "/zklock"}, func(t *testing.T, sc *watcherTest) {
		hold := sc.acquire(sc.locks.Mutex("/w/lock"))
		opts := inspect.WatchOptions{Prefix: "/w", List: inspect.ListOptions{Timeout: time.Second}}
		defer sc.start(opts)()
		sc.shows("/w/lock queue 1+0")
		sc.await("a complete list", func() bool { return sc.s.Status().Complete })
		var reads atomic.Int64
		var listing atomic.Bool
		sc.way.DelayFunc(func(f zktest.Frame) time.Duration {
			if f.Direction == zktest.ToServer && f.Path == "/w" {
				listing.Store(true)
			}
			if f.Direction != zktest.ToServer || f.Path != "/w/lock" {
				return 0
			}
			reads.Add(1)
			if f.Op == "getChildren2" && listing.CompareAndSwap(true, false) {
				return 1500 * time.Millisecond
			}
			return 0
		})
		sc.way.CutConnections() // so that the watcher lists all locks again
		sc.await("an incomplete listing", func() bool { return !sc.s.Status().Complete && strings.Contains(sc.s.Status().Reason, "first /w/lock") })
		next := sc.enqueue(sc.locks.Mutex("/w/lock"))
		sc.shows("/w/lock queue 1+1")
		time.Sleep(2 * time.Minute)
		before := reads.Load()
		time.Sleep(5 * time.Minute)
		if after := reads.Load(); after != before || after == 0 {
			t.Errorf("%d reads without any change", after-before)
		}
		if status := sc.s.Status(); status.Complete {
			t.Errorf("the list is complete: %+v", status)
		}
		sc.release(hold)
		sc.release(<-next)
	})
}

// TestWatcherReadsSlowLockRarely checks that the watcher omits a lock that takes longer than
// Timeout to read, counts these reads, repeats them rarely, and shows the lock when it can read it.
func TestWatcherReadsSlowLockRarely(t *testing.T) {
	const rate, timeout = 100, time.Second
	testWatcher(t, inspect.WatchOptions{Prefix: "/none"}, func(t *testing.T, sc *watcherTest) {
		owner := sc.srv.Dial(t)
		createZnodes(t, owner, "/zklock/big", "/zklock/small")
		made := createEntries(t, owner, "/zklock/big", 3000)
		var reads atomic.Int64
		sc.way.DelayFunc(func(f zktest.Frame) time.Duration {
			read := f.Op == "exists" && f.Path != "/" || strings.HasPrefix(f.Op, "get")
			if f.Direction == zktest.ToServer && read {
				reads.Add(1)
			}
			return 50 * time.Millisecond
		})
		opts := inspect.WatchOptions{MaxReadRate: rate, List: inspect.ListOptions{Timeout: timeout}}
		defer sc.start(opts)()
		sc.await("a listing without the lock", func() bool {
			return sc.s.Status().Listed && !sc.s.Status().Complete
		})
		if err := sc.s.Snapshot().Unknown("/zklock/big"); !errors.Is(err, inspect.ErrTooMany) {
			t.Errorf("the lock is unknown because of %v", err)
		}
		time.Sleep(10 * time.Second)
		listed := reads.Load()
		began, counted := time.Now(), sc.s.Status().Reads
		var events atomic.Int64
		for range 60 {
			createZnodes(t, owner, fmt.Sprintf("!/zklock/big/%s%010d", mutexName, 5000+events.Add(1)))
			time.Sleep(10 * time.Second)
		}
		n, most := reads.Load()-listed, int64(rate*(time.Since(began)/time.Second))
		if got := sc.s.Status().Reads - counted; n > most/4 || got < n-int64(rate) {
			t.Errorf("%d reads, of which it counted %d; want at most %d", n, got, most/4)
		}
		if err := sc.s.Snapshot().Omitted("/zklock/big"); !errors.Is(err, inspect.ErrTooMany) {
			t.Errorf("the lock is omitted because of %v", err)
		}
		createZnodes(t, owner, "!/zklock/small/"+mutexName+"0000000001")
		sc.await("the other lock", func() bool { return sc.s.Snapshot().Lock("/zklock/small") != nil })
		for i, r := range made[1:] {
			if err := owner.Delete(t.Context(), r.Path, -1); err != nil {
				t.Fatal(i, err)
			}
		}
		for range 12 {
			time.Sleep(time.Minute)
		}
		sc.shows(fmt.Sprintf("/zklock/big queue 1+%d", events.Load()), "/zklock/small queue 1+0")
	})
}

// TestSlowLockDelaysNoOtherLock checks that the watcher shows the changes of other locks within
// seconds while the entries of a lock change that takes longer than Timeout to read.
func TestSlowLockDelaysNoOtherLock(t *testing.T) {
	const most = 5 * time.Second // Timeout, Interval, and the reads of the other lock
	testWatcher(t, inspect.WatchOptions{Prefix: "/none"}, func(t *testing.T, sc *watcherTest) {
		owner := sc.srv.Dial(t)
		createZnodes(t, owner, "/zklock/big", "/zklock/small")
		createEntries(t, owner, "/zklock/big", 3000)
		sc.way.Delay(50 * time.Millisecond)
		defer sc.start(inspect.WatchOptions{List: inspect.ListOptions{Timeout: time.Second}})()
		sc.await("a listing without the lock", func() bool { return sc.s.Status().Listed })
		changes := 0
		change := func() { // two events a second
			createZnodes(t, owner, fmt.Sprintf("!/zklock/big/%s%010d", mutexName, 5000+changes))
			changes++
			time.Sleep(500 * time.Millisecond)
		}
		for range 80 {
			change()
		}
		for i := range 6 {
			node := fmt.Sprintf("/zklock/small/%s%010d", mutexName, 1+i)
			shows := func(held bool) {
				t.Helper()
				began := time.Now()
				for (sc.s.Snapshot().Lock("/zklock/small") != nil) != held {
					if change(); time.Since(began) > most {
						t.Fatalf("round %d: it is not shown after %v that the lock is held: %t",
							i, time.Since(began), held)
					}
				}
			}
			createZnodes(t, owner, "!"+node)
			shows(true)
			if err := owner.Delete(t.Context(), node, -1); err != nil {
				t.Fatal(err)
			}
			shows(false)
		}
		if n := sc.s.Status().Pending; n > 2 {
			t.Errorf("%d locks are pending", n)
		}
	})
}

// TestSlowLocksDelayNoOtherLock checks that the watcher shows the changes of other locks within
// seconds while many locks take longer than Timeout to read, and still reads these again.
func TestSlowLocksDelayNoOtherLock(t *testing.T) {
	const slow, timeout, most = 60, time.Second, 5 * time.Second
	testWatcher(t, inspect.WatchOptions{Prefix: "/none"}, func(t *testing.T, sc *watcherTest) {
		owner := sc.srv.Dial(t)
		createZnodes(t, owner, "/zklock/small")
		createSlow(t, owner, slow)
		lists := make([]atomic.Int64, slow)
		sc.way.DelayFunc(func(f zktest.Frame) time.Duration {
			var k int
			_, err := fmt.Sscanf(f.Path, "/zklock/big%d", &k)
			if f.Direction == zktest.ToServer && f.Op == "getChildren2" && err == nil {
				lists[k].Add(1)
			}
			return 80 * time.Millisecond
		})
		defer sc.start(inspect.WatchOptions{List: inspect.ListOptions{Timeout: timeout}})()
		sc.await("a listing", func() bool { return sc.s.Status().Listed })
		for i := range 50 {
			node := fmt.Sprintf("/zklock/small/%s%010d", mutexName, 1+i)
			createZnodes(t, owner, "!"+node)
			began := time.Now()
			for sc.s.Snapshot().Lock("/zklock/small") == nil {
				if time.Sleep(100 * time.Millisecond); time.Since(began) > most {
					t.Fatalf("round %d: the change is not shown after %v", i, most)
				}
			}
			if err := owner.Delete(t.Context(), node, -1); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}
		for k := range lists {
			if n := lists[k].Load(); n < 4 {
				t.Errorf("lock %d was read %d times", k, n)
			}
		}
	})
}

// TestWatcherListsManySlowLocks checks that the watcher continues if a listing stops because of too
// many slow locks. It lists again at its usual interval until it knows all of them.
func TestWatcherListsManySlowLocks(t *testing.T) {
	const slow, interval = 100, 2 * time.Minute
	testWatcher(t, inspect.WatchOptions{Prefix: "/none"}, func(t *testing.T, sc *watcherTest) {
		owner := sc.srv.Dial(t)
		createZnodes(t, owner, "!/zklock/small/"+mutexName+"0000000001")
		createSlow(t, owner, slow)
		var lists atomic.Int64
		sc.way.DelayFunc(func(f zktest.Frame) time.Duration {
			if f.Direction == zktest.ToServer && f.Op == "getChildren2" && f.Path == "/zklock" {
				lists.Add(1)
			}
			return 80 * time.Millisecond
		})
		defer sc.start(inspect.WatchOptions{
			List: inspect.ListOptions{Timeout: time.Second}, RelistInterval: interval,
		})()
		sc.await("a partial listing", func() bool {
			status := sc.s.Status()
			return status.Listed && strings.Contains(status.Reason, "paths that took more than 1s")
		})
		known := func() (n int) { // slow locks that the snapshot names
			for k := range slow {
				at := fmt.Sprintf("/zklock/big%d", k)
				if err := sc.s.Snapshot().Unknown(at); err == nil {
					t.Fatalf("%s is known to be free", at)
				} else if strings.HasSuffix(err.Error(), ": "+at) {
					n++
				}
			}
			return n
		}
		if n := known(); n < 60 || n == slow {
			t.Errorf("after the first listing, %d slow locks are known", n)
		}
		time.Sleep(interval / 2)
		if n := lists.Load(); n > 4 {
			t.Errorf("%d listings in half of the interval", n)
		}
		time.Sleep(2 * interval)
		if n := known(); n != slow || sc.s.Snapshot().Lock("/zklock/small") == nil {
			t.Errorf("%d of %d slow locks are known, %+v", n, slow, sc.s.Status())
		}
		n := lists.Load()
		time.Sleep(2 * interval)
		if more := lists.Load() - n; more > 0 {
			t.Errorf("%d more listings", more)
		}
		if why := sc.s.Status().Reason; strings.Contains(why, "connection") {
			t.Error(why)
		}
	})
}

// createSlow creates n locks that take eight round trips to read.
func createSlow(t *testing.T, owner *zk.Client, n int) {
	t.Helper()
	for k := range n {
		at := fmt.Sprintf("/zklock/big%d", k)
		createZnodes(t, owner, at)
		createEntries(t, owner, at, 600)
	}
}

// createEntries creates n entries of mutexes at a path, and returns the results.
func createEntries(t *testing.T, z *zk.Client, at string, n int) []zk.Result {
	t.Helper()
	entries := make([]zk.Op, n)
	for i := range entries {
		entries[i] = zk.CreateOp(at+"/"+mutexName, nil, nil, zk.ModeEphemeralSequential)
	}
	made, err := z.Multi(t.Context(), entries...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestLockAtGateOfSemaphoreIsNotFree: a client that may create znodes next to a lock named locks
// can create one named leases, so that the entries of the lock count as the waiters of a semaphore.
func TestLockAtGateOfSemaphoreIsNotFree(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		hold := sc.acquire(sc.locks.Mutex("db/locks"))
		sc.shows("/zklock/db/locks queue 1+0")
		unknown := func(path string) bool { return sc.s.Snapshot().Unknown(path) != nil }
		stranger := sc.srv.Dial(t)
		createZnodes(t, stranger, "/zklock/db/leases")
		for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if sc.s.Snapshot().Lock("/zklock/db/locks") == nil && !unknown("/zklock/db/locks") {
				t.Fatalf("the lock is shown as free: %q", outlines(sc.s.Snapshot().Locks))
			}
		}
		sc.shows("/zklock/db semaphore 0+1")
		sc.release(hold)
		sc.shows()
		if unknown("/zklock/db/locks") || unknown("/zklock/db") {
			t.Error("the free lock may have a holder")
		}
		createZnodes(t, stranger, "!/zklock/s/"+id32, "!/zklock/s-__lock__/"+id32+"__lock__0000000001")
		sc.shows("/zklock/s semaphore 1+1")
		if !unknown("/zklock/s-__lock__") {
			t.Error("the lock at the gate of kazoo's semaphore is shown as free")
		}
	})
}

// delayFirst delays the first n requests of this kind, and counts them all.
func (sc *watcherTest) delayFirst(n int64, d time.Duration, op, path string) *atomic.Int64 {
	seen := new(atomic.Int64)
	sc.way.DelayFunc(func(f zktest.Frame) time.Duration {
		if f.Direction == zktest.ToServer && f.Op == op && f.Path == path && seen.Add(1) <= n {
			return d
		}
		return 0
	})
	return seen
}

// TestLateAnswersForgetNoNodeLock checks that the watcher shows a new node lock although the
// answers to the first requests about it are late, and until then not as free.
func TestLateAnswersForgetNoNodeLock(t *testing.T) {
	for _, late := range []int64{1, 3} {
		testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
			owner := sc.srv.Dial(t)
			createZnodes(t, owner, "/zklock/x")
			delayed := sc.delayFirst(late, 11*time.Second, "exists", "/zklock/n")
			createZnodes(t, owner, "!/zklock/n")
			time.Sleep(2 * time.Second)
			if s := sc.s.Snapshot(); s.Lock("/zklock/n") == nil && s.Unknown("/zklock/n") == nil {
				t.Error("it is shown as free")
			}
			sc.await("the node lock", func() bool { return sc.s.Snapshot().Lock("/zklock/n") != nil })
			if delayed.Load() == 0 {
				t.Error("no answer was late")
			}
			sc.await("a complete list", func() bool { return sc.s.Status().Complete })
		})
	}
}

// TestLateAnswersForParentHideNoLock checks that the watcher shows locks although the first two
// listings had a late answer about the prefix, or about the root of names, where no lock can be.
func TestLateAnswersForParentHideNoLock(t *testing.T) {
	for _, tt := range []struct{ prefix, late string }{
		{"/zklock", "/zklock"}, {"/", "/zklock"}, {"/", "/"},
	} {
		testWatcher(t, inspect.WatchOptions{Prefix: "/none"}, func(t *testing.T, sc *watcherTest) {
			hold := sc.acquire(sc.locks.Mutex("m"))
			defer sc.release(hold)
			var lists, reads atomic.Int64
			sc.way.DelayFunc(func(f zktest.Frame) time.Duration {
				heartbeat := f.Op == "exists" && f.Path == "/"
				read := f.Op == "exists" || strings.HasPrefix(f.Op, "get")
				if f.Direction != zktest.ToServer || !read || heartbeat {
					return 0
				}
				reads.Add(1)
				if f.Op == "getChildren2" && f.Path == tt.late {
					if n := lists.Add(1); n == 1 || n == 3 { // between the listings, the watcher checks it
						return 11 * time.Second
					}
				}
				return 0
			})
			defer sc.start(inspect.WatchOptions{Prefix: tt.prefix})()
			sc.await("a listing", func() bool { return sc.s.Status().Listed })
			if s := sc.s.Snapshot(); lists.Load() == 0 || s.Unknown("/zklock/m") == nil {
				t.Errorf("%v: the lock is shown as free, %d requests", tt, lists.Load())
			}
			time.Sleep(3 * time.Minute)
			if s := sc.s.Snapshot(); s.Lock("/zklock/m") == nil || !s.Status.Complete {
				t.Errorf("%v: after %d requests, the watcher shows %q, %+v",
					tt, lists.Load(), outlines(s.Locks), s.Status)
			}
			before := reads.Load()
			time.Sleep(10 * time.Minute)
			if n := reads.Load() - before; n > 0 {
				t.Errorf("%v: %d reads without any change", tt, n)
			}
		})
	}
}

// TestNewSlowLocksDelayOthersByASecond checks that the watcher shows the changes of other locks
// within seconds while many new locks take nearly as long as Timeout, and does not show these as
// free.
func TestNewSlowLocksDelayOthersByASecond(t *testing.T) {
	const slow, most = 3, 2500 * time.Millisecond // the read of a slow lock, and of the other
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		owner := sc.srv.Dial(t)
		createZnodes(t, owner, "/zklock/small")
		sc.way.Delay(100 * time.Millisecond)
		for k := range slow {
			at := fmt.Sprintf("/zklock/big%d", k)
			createZnodes(t, owner, at)
			createEntries(t, owner, at, 5000)
		}
		time.Sleep(200 * time.Millisecond) // until the events have arrived and the first read runs
		createZnodes(t, owner, "!/zklock/small/"+mutexName+"0000000001")
		began := time.Now()
		sc.await("the change", func() bool { return sc.s.Snapshot().Lock("/zklock/small") != nil })
		if took := time.Since(began); took > most+(slow-1)*time.Second {
			t.Errorf("the change was shown after %v", took)
		}
		for k := range slow {
			at := fmt.Sprintf("/zklock/big%d", k)
			if s := sc.s.Snapshot(); s.Lock(at) == nil && s.Unknown(at) == nil {
				t.Errorf("%s is shown as free", at)
			}
		}
		sc.await("all locks", func() bool { return len(sc.s.Snapshot().Locks) == slow+1 })
		for k := range slow {
			createZnodes(t, owner, fmt.Sprintf("!/zklock/big%d/%s%010d", k, mutexName, 6000))
		}
		createZnodes(t, owner, "!/zklock/small/"+mutexName+"0000000002")
		began = time.Now()
		sc.await("the change", func() bool {
			return len(sc.s.Snapshot().Lock("/zklock/small").Entries) == 2
		})
		if took := time.Since(began); took > most-time.Second {
			t.Errorf("the second change was shown after %v", took)
		}
	})
}

// TestBusyLocksDelayNoSlowLock checks that the watcher reads a slow lock again while other locks
// change more often than it can read them.
func TestBusyLocksDelayNoSlowLock(t *testing.T) {
	const busy, timeout = 30, time.Second
	opts := inspect.WatchOptions{MaxReadRate: 50, List: inspect.ListOptions{Timeout: timeout}}
	testWatcher(t, opts, func(t *testing.T, sc *watcherTest) {
		owner := sc.srv.Dial(t)
		reads := sc.delayFirst(3, 2*timeout, "getChildren2", "/zklock/big")
		createZnodes(t, owner, "!/zklock/big/"+mutexName+"0000000001")
		for i := range 300 {
			var ops []zk.Op
			for k := range busy {
				at := fmt.Sprintf("/zklock/busy%d", k)
				if i == 0 {
					createZnodes(t, owner, at)
				} else {
					ops = append(ops, zk.DeleteOp(fmt.Sprintf("%s/%s%010d", at, mutexName, i-1), -1))
				}
				node := fmt.Sprintf("%s/%s%010d", at, mutexName, i)
				ops = append(ops, zk.CreateOp(node, nil, zk.OpenACL(), zk.ModeEphemeral))
			}
			if _, err := owner.Multi(t.Context(), ops...); err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if sc.s.Snapshot().Lock("/zklock/big") == nil {
			t.Errorf("it is not shown after 30 s and %d reads", reads.Load())
		}
	})
}

// TestChangedDataOfLateReadIsShown checks that a value is shown that changed before a read with a
// late answer.
func TestChangedDataOfLateReadIsShown(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		hold := sc.acquire(sc.locks.Mutex("m").WithValue("before"))
		defer sc.release(hold)
		sc.shows("/zklock/m queue 1+0")
		sc.delayFirst(1, 5*time.Second, "getChildren2", "/zklock/m")
		if err := hold.SetValue(t.Context(), "after"); err != nil {
			t.Fatal(err)
		}
		sc.await("the value", func() bool {
			return sc.s.Snapshot().Lock("/zklock/m").Entries[0].Value == "after"
		})
	})
}

// TestSlowFreeLocksAreNotShownAsFree checks that locks that were slow to read are shown as locks
// that may be held from their next acquire until they are read.
func TestSlowFreeLocksAreNotShownAsFree(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		owner := sc.srv.Dial(t)
		paths := []string{"/zklock/a", "/zklock/b", "/zklock/c"}
		createZnodes(t, owner, paths...)
		sc.way.DelayFunc(func(f zktest.Frame) time.Duration {
			if f.Direction == zktest.ToServer && f.Op == "getChildren2" && slices.Contains(paths, f.Path) {
				return 5 * time.Second
			}
			return 0
		})
		entry := func(path string, n int) string { return fmt.Sprintf("%s/%s%010d", path, mutexName, n) }
		for _, path := range paths {
			createZnodes(t, owner, "!"+entry(path, 1))
		}
		sc.await("all locks", func() bool { return len(sc.s.Snapshot().Locks) == len(paths) })
		for _, path := range paths {
			if err := owner.Delete(t.Context(), entry(path, 1), -1); err != nil {
				t.Fatal(err)
			}
		}
		sc.await("no lock", func() bool { return len(sc.s.Snapshot().Locks) == 0 && sc.s.Status().Complete })
		for _, path := range paths {
			createZnodes(t, owner, "!"+entry(path, 2))
		}
		time.Sleep(200 * time.Millisecond) // until the events have arrived
		for len(sc.s.Snapshot().Locks) < len(paths) {
			s := sc.s.Snapshot()
			for _, path := range paths {
				if s.Lock(path) == nil && s.Unknown(path) == nil {
					t.Fatalf("%s is shown as free", path)
				}
			}
			if len(s.Locks) < len(paths) && s.Status.Pending == 0 {
				t.Fatal("a lock is being read, but none is pending")
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// TestChangesWithoutWatchAreRead checks that the watcher reads the data of a waiter that became the
// holder while it had no watch.
func TestChangesWithoutWatchAreRead(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		other := zklock.New(sc.srv.Dial(t), nil)
		defer other.Close()
		hold := sc.acquire(sc.locks.Mutex("m"))
		next := sc.enqueue(other.Mutex("m"))
		sc.shows("/zklock/m queue 1+1")
		if err := sc.z.RemoveWatches(t.Context(), "/zklock", zk.WatchKindAny); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		sc.release(hold)
		hold = <-next
		if err := hold.SetValue(t.Context(), "new"); err != nil {
			t.Fatal(err)
		}
		sc.await("the value", func() bool {
			l := sc.s.Snapshot().Lock("/zklock/m")
			return l != nil && l.Entries[0].Value == "new"
		})
		sc.release(hold)
	})
}

// TestDelayedPathIsReadWhenItChanges checks that a path that was too slow to read in one listing,
// and free in the next one, is read when it changes, not after its delay.
func TestDelayedPathIsReadWhenItChanges(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{Prefix: "/none"}, func(t *testing.T, sc *watcherTest) {
		owner := sc.srv.Dial(t)
		createZnodes(t, owner, "/zklock/p", "/zklock/q")
		sc.delayFirst(1, 11*time.Second, "exists", "/zklock/p")
		defer sc.start(inspect.WatchOptions{RelistInterval: time.Second})()
		unknown := func() bool { return sc.s.Snapshot().Unknown("/zklock/p") != nil }
		sc.await("a late answer", func() bool { return sc.s.Status().Listed && unknown() })
		sc.way.CutConnections()
		sc.await("a complete listing", func() bool { return sc.s.Status().Complete && !unknown() })
		createZnodes(t, owner, "!/zklock/p/"+mutexName+"0000000001")
		time.Sleep(time.Second)
		sc.shows("/zklock/p queue 1+0")
	})
}
