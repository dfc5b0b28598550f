package inspect

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zktest"
)

// TestOldServers checks that the watcher polls servers without recursive watches, as before
// ZooKeeper 3.6, and that it adds the watch after an upgrade.
func TestOldServers(t *testing.T) {
	for _, release := range []zktest.Release{zktest.Release34, zktest.Release35} {
		synctest.Test(t, func(t *testing.T) {
			srv := zktest.Start(t)
			srv.Imitate(release)
			locks := zklock.New(srv.Dial(t), nil)
			defer locks.Close()
			s := NewWatcher(srv.Dial(t), &WatchOptions{RelistInterval: 5 * time.Second})
			defer s.Close()
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }() // ends with ctx
			time.Sleep(3 * time.Second)         // the first listing loses its connection
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
			before, _ := s.connected(ctx)
			time.Sleep(time.Minute)
			if l := s.Snapshot().Lock("/zklock/m"); l != nil {
				t.Errorf("the lock that is free is shown as %+v", l)
			}
			if after, _ := s.connected(ctx); after != before {
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
			cancel()
			<-ended
		})
	}
}

// TestFailingWalks: walks that come to no end are begun anew, but ever less often. Here
// they fail as the prefix is no path.
func TestFailingWalks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewWatcher(zktest.Start(t).Dial(t), &WatchOptions{Prefix: "none", RelistInterval: 30 * time.Second})
		defer s.Close()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }() // ends with ctx
		time.Sleep(2*time.Minute + 500*time.Millisecond)
		// After 0, 1, 3, 7, 15, 31, 61 and 91 seconds.
		if n := s.Status().Reads; n < 6 || n > 9 {
			t.Errorf("%d walks of one read", n)
		}
		cancel()
		<-ended
	})
}
