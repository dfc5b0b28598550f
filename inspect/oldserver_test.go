package inspect

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// run runs a watcher until the test ends.
func run(t *testing.T, s *Watcher) {
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }() // ends with the test
	t.Cleanup(func() {
		<-ended
		_ = s.Close()
	})
}

// TestWatcherPollsOldServers checks that the watcher polls servers without recursive watches, as
// before ZooKeeper 3.6, and that it adds the watch after an upgrade.
func TestWatcherPollsOldServers(t *testing.T) {
	for _, release := range []zktest.Release{zktest.Release34, zktest.Release35} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			srv.Imitate(release)
			locks := zklock.New(srv.Dial(t), nil)
			defer locks.Close()
			s := NewWatcher(srv.Dial(t), &WatchOptions{RelistInterval: 5 * time.Second})
			run(t, s)
			time.Sleep(3 * time.Second) // the first listing loses its connection
			if status := s.Status(); status.Watching || !status.Listed || !status.Complete {
				t.Errorf("%+v", status)
			}
			hold, err := locks.Mutex("m").Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * time.Second)
			if l := s.Snapshot().Lock("/zklock/m"); l == nil || len(l.Holders()) != 1 {
				t.Errorf("the lock is shown as %+v", l)
			}
			if err := hold.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			before, _ := s.connected(t.Context())
			time.Sleep(time.Minute)
			if l := s.Snapshot().Lock("/zklock/m"); l != nil {
				t.Errorf("the lock that is free is shown as %+v", l)
			}
			if after, _ := s.connected(t.Context()); after != before {
				t.Errorf("connection %d, then %d: the watcher asks old servers again", before, after)
			}

			srv.Imitate(zktest.Newest)
			srv.CutConnections()
			time.Sleep(10 * time.Second)
			if status := s.Status(); status.Watching != (release == zktest.Release34) { // no request tells 3.6 from 3.5
				t.Errorf("after the upgrade: %+v", status)
			}
			if err := srv.ExpireClient(s.z); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
			if status := s.Status(); !status.Watching {
				t.Errorf("in the next session: %+v", status)
			}

			srv.Imitate(release)
			srv.CutConnections()
			time.Sleep(10 * time.Second)
			if status := s.Status(); status.Watching || !status.Connected {
				t.Errorf("after the downgrade: %+v", status)
			}
		})
	}
}

// TestOldServerIsAskedOnceAfterReconnecting checks that the watcher asks a server without
// recursive watches only once for one after a lost connection, while it reads the known
// locks again at its rate.
func TestOldServerIsAskedOnceAfterReconnecting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		srv.Imitate(zktest.Release35)
		op := srv.Dial(t)
		for i := range 40 {
			path := fmt.Sprintf("/zklock/%d", i)
			if err := op.EnsurePath(t.Context(), path, nil); err != nil {
				t.Fatal(err)
			}
			if _, _, err := op.Create(t.Context(), path+"/_c_6b1f0bd6-1f4b-4a9c-8b57-d0ce1a3c6c8d-lock-", nil, nil, zk.ModePersistentSequential); err != nil {
				t.Fatal(err)
			}
		}
		s := NewWatcher(srv.Dial(t), &WatchOptions{MaxReadRate: 1})
		run(t, s)
		time.Sleep(5 * time.Second) // after the first listing
		if n := len(s.Snapshot().Locks); n != 40 {
			t.Fatalf("%d locks", n)
		}
		srv.Delay(time.Millisecond)
		before := srv.Server().Stats().Received
		srv.CutConnections()
		time.Sleep(10 * time.Second) // less than RelistInterval
		if n := srv.Server().Stats().Received - before; n > 200 {
			t.Errorf("%d requests in 10 s", n)
		}
		srv.Delay(0)
	})
}

// TestFailedListingsBackOff checks that the watcher repeats failed listings at growing intervals.
// Here they fail because the prefix is no path.
func TestFailedListingsBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewWatcher(zktest.Start(t).Dial(t), &WatchOptions{Prefix: "none", RelistInterval: 30 * time.Second})
		run(t, s)
		time.Sleep(2*time.Minute + 500*time.Millisecond)
		// After 0, 1, 3, 7, 15, 31, 61 and 91 seconds.
		if n := s.Status().Reads; n < 6 || n > 9 {
			t.Errorf("%d listings of one read", n)
		}
	})
}

// TestPolledValueIsShown checks that a listing shows the value that a waiter set when it became the
// holder, before the next listing.
func TestPolledValueIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const interval = 30 * time.Second
		srv := zktest.Start(t)
		srv.Imitate(zktest.Release34)
		locks, other := zklock.New(srv.Dial(t), nil), zklock.New(srv.Dial(t), nil)
		defer locks.Close()
		defer other.Close()
		hold, err := locks.Mutex("m").Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		next := make(chan *zklock.Hold, 1)
		go func() { // ends with the acquire
			h, err := other.Mutex("m").Acquire(t.Context())
			if err != nil {
				t.Error(err)
			}
			next <- h
		}()
		time.Sleep(time.Second)
		s := NewWatcher(srv.Dial(t), &WatchOptions{RelistInterval: interval})
		run(t, s)
		time.Sleep(interval / 2)
		if l := s.Snapshot().Lock("/zklock/m"); l == nil || len(l.Entries) != 2 {
			t.Fatalf("the lock is shown as %+v", l)
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		hold = <-next
		if err := hold.SetValue(t.Context(), "new"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(interval)
		if l := s.Snapshot().Lock("/zklock/m"); l == nil || l.Entries[0].Value != "new" {
			t.Errorf("after the next listing, the lock is shown as %+v", l)
		}
		if err := hold.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestLossesAreCountedWithoutZxids checks that the watcher counts the holds of a session that
// expired as lost although the events do not tell the transaction, as before ZooKeeper 3.9.
func TestLossesAreCountedWithoutZxids(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		z := srv.Dial(t)
		c := zklock.New(z, nil)
		defer c.Close()
		s := NewWatcher(srv.Dial(t), nil)
		defer s.Close()
		var nodes []string
		for _, name := range []string{"a", "b"} {
			hold, err := c.Mutex(name).Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			nodes = append(nodes, hold.Node())
		}
		events := func(typ zk.EventType) {
			for _, node := range nodes {
				s.onEvent(zk.Event{Type: typ, Path: node})
			}
			s.onDrained()
			time.Sleep(time.Second)
			s.work(t.Context())
		}
		s.onState(zk.StateChange{State: zk.Connected, Conn: 1})
		events(zk.EventNodeCreated)
		if err := srv.ExpireClient(z); err != nil {
			t.Fatal(err)
		}
		events(zk.EventNodeDeleted)
		if h := s.History(""); h.Releases != 2 || h.Losses != 2 {
			t.Errorf("%d releases and %d losses, want 2 of 2", h.Releases, h.Losses)
		}
	})
}
