package locktest

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestLocksOnOldServers runs the tests through a relay that imitates old servers.
func TestLocksOnOldServers(t *testing.T) {
	t.Run("3.5", func(t *testing.T) { onOldServers(t, zktest.Release35, Kind{}) })
	for _, kind := range append(Kinds(), Kind{Name: "mutex"}) {
		t.Run("3.4 "+kind.Name, func(t *testing.T) { onOldServers(t, zktest.Release34, kind) })
	}
}

func onOldServers(t *testing.T, release zktest.Release, kind Kind) {
	RunLocksInBubbles(t, func(t *testing.T) LockTarget {
		srv := zktest.Start(t)
		srv.Imitate(release)
		return LockTarget{Servers: srv.Servers(), DialContext: srv.DialContext, SessionTimeout: bubbleTimeout, Kind: kind}
	})
}

// holdsOf acquires and releases a lock of each kind, and checks that each token is the czxid of
// its znode. It returns the largest token.
func (e *env) holdsOf(c *zklock.Client, op *zk.Client, name string) (last int64) {
	e.Helper()
	for _, l := range []*zklock.Lock{
		c.Mutex(name + "/mutex"), c.RWMutex(name + "/rw").Writer(), c.RWMutex(name + "/rw").Reader(), c.NodeLock(name + "/node"),
		c.Semaphore(name+"/permits", 3).Permits(2), zklock.All(c.Mutex(name+"/a"), c.RWMutex(name+"/b").Reader()),
	} {
		h := e.acquire(l)
		for _, node := range h.Nodes() {
			stat, there, err := op.Exists(e.ctx, node)
			if err != nil || !there || stat.Czxid != h.Token() || h.Token() <= last {
				e.Errorf("%s: token %d after %d, czxid %d, there %v, %v", node, h.Token(), last, stat.Czxid, there, err)
			}
		}
		last = h.Token()
		e.release(h)
	}
	return last
}

// TestTokensOnOldServers checks tokens on servers whose answer to a create has no Stat, and on
// servers with an older leader, which close the connection instead of answering.
func TestTokensOnOldServers(t *testing.T) {
	for _, release := range []zktest.Release{zktest.Release34, zktest.Release35, zktest.Leader34} {
		inBubble(t, func(e *env, srv *zktest.Server) {
			op := srv.Dial(e.T)
			route := srv.Route(e.T)
			route.Imitate(release)
			c := zklock.New(route.Dial(e.T), e.options())
			defer c.Close()
			first := e.holdsOf(c, op, "/locks")
			if again := e.holdsOf(c, op, "/locks"); again <= first {
				e.Errorf("token %d after %d", again, first)
			}
		})
	}
}

// TestTokenOfRetriedCreateOnOldServer checks the token of a node lock after the answer to its
// create was lost. The next create finds the znode, and the header of its answer has a later
// zxid. So the client must read the czxid.
func TestTokenOfRetriedCreateOnOldServer(t *testing.T) {
	for _, release := range []zktest.Release{zktest.Newest, zktest.Release34} {
		inBubble(t, func(e *env, srv *zktest.Server) {
			op := srv.Dial(e.T)
			route := srv.Route(e.T)
			route.Imitate(release)
			c := zklock.New(route.Dial(e.T), e.options())
			defer c.Close()
			e.release(e.acquire(c.NodeLock("/n"))) // the client learns the release of the server
			lost := route.DropReply(zktest.Match{Op: "create"})
			h := e.acquire(c.NodeLock("/n"))
			stat, there, err := op.Exists(e.ctx, h.Node())
			if err != nil || !there || stat.Czxid != h.Token() || lost.Count() != 1 {
				e.Errorf("token %d, czxid %d, there %v, %d lost answers, %v", h.Token(), stat.Czxid, there, lost.Count(), err)
			}
			e.release(h)
		})
	}
}

