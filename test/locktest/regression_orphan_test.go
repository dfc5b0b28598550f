package locktest_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestOrphanAfterFailedCreate reproduces samuel/go-zookeeper#229. With go-zookeeper 1.0.4, it
// still happens if the answer to the listing is lost: the znode exists, and Lock returns an
// error and forgets the znode. While the session is alive, no client gets the lock, not even
// this one.
func TestOrphanAfterFailedCreate(t *testing.T) {
	regress(t, func(s *bubble, r recipe) error {
		p := s.add(r)
		listing := p.route.DropReply(zktest.Match{Path: dir, Skip: 1})
		if err := s.within(p.acquire); err == nil {
			if err := s.within(p.release); err != nil {
				return err
			}
		}
		s.happened(listing)
		advance(time.Second)
		return s.entryLeft(p, dir)
	}, mutex, goZookeeper.withError("left are"))
}

// entryLeft returns an error if a participant without a hold has left an entry while its session is
// alive.
func (s *bubble) entryLeft(p *participant, below string) error {
	s.Helper()
	if p.route.Connections() == 0 {
		s.Fatal("the client has disconnected, and its session may have ended")
	}
	if names := s.entries(below); len(names) > 0 {
		return fmt.Errorf("left are %q", names)
	}
	return s.free()
}

// TestOrphanAfterCancel reproduces CURATOR-79 (and CURATOR-18 of its LeaderLatch): an acquire
// that is cancelled during the create leaves its znode, which no client deletes while the
// session is alive.
func TestOrphanAfterCancel(t *testing.T) {
	regress(t, func(s *bubble, r recipe) error {
		p := s.add(r)
		ctx, cancel := context.WithCancel(s.Context())
		create := p.route.DropReply(zktest.Match{Op: "create2", Path: dir})
		go func() { // ends with the fault
			<-create.Done()
			cancel()
		}()
		if err := p.acquire(ctx); err == nil {
			s.Fatal("granted before the cancel")
		}
		s.happened(create)
		advance(time.Second)
		return s.entryLeft(p, dir)
	}, mutex, flawed("Curator 2.3", abandonsCreate).withError("left are"))
}

// TestOrphanAfterLostCleanup reproduces python-zk/kazoo#732: a cancelled acquire tries once to
// delete its znode, and ignores a failure.
func TestOrphanAfterLostCleanup(t *testing.T) {
	regress(t, func(s *bubble, r recipe) error {
		holder, p := s.blocker(), s.add(r)
		ctx, cancel := context.WithCancel(s.Context())
		a := s.begin(ctx, p)
		if n := len(s.entries(dir)); n != 2 {
			s.Fatalf("%d entries while one waits", n)
		}
		// The client uses a delete or a multi.
		cleanup := p.route.DropRequest(zktest.Match{Path: dir + "/_c_"})
		cancel()
		advance(time.Second)
		if !a.over.Load() || a.err == nil {
			s.Fatalf("after the cancel: over %v, %v", a.over.Load(), a.err)
		}
		s.happened(cleanup)
		s.remove(holder)
		return s.entryLeft(p, dir)
	}, mutex, flawed("kazoo", cleansUpOnce).withError("left are"))
}

// TestTwoNodesOfOneSession reproduces CURATOR-3 of LeaderLatch, and the reason for
// etcd-io/etcd#5199, which names keys after leases: a client repeats a create whose answer was
// lost, and waits for its own first znode.
func TestTwoNodesOfOneSession(t *testing.T) {
	regress(t, func(s *bubble, r recipe) error {
		p := s.add(r)
		create := p.route.DropReply(zktest.Match{Op: "create2", Path: dir})
		err := s.within(p.acquire)
		s.happened(create)
		if err != nil {
			return fmt.Errorf("the lock is free, and not granted: %w; there are %q", err, s.entries(dir))
		}
		advance(time.Second)
		if names := s.entries(dir); len(names) != 1 {
			return fmt.Errorf("held by %q", names)
		}
		return s.within(p.release)
	}, mutex, flawed("etcd 2", repeatsCreate).withError("the lock is free, and not granted"))
}

// TestAdoptedNodeOfADyingSession reproduces CURATOR-498, which led to two holders in
// CURATOR-604: after a create of unknown outcome, the client finds a znode with its own mark
// and uses it. But the znode belongs to a session that is about to end. go-zookeeper 1.0.4 has
// this bug.
func TestAdoptedNodeOfADyingSession(t *testing.T) {
	regress(t, func(s *bubble, r recipe) error {
		p := s.add(r)
		var marked atomic.Value
		p.route.DelayFunc(func(f zktest.Frame) time.Duration {
			if f.Direction == zktest.ToServer && (f.Op == "create" || f.Op == "create2") {
				marked.CompareAndSwap(nil, f.Path)
			}
			return 0
		})
		create := p.route.DropRequest(zktest.Match{Path: dir + "/_c_"})
		go func() { // ends with the fault
			<-create.Done()
			p.route.Refuse(true)
		}()
		a := s.begin(s.Context(), p)
		s.happened(create)
		// A follower that does not know the end of that session shows such a znode.
		dying := s.srv.Dial(s.T)
		old, _, err := dying.Create(s.Context(), marked.Load().(string), nil, nil, zk.ModeEphemeralSequential)
		if err != nil {
			s.Fatal(err)
		}
		p.route.Refuse(false)
		advance(2 * time.Second)
		for _, name := range s.entries(dir) {
			if p.held() && s.owner(name) == dying.SessionID() {
				return fmt.Errorf("granted next to %s, which belongs to another session", old)
			}
		}
		if err := dying.Close(); err != nil {
			s.Fatal(err)
		}
		advance(2 * time.Second)
		if err := granted(a); err != nil {
			return err
		}
		if names := s.entries(dir); len(names) != 1 || s.owner(names[0]) == 0 {
			return fmt.Errorf("held by %q", names)
		}
		return s.within(p.release)
	}, mutex, goZookeeper.withError("granted next to"))
}
