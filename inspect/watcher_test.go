package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/inspect"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// watcherTest is a watcher that runs in a bubble, and a client that acquires locks.
type watcherTest struct {
	t     *testing.T
	srv   *zktest.Server
	locks *zklock.Client
	z     *zk.Client // of the watcher
	way   *zktest.Route
	s     *inspect.Watcher
	reads atomic.Int64 // that reached the server
}

// testWatcher runs f in a bubble with a watcher.
func testWatcher(t *testing.T, opts inspect.WatchOptions, f func(t *testing.T, sc *watcherTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		sc := &watcherTest{t: t, srv: srv, way: srv.Route(t), locks: zklock.New(srv.Dial(t), nil)}
		sc.way.DelayFunc(func(f zktest.Frame) time.Duration {
			heartbeat := f.Op == "exists" && f.Path == "/"
			if f.Direction == zktest.ToServer && !heartbeat && (f.Op == "exists" || strings.HasPrefix(f.Op, "get")) {
				sc.reads.Add(1)
			}
			return 0
		})
		sc.z = sc.way.Dial(t)
		defer sc.locks.Close()
		defer sc.start(opts)()
		sc.await("the first listing", func() bool { return sc.s.Status().Listed })
		f(t, sc)
	})
}

// start runs a watcher until stop is called.
func (sc *watcherTest) start(opts inspect.WatchOptions) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	s := inspect.NewWatcher(sc.z, &opts)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }() // ends in stop
	sc.s = s
	return func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			sc.t.Errorf("the watcher ended with %v", err)
		}
		_ = s.Close()
	}
}

