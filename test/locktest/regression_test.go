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

// The regression tests run schedules that caused bugs in the locks of other libraries. Each
// test is one schedule of faults by package zktest in a synctest bubble, so that it is
// deterministic. The same schedule runs with zklock and with the bug: with go-zookeeper if its
// version 1.0.4 has the bug, and otherwise with a short implementation of ZooKeeper's recipe
// that has it. The buggy lock must fail with the expected error. Every test fails if its fault
// did not happen.
//
// CURATOR and ZOOKEEPER are issues of Apache, the others are on GitHub.
//
//	test                                      library and issue                what went wrong                               zklock
//	TestOrphanAfterFailedCreate               samuel/go-zookeeper#229          client forgets its znode if the listing fails continues with its znode
//	TestOrphanAfterCancel                     CURATOR-79, CURATOR-18           cancel during the create leaves the znode     finds and deletes the znode
//	TestOrphanAfterLostCleanup                python-zk/kazoo#732              client tries the delete once                  repeats the delete
//	TestTwoNodesOfOneSession                  etcd-io/etcd#5199, CURATOR-3     client waits for its own first znode          deletes the older znode
//	TestAdoptedNodeOfADyingSession            CURATOR-498, CURATOR-604         client uses a znode of an ending session      checks the owner too
//	TestMissedWakeUp                          shayhatsor/zookeeper#26,         release between listing and watch             handles a missing znode
//	                                          apache/helix#44
//	TestWakeUpBeforeTheWait                   CURATOR-527, CURATOR-641         the event arrives before the wait             stores events
//	TestWatchOnANodeAlreadyGone               CURATOR-107, python-zk/kazoo#490 exists leaves a watch on a missing znode      leaves no watch
//	TestReleaseRequestLost                    CURATOR-678, CURATOR-486         failed release forgets its znode              repeats the delete
//	TestReleaseReplyLost                      go-zookeeper 1.0.4               release fails forever after a lost answer     accepts an applied delete
//	TestStaleReleaseDeletesANewerLock         etcd-io/etcd#22082               retry deletes a newer znode of that name      checks before the delete
//	TestStaleReleaseOfOneClient               etcd-io/etcd#22082               the same in one session                       releases only once
//	TestGrantWithoutCheckingSession           etcd-io/etcd#9921, #16221        granted by an event after the session ended   needs a future deadline
//	TestWaiterIgnoresItsOwnExpiry             etcd-io/etcd#19597               waits without an entry                        enqueues again
//	TestSwappedSession                        ClickHouse/ClickHouse#116690     another session is used as the same one       loses the hold
//	TestSwappedSessionEndsHold                ClickHouse/ClickHouse#116690     the client does not notice                    reports it at the handshake
//	TestPermitsNotReturned                    CURATOR-315, -335, -462          failed or cancelled acquire keeps a permit    releases the permit
//	TestReadersWaitForLaterWriters            python-zk/kazoo#649              reader and writer wait for each other         waits for predecessors only
//	TestSequenceAtItsLimit                    go-zookeeper/zk#65,              last number repeats, every client holds       refuses, leaves nothing
//	                                          python-zk/kazoo#730,
//	                                          ZOOKEEPER-2944
//	TestContainerCollectedUnderAWaitingClient python-zk/kazoo#563, CURATOR-180 no such znode                                 creates the parents again
//	TestContainerCollected                    the same, by the collector       no such znode                                 creates the parents again

// dir is the lock's znode.
const dir = "/locks/x"

// timeout is the session timeout of the clients.
const timeout = 4 * time.Second

// patience bounds every wait, in virtual time.
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
	name    string
	make    func(s *bubble, via *zktest.Route) contender
	wantErr string // a text in the error, if the recipe has a bug
}

// withError returns the recipe with a text in the error of its bug.
func (r recipe) withError(text string) recipe {
	r.wantErr = text
	return r
}

// A bubble has a server and clients in a synctest bubble.
type bubble struct {
	*testing.T
	srv *zktest.Server
	op  *zk.Client // the operator's, without faults
}

// A participant is a contender with its own connection.
type participant struct {
	contender
	route *zktest.Route
}

