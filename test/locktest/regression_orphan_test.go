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

// TestOrphanAfterFailedCreate is samuel/go-zookeeper#229, which go-zookeeper 1.0.4
// still has if the answer to the listing is lost: the znode is created, and Lock
// returns the error and forgets the znode. While the session is alive, no client gets
// the lock any more, not even this one.
func TestOrphanAfterFailedCreate(t *testing.T) {
	regress(t, func(s *scene, r recipe) error {
		p := s.enter(r)
		listing := p.route.DropReply(zktest.Match{Path: dir, Skip: 1})
		if err := s.within(p.acquire); err == nil {
			if err := s.within(p.release); err != nil {
				return err
			}
		}
		s.happened(listing)
		advance(time.Second)
		return s.left(p, dir)
	}, mutex, goZookeeper.showing("left are"))
}

// left returns an error if a participant that holds nothing has left an entry, while its
// session is alive.
func (s *scene) left(p *participant, below string) error {
	s.Helper()
	if p.route.Connections() == 0 {
		s.Fatal("the client has disconnected, and its session may have ended")
	}
	if names := s.entries(below); len(names) > 0 {
		return fmt.Errorf("left are %q", names)
	}
	return s.free()
}

// TestOrphanAfterCancel is CURATOR-79 (and CURATOR-18 of its LeaderLatch): an
// acquire that is cancelled during the create leaves its znode, which no client deletes
// while the session is alive.
func TestOrphanAfterCancel(t *testing.T) {
	regress(t, func(s *scene, r recipe) error {
		p := s.enter(r)
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
		return s.left(p, dir)
	}, mutex, flawed("Curator 2.3", abandonsCreate).showing("left are"))
}

// TestOrphanAfterLostCleanup is python-zk/kazoo#732: an acquire that gives up tries
// once to delete its znode, and takes no notice if that fails.
func TestOrphanAfterLostCleanup(t *testing.T) {
	regress(t, func(s *scene, r recipe) error {
		holder, p := s.blocker(), s.enter(r)
		ctx, cancel := context.WithCancel(s.Context())
		a := s.begin(ctx, p)
		if n := len(s.entries(dir)); n != 2 {
			s.Fatalf("%d entries while one waits", n)
		}
		// Whatever it deletes with, a delete or a multi.
		cleanup := p.route.DropRequest(zktest.Match{Path: dir + "/_c_"})
		cancel()
		advance(time.Second)
		if !a.over.Load() || a.err == nil {
			s.Fatalf("after the cancel: over %v, %v", a.over.Load(), a.err)
		}
		s.happened(cleanup)
		s.remove(holder)
		return s.left(p, dir)
	}, mutex, flawed("kazoo", cleansUpOnce).showing("left are"))
}

// TestTwoNodesOfOneSession is the reason of etcd-io/etcd#5199, which names keys after
// leases, and CURATOR-3 of LeaderLatch: a create whose answer is lost is done
// again, and the client waits for its own first znode.
func TestTwoNodesOfOneSession(t *testing.T) {
	regress(t, func(s *scene, r recipe) error {
		p := s.enter(r)
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
	}, mutex, flawed("etcd 2", repeatsCreate).showing("the lock is free, and not granted"))
}

// TestAdoptedNodeOfADyingSession is CURATOR-498, from which CURATOR-604 had two
// holders: after a create whose outcome is unknown, the client finds a znode with
// its own mark and takes it for its own, though it belongs to a session that is
// about to end, with the znode. go-zookeeper 1.0.4 has it.
func TestAdoptedNodeOfADyingSession(t *testing.T) {
	regress(t, func(s *scene, r recipe) error {
		p := s.enter(r)
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
		// What a follower shows that has not heard of that session's end.
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
	}, mutex, goZookeeper.showing("granted next to"))
}