// await waits until is returns true, at most a minute of the bubble's time.
func (sc *watcherTest) await(what string, is func() bool) {
	sc.t.Helper()
	for limit := time.Now().Add(time.Minute); !is(); {
		if time.Now().After(limit) {
			sc.t.Fatalf("timeout waiting for %s; the watcher shows %q, %+v", what, outlines(sc.s.Snapshot().Locks), sc.s.Status())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// shows waits until the watcher shows exactly these locks, at most a second.
func (sc *watcherTest) shows(want ...string) {
	sc.t.Helper()
	begun := time.Now()
	sc.await(fmt.Sprintf("%q", want), func() bool { return slices.Equal(outlines(sc.s.Snapshot().Locks), want) })
	if took := time.Since(begun); took > time.Second {
		sc.t.Errorf("%q was shown after %v", want, took)
	}
}

// acquire acquires a lock.
func (sc *watcherTest) acquire(l *zklock.Lock) *zklock.Hold {
	sc.t.Helper()
	hold, err := l.Acquire(sc.t.Context())
	if err != nil {
		sc.t.Fatal(err)
	}
	return hold
}

// enqueue starts an acquire. The channel receives its hold.
func (sc *watcherTest) enqueue(l *zklock.Lock) <-chan *zklock.Hold {
	got := make(chan *zklock.Hold, 1)
	go func() { // ends with the acquire
		if hold, err := l.Acquire(sc.t.Context()); err == nil {
			got <- hold
		}
	}()
	time.Sleep(20 * time.Millisecond)
	return got
}

func (sc *watcherTest) release(h *zklock.Hold) {
	sc.t.Helper()
	if err := h.Release(sc.t.Context()); err != nil {
		sc.t.Fatal(err)
	}
}

// TestKazooWaitersAreShownAtTheirSemaphore checks that waiters at the gate of kazoo's Semaphore are
// shown at the semaphore, and not as a lock, while a client holds a permit.
func TestKazooWaitersAreShownAtTheirSemaphore(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{Prefix: "/jobs"}, func(t *testing.T, sc *watcherTest) {
		z := sc.srv.Dial(t)
		gate := func() string {
			name, _, err := z.Create(t.Context(), "/jobs/s-__lock__/"+id32+"__lock__", []byte("b'py-3'"), nil, zk.ModeEphemeralSequential)
			if err != nil {
				t.Fatal(err)
			}
			return name
		}
		remove := func(node string) {
			if err := z.Delete(t.Context(), node, -1); err != nil {
				t.Fatal(err)
			}
		}
		createZnodes(t, z, "/jobs/s/x", "/jobs/s-__lock__/x")
		remove("/jobs/s/x")
		remove("/jobs/s-__lock__/x")
		first := gate()
		sc.shows("/jobs/s-__lock__ queue 1+0")
		createZnodes(t, z, "!/jobs/s/"+id32)
		sc.shows("/jobs/s semaphore 1+1") // the first one is still at the gate
		remove(first)
		sc.shows("/jobs/s semaphore 1+0")
		second, third := gate(), gate()
		sc.shows("/jobs/s semaphore 1+2")
		l := sc.s.Snapshot().Lock("/jobs/s")
		if e := l.Entries[1]; e.Recipe.String() != "kazoo gate" || inspect.OwnerName(e.Entry) != "py-3" || e.Position != 1 || e.Holder || e.Node != second {
			t.Errorf("the first waiter is %+v", e)
		}
		remove(second)
		sc.shows("/jobs/s semaphore 1+1")
		remove("/jobs/s/" + id32)
		sc.shows("/jobs/s-__lock__ queue 1+0") // until the next client takes a permit
		remove(third)
		sc.shows()
		for _, e := range sc.s.Events("") {
			if e.Path == "/jobs/s" {
				t.Errorf("the gate counts as the semaphore: %+v", e)
			}
		}
	})
}

// TestKazooSemaphoreHidesNoLockAtItsGate: a client that creates a permit of kazoo's Semaphore makes
// the path of a lock the semaphore's gate. The lock is shown nevertheless.
func TestKazooSemaphoreHidesNoLockAtItsGate(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		z := sc.srv.Dial(t)
		hold := sc.acquire(sc.locks.Mutex("s-__lock__"))
		createZnodes(t, z, "/zklock/s/x")
		if err := z.Delete(t.Context(), "/zklock/s/x", -1); err != nil {
			t.Fatal(err)
		}
		sc.shows("/zklock/s-__lock__ queue 1+0")
		createZnodes(t, z, "!/zklock/s/"+id32)
		both := []string{"/zklock/s semaphore 1+0", "/zklock/s-__lock__ queue 1+0"}
		sc.shows(both...)
		waiter := "/zklock/s-__lock__/" + id32 + "__lock__0000000009"
		createZnodes(t, z, "!"+waiter)
		sc.shows("/zklock/s semaphore 1+1", "/zklock/s-__lock__ queue 1+1")
		sc.release(hold)
		sc.shows("/zklock/s semaphore 1+1")
		waits := sc.enqueue(sc.locks.Mutex("s-__lock__"))
		sc.shows("/zklock/s semaphore 1+1", "/zklock/s-__lock__ queue 1+1")
		if err := z.Delete(t.Context(), waiter, -1); err != nil {
			t.Fatal(err)
		}
		hold = <-waits
		sc.shows(both...)
		if err := z.Delete(t.Context(), "/zklock/s/"+id32, -1); err != nil {
			t.Fatal(err)
		}
		sc.shows("/zklock/s-__lock__ queue 1+0")
		sc.release(hold)
		sc.shows()
	})
}

// TestWatcherShowsChangesWithinSecond checks holds and waiters of every kind of lock.
func TestWatcherShowsChangesWithinSecond(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		sc.shows()
		m := sc.locks.Mutex("m")
		first := sc.acquire(m)
		sc.shows("/zklock/m queue 1+0")
		second := sc.enqueue(m)
		sc.shows("/zklock/m queue 1+1")
		before := sc.s.Snapshot().Lock("/zklock/m")
		sc.release(first)
		hold := <-second
		sc.shows("/zklock/m queue 1+0")
		after := sc.s.Snapshot().Lock("/zklock/m")
		if after.Holders()[0].Token != hold.Token() || after.Version <= before.Version || after.Holders()[0].Granted.IsZero() {
			t.Errorf("%+v after the hand-over, %+v before", after, before)
		}
		n := sc.acquire(sc.locks.NodeLock("n"))
		s := sc.acquire(sc.locks.Semaphore("s", 3).Permits(2))
		sc.shows("/zklock/m queue 1+0", "/zklock/n node 1+0", "/zklock/s semaphore 2+0")
		version := sc.s.Snapshot().Version
		sc.release(n)
		sc.release(s)
		sc.release(hold)
		sc.shows()
		gone, known := sc.s.Removed(version)
		if slices.Sort(gone); !known || !slices.Equal(gone, []string{"/zklock/m", "/zklock/n", "/zklock/s"}) {
			t.Errorf("gone: %q, %t", gone, known)
		}
		if gone, known := sc.s.Removed(sc.s.Snapshot().Version); len(gone) != 0 || !known {
			t.Errorf("gone since now: %q, %t", gone, known)
		}
	})
}

