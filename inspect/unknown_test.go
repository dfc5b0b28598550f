package inspect_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
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

// TestLockThatOnlyListingsOmitIsListedAgainOnce checks that a lock with more children than a listing
// accepts, but which the watcher can read, does not make it list all locks again and again.
func TestLockThatOnlyListingsOmitIsListedAgainOnce(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{Prefix: "/zklock"}, func(t *testing.T, sc *watcherTest) {
		hold := sc.acquire(sc.locks.Mutex("/w/lock"))
		root := sc.srv.Dial(t)
		for i := range 6 {
			createZnodes(t, root, fmt.Sprintf("/w/lock/x%d", i))
		}
		defer sc.start(inspect.WatchOptions{Prefix: "/w"})()
		sc.shows("/w/lock queue 1+0")
		sc.await("a complete list", func() bool { return sc.s.Status().Complete })
		sc.s.Bound(5, 5)
		sc.way.CutConnections() // so that the watcher lists all locks again
		sc.await("an incomplete listing", func() bool { return !sc.s.Status().Complete && strings.Contains(sc.s.Status().Reason, "first /w/lock") })
		next := sc.enqueue(sc.locks.Mutex("/w/lock"))
		sc.shows("/w/lock queue 1+1")
		time.Sleep(2 * time.Minute)
		before := sc.s.Status().Reads
		time.Sleep(5 * time.Minute)
		if after := sc.s.Status().Reads; after != before {
			t.Errorf("%d reads without any change", after-before)
		}
		sc.release(hold)
		sc.release(<-next)
	})
}
