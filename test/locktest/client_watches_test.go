package locktest

import (
	"slices"
	"testing"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestTwoKindsOfWatchOnOnePath is about what zk.Client.AddWatch documents: ZooKeeper
// 3.8 keeps one kind of watch of a session on a path (ZOOKEEPER-4466), so a recursive
// one silences an earlier ChildrenW, and ends when a later GetW fires. ZooKeeper 3.9 and
// the embedded server keep both.
func TestTwoKindsOfWatchOnOnePath(t *testing.T) {
	embedded := zktest.Start(t)
	installed := harness.StartServer(t, harness.ServerConfig{})
	newer := harness.StartServer(t, harness.ServerConfig{Release: harness.Release39})
	for name, env := range map[string]struct {
		target ClientTarget
		both   bool
	}{
		"ZooKeeper 3.8": {ClientTarget{Servers: installed.Addr()}, false},
		"ZooKeeper 3.9": {ClientTarget{Servers: newer.Addr()}, true},
		"embedded":      {ClientTarget{Servers: embedded.Servers(), DialContext: embedded.DialContext}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, env.target)
			told := f.follow(f.c)
			// The events of a change come before the answer to it.
			heard := func() []zk.Event {
				told.mu.Lock()
				defer told.mu.Unlock()
				defer func() { told.events = nil }()
				return told.events
			}
			a := f.make("a", "")
			_, _, children, err := f.c.ChildrenW(f.ctx, a)
			f.ok(err)
			f.ok(f.c.AddWatch(f.ctx, a, zk.WatchRecursive))
			b := f.make("a/b", "")
			created := func(e zk.Event) bool { return e.Type == zk.EventNodeCreated && e.Path == b }
			if got := heard(); !slices.ContainsFunc(got, created) {
				t.Errorf("the recursive watch told of %+v", got)
			}
			select {
			case e := <-children:
				if !env.both {
					t.Errorf("ChildrenW told of %+v", e)
				}
			default:
				if env.both {
					t.Error("ChildrenW told of nothing")
				}
			}
			c := f.make("c", "")
			f.ok(f.c.AddWatch(f.ctx, c, zk.WatchRecursive))
			_, _, _, err = f.c.GetW(f.ctx, c)
			f.ok(err)
			_, err = f.c.Set(f.ctx, c, nil, -1)
			f.ok(err)
			if len(heard()) == 0 {
				t.Error("nothing told of the first change")
			}
			_, err = f.c.Set(f.ctx, c, nil, -1)
			f.ok(err)
			if got := heard(); (len(got) > 0) != env.both {
				t.Errorf("of the second change told %+v", got)
			}
		})
	}
}