// TestWatcherShowsLocksOfOtherLibraries checks their locks, and changes of the data of znodes.
func TestWatcherShowsLocksOfOtherLibraries(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{Prefix: "/"}, func(t *testing.T, sc *watcherTest) {
		other := sc.srv.Dial(t)
		createZnodes(t, other, "!/apps/k/"+id32+"__lock__0000000001", "!/apps/c/"+readName+"0000000002", "!/apps/c/stray")
		sc.shows("/apps/c queue 1+0", "/apps/c/stray node 1+0", "/apps/k queue 1+0")
		// Curator creates the parent of the permits together with the first permit.
		createZnodes(t, other, "!/sem/locks/"+mutexName+"0000000001")
		sc.await("the gate", func() bool { return sc.s.Snapshot().Lock("/sem/locks") != nil })
		createZnodes(t, other, "!/sem/leases/"+leaseName+"0000000001")
		sc.await("the semaphore", func() bool {
			l := sc.s.Snapshot().Lock("/sem")
			return l != nil && outline(l) == "/sem semaphore 1+1" && sc.s.Snapshot().Lock("/sem/locks") == nil
		})
		if _, err := other.Set(t.Context(), "/sem/leases", []byte("7"), -1); err != nil {
			t.Fatal(err)
		}
		if _, err := other.Set(t.Context(), "/apps/k/"+id32+"__lock__0000000001", []byte("__REVOKE__"), -1); err != nil {
			t.Fatal(err)
		}
		sc.await("the size and the release request", func() bool {
			return sc.s.Snapshot().Lock("/sem").Permits == 7 && sc.s.Snapshot().Lock("/apps/k").Entries[0].Revoked
		})
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		sc.shows()
	})
}

// TestValueIsFollowed: the value of a holder and each change of it are shown within a second,
// with escapes in place of what is unreadable.
func TestValueIsFollowed(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		hold := sc.acquire(sc.locks.Mutex("m").WithValue("10.0.0.1:80"))
		for value, shown := range map[string]string{"": "", "\x1b[2J<b>\xff": `\x1b[2J<b>\xff`, strings.Repeat("x", 100): strings.Repeat("x", 100)} {
			if err := hold.SetValue(t.Context(), value); err != nil {
				t.Fatal(err)
			}
			sc.await("the value "+shown, func() bool {
				l := sc.s.Snapshot().Lock("/zklock/m")
				return l != nil && l.Entries[0].Value == value && l.View().Entries[0].Value == shown && l.Summary().Value == inspect.Truncate(shown, inspect.MaxOwnerName)
			})
		}
		sc.release(hold)
	})
}

// TestReplacedEntryIsReadAgain checks that the watcher does not show a former holder if
// another client creates a znode with the name of its entry before the watcher reads the lock.
func TestReplacedEntryIsReadAgain(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{Prefix: "/zklock"}, func(t *testing.T, sc *watcherTest) {
		z := sc.srv.Dial(t)
		hold := sc.acquire(sc.locks.Mutex("a"))
		sc.shows("/zklock/a queue 1+0")
		sc.release(hold)
		if _, _, err := z.Create(t.Context(), hold.Node(), []byte("other"), nil, zk.ModeEphemeral); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		l := sc.s.Snapshot().Lock("/zklock/a")
		if l == nil || len(l.Entries) != 1 || l.Entries[0].Token <= hold.Token() || l.Entries[0].Session != z.SessionID() || l.Entries[0].Data != "other" {
			t.Errorf("after %v was released and replaced: %+v", hold, l)
		}
	})
}

