package locktest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	gozk "github.com/go-zookeeper/zk"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// The regression tests repeat bugs that other libraries' locks had, or have, with this
// project's locks. Each test is one schedule of faults, by package zktest in a synctest
// bubble, so that it happens for certain. The same schedule runs with the bug: with
// go-zookeeper itself where its version 1.0.4 has it, and otherwise with the recipe of
// ZooKeeper's documentation in a few lines and that bug. There it must fail with the
// bug's words. Every test fails if its fault did not happen.
//
// CURATOR and ZOOKEEPER are Apache's trackers, the others are on GitHub.
//
//	test                                      whose bug                        what went wrong                                     what holds here
//	TestOrphanAfterFailedCreate               samuel/go-zookeeper#229          znode forgotten when the listing's answer is lost   the acquire goes on, and has its znode
//	TestOrphanAfterCancel                     CURATOR-79, CURATOR-18           a cancel during the create leaves the znode         a znode of unknown fate is found and deleted
//	TestOrphanAfterLostCleanup                python-zk/kazoo#732              the clean-up is tried once                          deleted until it is known to be gone
//	TestTwoNodesOfOneSession                  etcd-io/etcd#5199, CURATOR-3     create done again, waits for its own first znode    the older of two is deleted
//	TestAdoptedNodeOfADyingSession            CURATOR-498, CURATOR-604         a znode with its mark, of a session at its end      own is what has the mark and the session
//	TestMissedWakeUp                          shayhatsor/zookeeper#26,         deleted between listing and watch, waits forever      a watch on nothing is an answer
//	                                          apache/helix#44
//	TestWakeUpBeforeTheWait                   CURATOR-527, CURATOR-641         the event comes before the wait                     events are kept, not signalled
//	TestWatchOnANodeAlreadyGone               CURATOR-107, python-zk/kazoo#490 exists leaves a watch on what never comes           no watch is left
//	TestReleaseRequestLost                    CURATOR-678, CURATOR-486         a failed release forgets its znode                  deleted until it is known to be gone
//	TestReleaseReplyLost                      the same, go-zookeeper 1.0.4     a release that was done fails for ever              an applied delete is enough
//	TestStaleReleaseDeletesANewerLock         etcd-io/etcd#22082               the retry deletes a newer znode of that name         checked before it is deleted
//	TestStaleReleaseOfOneClient               etcd-io/etcd#22082               the same in one session                             released twice is released once
//	TestGrantWithoutLookingAtTheSession       etcd-io/etcd#9921, #16221        granted by an event after the session ended               a grant needs a deadline in the future
//	TestWaiterIgnoresItsOwnExpiry             etcd-io/etcd#19597               waits without an entry                  enqueues again, at the end
//	TestSwappedSession                        ClickHouse/ClickHouse#116690     another session taken for the same                  lost
//	TestSwappedSessionIsTold                  ClickHouse/ClickHouse#116690     the client is not told                                      told with the handshake
//	TestPermitsNotReturned                    CURATOR-315, -335, -462          a failed or cancelled acquire keeps a permit           given back
//	TestReadersWaitForLaterWriters            python-zk/kazoo#649              reader and writer wait for each other               readers wait for predecessors only
//	TestSequenceAtItsLimit                    go-zookeeper/zk#65,              the last number comes again, every client holds               refused, nothing left
//	                                          python-zk/kazoo#730,
//	                                          ZOOKEEPER-2944
//	TestContainerCollectedUnderAWaitingClient python-zk/kazoo#563, CURATOR-180 no such znode                                       parents are created again
//	TestContainerCollected                    the same, by the collector       no such znode                                       parents are created again

// dir is the lock's znode in every regression test.
const dir = "/locks/x"

// timeout is the session timeout of the clients.
const timeout = 4 * time.Second

// patience is longer than anything has to take, on the bubble's clock.
const patience = time.Minute

// A contender is a lock of one client.
type contender interface {
	acquire(ctx context.Context) error
	release(ctx context.Context) error
	// held reports whether the client believes that it holds.
	held() bool
}

// A recipe makes contenders.
type recipe struct {
	name  string
	make  func(s *scene, via *zktest.Route) contender
	shows string // of one with a bug: what its error must contain
}

// showing returns the recipe with the text that its bug leads to.
func (r recipe) showing(text string) recipe {
	r.shows = text
	return r
}

// A scene is a server with clients, in a bubble of its own.
type scene struct {
	*testing.T
	srv *zktest.Server
	op  *zk.Client // the operator's, without faults
}

// A participant is a contender with a connection of its own.
type participant struct {
	contender
	route *zktest.Route
}