// regress runs a schedule with zklock, for which it must return no error, and with a recipe that
// has the bug, for which it must return the expected error.
func regress(t *testing.T, schedule func(s *bubble, r recipe) error, sound, broken recipe) {
	t.Helper()
	runSchedule(t, sound.name, func(s *bubble) {
		if err := schedule(s, sound); err != nil {
			s.Error(err)
		}
	})
	var err error
	for range mostAttempts {
		runSchedule(t, broken.name, func(s *bubble) { err = schedule(s, broken) })
		// go-zookeeper fails requests between the end of a connection and the next attempt to
		// connect. Then it does not reach its bug.
		if !errors.Is(err, gozk.ErrNoServer) {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), broken.wantErr) {
		t.Errorf("%s: the schedule does not show the bug: %v; want %s", broken.name, err, broken.wantErr)
	}
}

// mostAttempts bounds how often a schedule runs until the recipe reaches its bug.
const mostAttempts = 10

func runSchedule(t *testing.T, name string, f func(s *bubble)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			s := &bubble{T: t, srv: srv, op: srv.Dial(t)}
			for _, parent := range []string{"/locks", dir} {
				s.create(parent, zk.ModePersistent)
			}
			f(s)
		})
	})
}

// add adds a contender.
func (s *bubble) add(r recipe) *participant {
	s.Helper()
	route := s.srv.Route(s.T)
	return &participant{r.make(s, route), route}
}

// create creates a znode as the operator.
func (s *bubble) create(path string, mode zk.CreateMode) string {
	s.Helper()
	made, _, err := s.op.Create(s.Context(), path, nil, nil, mode)
	if err != nil {
		s.Fatal(err)
	}
	return made
}

func (s *bubble) remove(path string) {
	s.Helper()
	if err := s.op.Delete(s.Context(), path, -1); err != nil {
		s.Fatal(err)
	}
}

// blocker creates the entry of another holder.
func (s *bubble) blocker() string {
	s.Helper()
	return s.create(dir+"/_c_00000000-0000-0000-0000-000000000000-lock-", zk.ModeEphemeralSequential)
}

// entries returns the names of a znode's children.
func (s *bubble) entries(below string) []string {
	s.Helper()
	names, _, err := s.op.Children(s.Context(), below)
	if err != nil {
		s.Fatal(err)
	}
	return names
}

// owner returns the session that owns an entry.
func (s *bubble) owner(name string) int64 {
	s.Helper()
	stat, ok, err := s.op.Exists(s.Context(), dir+"/"+name)
	if err != nil || !ok {
		s.Fatalf("%s: %v, %v", name, ok, err)
	}
	return stat.EphemeralOwner
}

// happened fails the test unless all faults have happened.
func (s *bubble) happened(faults ...*zktest.Fault) {
	s.Helper()
	synctest.Wait() // the relay counts a fault after it has happened
	for i, f := range faults {
		if f.Count() == 0 {
			s.Fatalf("fault %d did not happen", i)
		}
	}
}

// within calls f with a context that is done after patience.
func (s *bubble) within(f func(ctx context.Context) error) error {
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
	err  error // set before over
}

// begin starts an acquire and returns when it is blocked or has returned.
func (s *bubble) begin(ctx context.Context, p *participant) *attempt {
	a := &attempt{}
	go func() { // ends with the acquire
		a.err = p.acquire(ctx)
		a.over.Store(true)
	}()
	synctest.Wait()
	return a
}

// free returns an error unless another client can acquire the lock now.
func (s *bubble) free() error {
	s.Helper()
	other := s.add(mutex)
	if err := s.within(other.acquire); err != nil {
		return fmt.Errorf("no other client gets the lock: %w; there are %q", err, s.entries(dir))
	}
	return s.within(other.release)
}

// watches reports whether a frame is for a path or is setWatches. zklock sets its first watches
// on several znodes with setWatches.
func watches(f zktest.Frame, path string) bool { return f.Path == path || f.Op == "setWatches" }

// delays delays every request of the participant that watches a path by a second, and counts
// these requests.
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

// TestRegressionTableIsComplete checks that the table above has exactly the regression tests.
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
