package locktest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zklock/zklock/zktest"
)

// TestMissedWakeUp reproduces shayhatsor/zookeeper#26 of ZooKeeper's WriteLock, and
// apache/helix#44 of a copy: the holder releases between the waiter's listing and its watch. The
// watch is on a missing znode, and the waiter waits forever.
func TestMissedWakeUp(t *testing.T) {
	regress(t, func(s *bubble, r recipe) error {
		holder, p := s.blocker(), s.add(r)
		watches := p.delays(holder)
		a := s.begin(s.Context(), p)
		advance(time.Second / 2)
		if watches.Load() == 0 || len(s.entries(dir)) != 2 {
			s.Fatal("the watch is not in flight")
		}
		s.remove(holder)
		advance(2 * time.Second)
		return granted(a)
	}, mutex, flawed("ZooKeeper's WriteLock", waitsBlindly).withError("the waiter waits"))
}

// granted returns an error unless the acquire has succeeded.
func granted(a *attempt) error {
	if !a.over.Load() {
		return errors.New("the lock is free, and the waiter waits")
	}
	return a.err
}

// TestWakeUpBeforeTheWait reproduces the reports CURATOR-527 and CURATOR-641, although Curator's
// monitor should prevent this: the holder releases after the watch is set and before the waiter
// waits. The event arrives together with the answer to the watch.
func TestWakeUpBeforeTheWait(t *testing.T) {
	regress(t, func(s *bubble, r recipe) error {
		holder, p := s.blocker(), s.add(r)
		answers := 0
		p.route.DelayFunc(func(f zktest.Frame) time.Duration {
			if f.Direction == zktest.ToServer || !watches(f, holder) || f.Op == "notification" {
				return 0 // the event arrives after the answer
			}
			answers++ // the relay handles one frame at a time in each direction
			return time.Second
		})
		a := s.begin(s.Context(), p)
		advance(time.Second / 2)
		if answers == 0 {
			s.Fatal("the answer to the watch is not in flight")
		}
		s.remove(holder)
		advance(2 * time.Second)
		return granted(a)
	}, mutex, flawed("no monitor", losesEvent).withError("the waiter waits"))
}

// TestWatchOnANodeAlreadyGone reproduces CURATOR-107 and python-zk/kazoo#490: the client sets
// its watch by exists. If the znode is gone, the servers keep the watch until the session ends.
func TestWatchOnANodeAlreadyGone(t *testing.T) {
	regress(t, func(s *bubble, r recipe) error {
		const rounds = 5
		p := s.add(r)
		before := s.srv.Server().Stats().Watches
		for range rounds {
			holder := s.blocker()
			watches := p.delays(holder)
			a := s.begin(s.Context(), p)
			advance(time.Second / 2)
			if watches.Load() == 0 {
				s.Fatal("the watch is not in flight")
			}
			s.remove(holder)
			advance(2 * time.Second)
			if err := granted(a); err != nil {
				return err
			}
			if err := s.within(p.release); err != nil {
				return err
			}
		}
		advance(time.Second)
		if n := s.srv.Server().Stats().Watches - before; n > 0 {
			return fmt.Errorf("%d watches are left of %d acquires", n, rounds)
		}
		return nil
	}, mutex, flawed("kazoo 2.4", leavesWatch).withError("5 watches are left"))
}