// regress runs a schedule with this project's lock, for which it must return no error,
// and with a recipe that has the bug, for which it must return the bug's error.
// Otherwise the schedule would prove nothing.
func regress(t *testing.T, schedule func(s *scene, r recipe) error, sound, broken recipe) {
	t.Helper()
	runSchedule(t, sound.name, func(s *scene) {
		if err := schedule(s, sound); err != nil {
			s.Error(err)
		}
	})
	var err error
	for range mostAttempts {
		runSchedule(t, broken.name, func(s *scene) { err = schedule(s, broken) })
		// go-zookeeper fails a request that it gets between the end of a connection and
		// the next attempt to connect. Then it does not reach its bug.
		if !errors.Is(err, gozk.ErrNoServer) {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), broken.shows) {
		t.Errorf("%s: the schedule does not show the bug: %v; want %s", broken.name, err, broken.shows)
	}
}

// mostAttempts bounds how often a schedule runs until the recipe reaches its bug.
const mostAttempts = 10

func runSchedule(t *testing.T, name string, f func(s *scene)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			s := &scene{T: t, srv: srv, op: srv.Dial(t)}
			for _, parent := range []string{"/locks", dir} {
				s.create(parent, zk.ModePersistent)
			}
			f(s)
		})
	})
}

// enter adds a contender.
func (s *scene) enter(r recipe) *participant {
	s.Helper()
	route := s.srv.Route(s.T)
	return &participant{r.make(s, route), route}
}

// create makes a znode as the operator.
func (s *scene) create(path string, mode zk.CreateMode) string {
	s.Helper()
	made, _, err := s.op.Create(s.Context(), path, nil, nil, mode)
	if err != nil {
		s.Fatal(err)
	}
	return made
}

func (s *scene) remove(path string) {
	s.Helper()
	if err := s.op.Delete(s.Context(), path, -1); err != nil {
		s.Fatal(err)
	}
}

// blocker creates the entry of another holder, who holds the lock until it is removed.
func (s *scene) blocker() string {
	s.Helper()
	return s.create(dir+"/_c_00000000-0000-0000-0000-000000000000-lock-", zk.ModeEphemeralSequential)
}

// entries returns the names of a znode's children.
func (s *scene) entries(below string) []string {
	s.Helper()
	names, _, err := s.op.Children(s.Context(), below)
	if err != nil {
		s.Fatal(err)
	}
	return names
}

// owner returns the session that owns an entry.
func (s *scene) owner(name string) int64 {
	s.Helper()
	stat, ok, err := s.op.Exists(s.Context(), dir+"/"+name)
	if err != nil || !ok {
		s.Fatalf("%s: %v, %v", name, ok, err)
	}
	return stat.EphemeralOwner
}

// happened fails the test unless all faults have happened.
func (s *scene) happened(faults ...*zktest.Fault) {
	s.Helper()
	synctest.Wait() // the relay counts a fault after it
	for i, f := range faults {
		if f.Count() == 0 {
			s.Fatalf("fault %d did not happen", i)
		}
	}
}

// within calls f with a context that is done after patience.
func (s *scene) within(f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	return f(ctx)
}

// advance advances the bubble's clock and waits until every goroutine is blocked.
func advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// An attempt is an acquire in flight.
type attempt struct {
	over atomic.Bool
	err  error // once over
}

// begin starts an acquire and returns when it is blocked or has returned.
func (s *scene) begin(ctx context.Context, p *participant) *attempt {
	a := &attempt{}
	go func() { // ends with the acquire
		a.err = p.acquire(ctx)
		a.over.Store(true)
	}()
	synctest.Wait()
	return a
}

// free returns an error unless another client can acquire the lock now.
func (s *scene) free() error {
	s.Helper()
	other := s.enter(mutex)
	if err := s.within(other.acquire); err != nil {
		return fmt.Errorf("no other client gets the lock: %w; there are %q", err, s.entries(dir))
	}
	return s.within(other.release)
}

// watches reports whether a request or its answer is for a path, or is setWatches, which has
// no path of its own: zklock sets its first watches on several znodes together.
func watches(f zktest.Frame, path string) bool { return f.Path == path || f.Op == "setWatches" }

// delays delays every request of the participant by a second that watches a path, and returns
// the number of such requests.
func (p *participant) delays(path string) *atomic.Int64 {
	var seen atomic.Int64
	p.route.DelayFunc(func(f zktest.Frame) time.Duration {
		if f.Direction != zktest.ToServer || !watches(f, path) {
			return 0
		}
		seen.Add(1)
		return time.Second
	})
	return &seen
}

// TestRegressionTableIsComplete checks that the table above has every regression test, and
// no other.
func TestRegressionTableIsComplete(t *testing.T) {
	doc, err := os.ReadFile("regression_test.go")
	if err != nil {
		t.Fatal(err)
	}
	inTable := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^//\t(Test\w+) `).FindAllSubmatch(doc, -1) {
		inTable[string(m[1])] = true
	}
	files, err := filepath.Glob("regression_*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range files {
		code, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t`).FindAllSubmatch(code, -1) {
			found[string(m[1])] = true
			if !inTable[string(m[1])] {
				t.Errorf("%s is not in the table", m[1])
			}
		}
	}
	for name := range inTable {
		if !found[name] {
			t.Errorf("%s is in the table, and does not exist", name)
		}
	}
}