// TestRollingUpgradeFromOldServers upgrades and downgrades the servers of a client that holds
// one lock and uses others. The client must send requests of 3.5 only to servers that know them.
func TestRollingUpgradeFromOldServers(t *testing.T) {
	inBubble(t, func(e *env, srv *zktest.Server) {
		op := srv.Dial(e.T)
		route := srv.Route(e.T)
		c := zklock.New(route.Dial(e.T), e.options())
		defer c.Close()
		var containers atomic.Int64 // created containers
		route.DelayFunc(func(f zktest.Frame) time.Duration {
			if f.Direction == zktest.ToClient && f.Op == "createContainer" {
				containers.Add(1)
			}
			return 0
		})
		route.Imitate(zktest.Release34)
		held := e.acquire(c.Mutex("/held"))
		last := held.Token()
		for _, step := range []struct {
			name      string
			release   zktest.Release
			container bool
		}{
			{"/old", zktest.Release34, false},
			{"/upgraded", zktest.Newest, true},
			{"/leader", zktest.Leader34, false},
			{"/back", zktest.Release34, false},
		} {
			route.Imitate(step.release)
			route.CutConnections()
			time.Sleep(time.Second)
			containers.Store(0)
			token := e.holdsOf(c, op, step.name)
			if token <= last {
				e.Errorf("%s: token %d after %d", step.name, token, last)
			}
			last = token
			if n := containers.Load(); n > 0 != step.container {
				e.Errorf("%s: %d containers", step.name, n)
			}
			if err := held.Verify(e.ctx); err != nil {
				e.Errorf("%s: %v", step.name, err)
			}
		}
		e.release(held)
	})
}

// TestRollingUpgrade checks that clients keep their holds and their positions in the queue while
// the servers of an ensemble are upgraded one by one, the leader last.
func TestRollingUpgrade(t *testing.T) {
	cluster := harness.StartEnsemble(t, 3, harness.ServerConfig{
		Release: harness.Release34, TickTime: 3 * time.Second,
		Extra: map[string]string{"snapshot.trust.empty": "true"}, // a new 3.4 server has no snapshot
	})
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	o := &zklock.Options{SessionTimeout: time.Minute, PersistentParents: true}
	h := &holder{path: "upgrade/lock"}
	h.acquireAndQueue(t, ctx, dial(t, ctx, cluster.ConnectString(), o), dial(t, ctx, cluster.ConnectString(), o))
	last := h.hold.Token()
	for _, release := range []string{"", harness.Release39} {
		upgrade(t, ctx, cluster, release)
		if err := h.hold.Verify(ctx); err != nil {
			t.Fatalf("after the upgrade to %q: %v", release, err)
		}
		// Requests that 3.4 does not know work after all servers are newer.
		again := dial(t, ctx, cluster.ConnectString(), nil)
		other, err := again.Mutex("upgrade/to" + release).Acquire(ctx)
		if err != nil {
			t.Fatalf("after the upgrade to %q: %v", release, err)
		}
		if other.Token() <= last {
			t.Fatalf("after the upgrade to %q: token %d after %d", release, other.Token(), last)
		}
		last = other.Token()
		if err := other.Release(ctx); err != nil {
			t.Fatal(err)
		}
	}
	h.handOver(t, ctx)
}

// upgrade restarts each server of an ensemble with another release, its leader last.
func upgrade(t *testing.T, ctx context.Context, cluster *harness.Ensemble, release string) {
	t.Helper()
	leader, err := cluster.WaitLeader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	servers := slices.DeleteFunc(slices.Clone(cluster.Servers), func(s *harness.Server) bool { return s == leader })
	for _, s := range append(servers, leader) {
		s.SetRelease(t, release)
		if err := s.Terminate(ctx); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(ctx); err != nil {
			t.Fatal(err)
		}
		answer, err := harness.FourLetter(ctx, s.Addr(), "srvr")
		version := harness.FourLetterField(answer, "Zookeeper version")
		if err != nil || !strings.HasPrefix(version, release) || strings.HasPrefix(version, harness.Release34) {
			t.Fatalf("after the upgrade to %q, the server is of %q: %v", release, version, err)
		}
	}
}
