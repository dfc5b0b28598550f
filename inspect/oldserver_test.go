package inspect

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestOldServers: servers that have no recursive watches, as before ZooKeeper 3.6, are
// asked now and then, and the survey says so.
func TestOldServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := zktest.Start(t)
		locks := zklock.New(srv.Dial(t), nil)
		defer locks.Close()
		s := NewWatcher(srv.Dial(t), &WatchOptions{RelistInterval: 5 * time.Second})
		defer s.Close()
		asked := 0
		s.watch = func(context.Context, string, zk.AddWatchMode) error {
			asked++
			return zk.ErrUnimplemented
		}
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }() // ends with ctx
		time.Sleep(time.Second)
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
		time.Sleep(6 * time.Second)
		if l := s.Snapshot().Lock("/zklock/m"); l != nil {
			t.Errorf("the lock that is free is shown as %+v", l)
		}
		if asked != 1 {
			t.Errorf("one session's servers were asked %d times whether they can", asked)
		}
		cancel()
		<-ended
	})
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
