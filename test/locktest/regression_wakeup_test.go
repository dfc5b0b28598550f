package locktest_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zklock/zklock/zktest"
)

// TestMissedWakeUp is shayhatsor/zookeeper#26 of the WriteLock that comes with
// ZooKeeper, and apache/helix#44 of a copy: the holder goes between the waiter's
// listing and its watch, which then is on nothing; the waiter waits for ever.
func TestMissedWakeUp(t *testing.T) {
	regress(t, func(s *scene, r recipe) error {
		holder, p := s.blocker(), s.enter(r)
		watches := p.delays(holder)
		a := s.begin(s.Context(), p)
		advance(time.Second / 2)
		if watches.Load() == 0 || len(s.entries(dir)) != 2 {
			s.Fatal("the watch is not under way")
		}
		s.remove(holder)
		advance(2 * time.Second)
		return granted(a)
	}, mutex, flawed("ZooKeeper's WriteLock", waitsBlindly).showing("the waiter waits"))
}

// granted returns an error unless the acquire has succeeded.
func granted(a *attempt) error {
	if !a.over.Load() {
		return errors.New("the lock is free, and the waiter waits")
	}
	return a.err
}

// TestWakeUpBeforeTheWait is what CURATOR-527 and CURATOR-641 say of Curator, whose
// monitor should prevent it: the holder goes when the watch is set and the waiter
// does not wait yet. The event comes with the watch's answer, in one piece.
func TestWakeUpBeforeTheWait(t *testing.T) {
	regress(t, func(s *scene, r recipe) error {
		holder, p := s.blocker(), s.enter(r)
		answers := 0
		p.route.DelayFunc(func(f zktest.Frame) time.Duration {
			if f.Direction == zktest.ToServer || !watches(f, holder) || f.Op == "notification" {
				return 0 // the event still comes after the answer
			}
			answers++ // only one frame at a time passes in a direction
			return time.Second
		})
		a := s.begin(s.Context(), p)
		advance(time.Second / 2)
		if answers == 0 {
			s.Fatal("the watch's answer is not under way")
		}
		s.remove(holder)
		advance(2 * time.Second)
		return granted(a)
	}, mutex, flawed("no monitor", losesEvent).showing("the waiter waits"))
}

// TestWatchOnANodeAlreadyGone is CURATOR-107 and python-zk/kazoo#490: the watch is set
// by exists, which leaves one for ever on a znode whose name never comes again.
// The servers keep it for as long as the session lasts.
func TestWatchOnANodeAlreadyGone(t *testing.T) {
	regress(t, func(s *scene, r recipe) error {
		const rounds = 5
		p := s.enter(r)
		before := s.srv.Server().Stats().Watches
		for range rounds {
			holder := s.blocker()
			watches := p.delays(holder)
			a := s.begin(s.Context(), p)
			advance(time.Second / 2)
			if watches.Load() == 0 {
				s.Fatal("the watch is not under way")
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
	}, mutex, flawed("kazoo 2.4", leavesWatch).showing("5 watches are left"))
}