// TestHistoryMeasuresWaitsAndHolds checks the durations and the counts.
func TestHistoryMeasuresWaitsAndHolds(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		m := sc.locks.Mutex("m")
		hold := sc.acquire(m)
		for range 4 {
			next := sc.enqueue(m)
			time.Sleep(10*time.Second - 20*time.Millisecond)
			sc.release(hold)
			hold = <-next
		}
		time.Sleep(time.Second)
		h := sc.s.History("/zklock/m")
		near := func(got, want float64) bool { return got > want*0.9 && got < want*1.1 }
		if h.Grants != 5 || h.Releases != 4 || h.Losses != 0 || h.Canceled != 0 || !near(h.Wait.P99, 10) || !near(h.Hold.P50, 10) || h.Wait.Count != 5 || h.Hold.Count != 4 {
			t.Errorf("history %+v", h)
		}
		all := sc.s.History("")
		if all.Grants != 5 || len(all.Points) < 4 || all.Step != 10 || len(h.Points) == 0 || h.Step != 60 {
			t.Errorf("history of all %+v, of one %+v", all, h)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := m.Acquire(ctx); err == nil {
			t.Fatal("acquired a held lock")
		}
		sc.await("the canceled acquire", func() bool { return sc.s.History("").Canceled == 1 })
		sc.release(hold)
		if none := sc.s.History("/none"); none.Grants != 0 || none.Points == nil {
			t.Errorf("history of nothing %+v", none)
		}
	})
}

// TestHistoryCountsShortHolds checks that holds that end before the watcher can read them count by
// their events, and that a hold in the mixed layout counts once.
func TestHistoryCountsShortHolds(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		for range 50 {
			sc.release(sc.acquire(sc.locks.Mutex("m")))
			sc.release(sc.acquire(sc.locks.Semaphore("s", 2)))
		}
		mixed := zklock.New(sc.srv.Dial(t), &zklock.Options{Layout: zklock.MixedLayout()})
		defer mixed.Close()
		first := sc.acquire(mixed.Mutex("x"))
		waits := sc.enqueue(mixed.Mutex("x"))
		time.Sleep(time.Second)
		sc.release(first)
		sc.release(<-waits)
		time.Sleep(time.Second)
		for path, want := range map[string]int64{"/zklock/m": 50, "/zklock/s": 50, "/zklock/x": 2} {
			if h := sc.s.History(path); h.Grants != want || h.Releases != want || h.Losses != 0 || h.Canceled != 0 {
				t.Errorf("%s: %+v, want %d", path, h, want)
			}
		}
	})
}

// TestHistoryCountsLosses checks that expired and broken holds count as losses, and releases do
// not.
func TestHistoryCountsLosses(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		z := sc.srv.Dial(t)
		other := zklock.New(z, nil)
		defer other.Close()
		sc.acquire(other.Mutex("a"))
		sc.acquire(other.Mutex("b"))
		broken := sc.acquire(sc.locks.Mutex("c"))
		all, err := zklock.All(sc.locks.Mutex("d"), sc.locks.Mutex("e")).Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sc.await("the locks", func() bool { return len(sc.s.Snapshot().Locks) == 5 })
		sc.release(all) // in one transaction, which is no loss
		if _, err := sc.s.Break(t.Context(), "c", broken.Node(), broken.Token()+1); err == nil {
			t.Error("broke a hold with another token")
		}
		held, err := sc.s.Break(t.Context(), "c", broken.Node(), broken.Token())
		if err != nil || len(held) != 1 || held[0].Token != broken.Token() {
			t.Errorf("broke %+v, %v", held, err)
		}
		if err := sc.srv.ExpireClient(z); err != nil {
			t.Fatal(err)
		}
		sc.shows()
		time.Sleep(time.Second)
		if h := sc.s.History(""); h.Losses != 3 || h.Broken != 1 || h.Releases != 5 {
			t.Errorf("history %+v, want 3 losses of 5", h)
		}
		<-broken.Done()
	})
}

// TestLossesWithSplitTransaction: the events of one transaction arrive one after the other.
func TestLossesWithSplitTransaction(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		var late atomic.Int64
		sc.way.DelayFunc(func(f zktest.Frame) time.Duration {
			if f.Op != "notification" {
				return 0
			}
			return time.Duration(late.Add(1)) * time.Millisecond
		})
		z := sc.srv.Dial(t)
		c := zklock.New(z, nil)
		defer c.Close()
		for _, name := range []string{"a", "b", "c"} {
			sc.acquire(c.Mutex(name))
		}
		time.Sleep(time.Second)
		if err := sc.srv.ExpireClient(z); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if h := sc.s.History(""); h.Releases != 3 || h.Losses != 3 {
			t.Errorf("%d releases and %d losses, want 3 of 3", h.Releases, h.Losses)
		}
		for _, path := range []string{"/zklock/a", "/zklock/b", "/zklock/c"} {
			if h := sc.s.History(path); h.Losses != 1 || !slices.ContainsFunc(sc.s.Events(path), func(e inspect.Event) bool { return e.Kind == inspect.Lost }) {
				t.Errorf("%s: %d losses, events %+v", path, h.Losses, sc.s.Events(path))
			}
		}
	})
}

// eventsOf returns what the watcher logged of a lock, oldest first: "KIND OWNER".
func (sc *watcherTest) eventsOf(path string) (found []string) {
	for _, e := range sc.s.Events(path) {
		found = append(found, string(e.Kind)+" "+e.OwnerName)
	}
	slices.Reverse(found)
	return found
}

func TestEventsNameTheirHolders(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		named := func(host string) (*zklock.Client, *zk.Client) {
			z := sc.srv.Dial(t)
			return zklock.New(z, &zklock.Options{Owner: &zklock.Owner{Host: host, PID: 1}}), z
		}
		a, _ := named("a")
		b, z := named("b")
		c, _ := named("c")
		for _, peer := range []*zklock.Client{a, b, c} {
			defer peer.Close()
		}
		first := sc.acquire(a.Mutex("m"))
		sc.acquire(b.Mutex("other"))
		waits := sc.enqueue(b.Mutex("m"))
		time.Sleep(3 * time.Second)
		if _, err := c.Mutex("m").Revoke(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		sc.release(first)
		<-waits
		last := sc.enqueue(c.Mutex("m"))
		time.Sleep(time.Second)
		if err := sc.srv.ExpireClient(z); err != nil {
			t.Fatal(err)
		}
		hold := <-last
		time.Sleep(time.Second)
		if _, err := sc.s.Break(t.Context(), "m", hold.Node(), hold.Token()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		want := []string{"acquired a:1", "release-requested a:1", "released a:1", "acquired b:1", "lost b:1", "acquired c:1", "broken c:1"}
		if got := sc.eventsOf("/zklock/m"); !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
		if got := sc.eventsOf(""); len(got) != len(want)+2 {
			t.Errorf("events of all locks: %q", got)
		}
		events := sc.s.Events("/zklock/m")
		if e := events[len(events)-3]; e.Seconds < 4 || e.Token != first.Token() || e.Session != inspect.FormatSession(first.Session()) {
			t.Errorf("the release is %+v", e)
		}
	})
}

// TestRareEventsStay checks that the log is limited, and that many acquires do not push out
// a loss.
func TestRareEventsStay(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		broken := sc.acquire(sc.locks.Mutex("b"))
		sc.await("the hold", func() bool { return sc.s.Snapshot().Lock("/zklock/b") != nil })
		if _, err := sc.s.Break(t.Context(), "b", broken.Node(), broken.Token()); err != nil {
			t.Fatal(err)
		}
		<-broken.Done()
		for range 3000 {
			sc.release(sc.acquire(sc.locks.Mutex("m")))
		}
		time.Sleep(time.Second)
		all := sc.eventsOf("")
		if len(all) != 5001 || !strings.HasPrefix(all[0], "broken") {
			t.Errorf("%d events, the first %q, want 5001 and the break", len(all), all[0])
		}
		if n := len(sc.eventsOf("/zklock/m")); n != 8 {
			t.Errorf("%d events of one lock", n)
		}
		if h := sc.s.Snapshot().Lock("/zklock/m"); h != nil {
			t.Errorf("the lock is held: %+v", h)
		}
	})
}

// TestWatcherReadsOnlyChanges checks that the watcher reads nothing without changes, and counts the
// reads of a change.
func TestWatcherReadsOnlyChanges(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		m := sc.locks.RWMutex("m").Reader()
		var holds []*zklock.Hold
		for range 20 {
			holds = append(holds, sc.acquire(m))
		}
		sc.shows("/zklock/m queue 20+0")
		time.Sleep(time.Second)
		sc.reads.Store(0)
		time.Sleep(time.Hour)
		if n := sc.reads.Load(); n != 0 {
			t.Errorf("%d reads in an hour in which nothing happened", n)
		}
		holds = append(holds, sc.acquire(m))
		sc.shows("/zklock/m queue 21+0")
		if n := sc.reads.Load(); n != 2 {
			t.Errorf("%d reads for a new entry, want a listing and its znode", n)
		}
		sc.release(holds[0])
		sc.shows("/zklock/m queue 20+0")
		if n := sc.reads.Load(); n != 3 {
			t.Errorf("%d reads after a release, want 3", n)
		}
		for _, h := range holds[1:] {
			sc.release(h)
		}
		sc.shows()
	})
}

// TestAwaitReleaseReadsLittle: a wait for a release reads nothing while the watcher follows the
// lock, and at most once a second otherwise.
func TestAwaitReleaseReadsLittle(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		for _, path := range []string{"/zklock/m", "/elsewhere/m"} {
			hold := sc.acquire(sc.locks.Mutex(path))
			time.Sleep(time.Second)
			sc.reads.Store(0)
			l, err := sc.s.Read(t.Context(), path)
			if err != nil {
				t.Fatal(err)
			}
			one := sc.reads.Swap(0)
			released := make(chan error, 1)
			go func() { released <- sc.s.AwaitRelease(t.Context(), path, l.Holders()) }()
			time.Sleep(30*time.Second + time.Millisecond)
			if n := sc.reads.Load(); path == "/zklock/m" && n != 0 || path != "/zklock/m" && (n == 0 || n > 31*one) {
				t.Errorf("%s: %d reads in 30 seconds", path, n)
			}
			before := time.Now()
			sc.release(hold)
			if err := <-released; err != nil || time.Since(before) > 2*time.Second {
				t.Errorf("%s: returned %v after %v", path, err, time.Since(before))
			}
		}
	})
}

// TestReadRateIsLimited checks that many changes do not exceed MaxReadRate.
func TestReadRateIsLimited(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{MaxReadRate: 20}, func(t *testing.T, sc *watcherTest) {
		sc.reads.Store(0)
		begun := time.Now()
		for time.Since(begun) < 30*time.Second {
			for i := range 20 {
				sc.release(sc.acquire(sc.locks.Mutex(fmt.Sprintf("m%d", i))))
			}
			time.Sleep(100 * time.Millisecond)
		}
		n := sc.reads.Load()
		if most := int64(20*time.Since(begun).Seconds() + 40); n > most || n < 300 {
			t.Errorf("%d reads in %v, want at most %d", n, time.Since(begun), most)
		}
		sc.await("no pending read", func() bool { return sc.s.Status().Pending == 0 })
		// A read may have been in flight before.
		if got := sc.s.Status().Reads; got < n {
			t.Errorf("%d reads were counted of %d", got, n)
		}
		sc.shows()
		if h := sc.s.History(""); h.Grants < 20*250 || h.Grants != h.Releases {
			t.Errorf("the history needs no reads, and has %+v", h)
		}
	})
}

// TestReadRateOfSlowReadsIsLimited checks that the watcher repeats a read that exceeds the timeout,
// within MaxReadRate.
func TestReadRateOfSlowReadsIsLimited(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{MaxReadRate: 20, List: inspect.ListOptions{Timeout: time.Second}}, func(t *testing.T, sc *watcherTest) {
		sc.way.DelayFunc(func(f zktest.Frame) time.Duration {
			if f.Direction != zktest.ToServer || f.Op != "exists" && !strings.HasPrefix(f.Op, "get") {
				return 0
			}
			sc.reads.Add(1)
			return 600 * time.Millisecond
		})
		op := sc.srv.Dial(t)
		const entries = 600
		if _, _, err := op.Create(t.Context(), "/zklock", nil, zk.OpenACL(), zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		if _, _, err := op.Create(t.Context(), "/zklock/long", nil, zk.OpenACL(), zk.ModePersistent); err != nil {
			t.Fatal(err)
		}
		for range entries {
			if _, _, err := op.Create(t.Context(), "/zklock/long/x-lock-", nil, zk.OpenACL(), zk.ModeEphemeralSequential); err != nil {
				t.Fatal(err)
			}
		}
		sc.reads.Store(0)
		time.Sleep(5 * time.Minute)
		if n, most := sc.reads.Load(), int64(5*60*20+2*entries); n > most {
			t.Errorf("%d reads in five minutes, want at most %d", n, most)
		}
	})
}

// TestBusyLockDelaysNoNodeLock checks that the watcher finds a new node lock while another lock
// changes more often than once in an Interval.
func TestBusyLockDelaysNoNodeLock(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		owner := sc.srv.Dial(t)
		createZnodes(t, owner, "/zklock/busy")
		sc.way.Delay(20 * time.Millisecond)
		createZnodes(t, owner, "!/zklock/node")
		for i := 0; sc.s.Snapshot().Lock("/zklock/node") == nil; i++ {
			node := fmt.Sprintf("/zklock/busy/%s%010d", mutexName, i)
			createZnodes(t, owner, "!"+node)
			if time.Sleep(10 * time.Millisecond); i == 500 {
				t.Fatal("it is not shown after five seconds")
			}
			if err := owner.Delete(t.Context(), node, -1); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestBusyLocksDelayNoNodeLock checks that the watcher finds a new node lock while the changes of
// other locks need more reads than MaxReadRate.
func TestBusyLocksDelayNoNodeLock(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		owner := sc.srv.Dial(t)
		const locks, created, limit = 80, 100, 200
		for k := range locks {
			createZnodes(t, owner, fmt.Sprintf("/zklock/busy%d", k))
		}
		for i := 0; sc.s.Snapshot().Lock("/zklock/node") == nil; i++ {
			var ops []zk.Op
			for k := range locks {
				name := fmt.Sprintf("/zklock/busy%d/%s", k, mutexName)
				if i > 0 {
					ops = append(ops, zk.DeleteOp(fmt.Sprintf("%s%010d", name, i-1), -1))
				}
				ops = append(ops, zk.CreateOp(fmt.Sprintf("%s%010d", name, i), nil, zk.OpenACL(),
					zk.ModeEphemeral))
			}
			if _, err := owner.Multi(t.Context(), ops...); err != nil {
				t.Fatal(err)
			}
			switch i {
			case created:
				createZnodes(t, owner, "!/zklock/node")
			case limit:
				t.Fatal("it is not shown after five seconds")
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
}

// TestWatcherIsCurrentAfterReconnect checks that the watcher finds the changes during an outage,
// and does not count earlier holders as new grants.
func TestWatcherIsCurrentAfterReconnect(t *testing.T) {
	for _, expire := range []bool{false, true} {
		t.Run(fmt.Sprintf("expire=%t", expire), func(t *testing.T) {
			testWatcher(t, inspect.WatchOptions{RelistInterval: 5 * time.Second}, func(t *testing.T, sc *watcherTest) {
				old := sc.acquire(sc.locks.Mutex("old"))
				left := sc.acquire(sc.locks.Mutex("left"))
				sc.shows("/zklock/left queue 1+0", "/zklock/old queue 1+0")
				time.Sleep(10 * time.Second)
				sc.way.Refuse(true)
				sc.way.CutConnections()
				sc.await("the end of the connection", func() bool { return !sc.s.Snapshot().Status.Connected })
				fresh := sc.acquire(sc.locks.Mutex("fresh"))
				sc.release(left)
				if expire {
					if err := sc.srv.ExpireSession(sc.z.SessionID()); err != nil {
						t.Fatal(err)
					}
				}
				sc.way.Refuse(false)
				sc.await("the changes", func() bool {
					return slices.Equal(outlines(sc.s.Snapshot().Locks), []string{"/zklock/fresh queue 1+0", "/zklock/old queue 1+0"})
				})
				sc.await("the watch", func() bool { return sc.s.Snapshot().Status.Watching && sc.s.Snapshot().Status.Connected })
				if h := sc.s.History(""); h.Grants != 2 {
					t.Errorf("history %+v, want the grants that were seen", h)
				}
				sc.release(old)
				sc.shows("/zklock/fresh queue 1+0")
				sc.release(fresh)
			})
		})
	}
}

// TestOtherWatchesOfTheSessionAreIgnored checks that the watcher handles only the events of its
// own watch if other code uses the same client: it shows no lock outside the prefix, and another
// watch that is removed does not make it list again.
func TestOtherWatchesOfTheSessionAreIgnored(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{Prefix: "/zklock"}, func(t *testing.T, sc *watcherTest) {
		shared := zklock.New(sc.z, nil)
		defer shared.Close()
		hold, inside := sc.acquire(sc.locks.Mutex("/other/lock")), sc.acquire(sc.locks.Mutex("lock"))
		next := sc.enqueue(shared.Mutex("/other/lock"))
		sc.shows("/zklock/lock queue 1+0")
		sc.release(hold) // which the shared client watches
		hold = <-next
		stop, err := sc.z.AddWatchFunc(t.Context(), "/another", zk.WatchRecursive, func(zk.Event) {})
		if err != nil {
			t.Fatal(err)
		}
		stop()
		for range 20 {
			time.Sleep(time.Second)
			if got := outlines(sc.s.Snapshot().Locks); !slices.Equal(got, []string{"/zklock/lock queue 1+0"}) || !sc.s.Status().Watching {
				t.Fatalf("the watcher shows %q, %+v", got, sc.s.Status())
			}
		}
		sc.release(hold)
		sc.release(inside)
		sc.shows()
	})
}

// TestRunEndsWithClient checks that Run returns an error if its client is closed.
func TestRunEndsWithClient(t *testing.T) {
	z := zktest.Start(t).Dial(t)
	s := inspect.NewWatcher(z, nil)
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("Run continues without a client")
	}
	_ = s.Close()
}

// TestValueSetDuringOutageIsShown checks that the watcher shows the value of a holder and the
// request to release its lock if it was a waiter before the watcher lost its connection.
func TestValueSetDuringOutageIsShown(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{}, func(t *testing.T, sc *watcherTest) {
		other := zklock.New(sc.srv.Dial(t), nil)
		defer other.Close()
		hold := sc.acquire(sc.locks.Mutex("m"))
		next := sc.enqueue(other.Mutex("m"))
		sc.shows("/zklock/m queue 1+1")
		time.Sleep(time.Minute)
		sc.way.Refuse(true)
		sc.way.CutConnections()
		sc.release(hold)
		hold = <-next
		if err := hold.SetValue(t.Context(), "10.0.0.2:80"); err != nil {
			t.Fatal(err)
		}
		if _, err := sc.locks.Mutex("m").Revoke(t.Context()); err != nil {
			t.Fatal(err)
		}
		sc.way.Refuse(false)
		sc.await("the value and the request", func() bool {
			l := sc.s.Snapshot().Lock("/zklock/m")
			return l != nil && l.Entries[0].Value == "10.0.0.2:80" && l.Entries[0].Revoked
		})
		sc.release(hold)
	})
}

// TestPermitIsNoNodeLock checks that permits of kazoo's Semaphore that the watcher took for node
// locks, because the read of the semaphore took long, are shown at the semaphore only.
func TestPermitIsNoNodeLock(t *testing.T) {
	testWatcher(t, inspect.WatchOptions{Prefix: "/jobs"}, func(t *testing.T, sc *watcherTest) {
		owner := sc.srv.Dial(t)
		createZnodes(t, owner, "/jobs/s")
		sc.way.Delay(100 * time.Millisecond)
		var permits []zk.Op
		for i := range 600 {
			node := fmt.Sprintf("/jobs/s/%032x", i)
			permits = append(permits, zk.CreateOp(node, nil, zk.OpenACL(), zk.ModeEphemeral))
		}
		if _, err := owner.Multi(t.Context(), permits...); err != nil {
			t.Fatal(err)
		}
		sc.await("the semaphore", func() bool { return sc.s.Snapshot().Lock("/jobs/s") != nil })
		time.Sleep(10 * time.Second)
		sc.shows("/jobs/s semaphore 600+0")
	})
}
