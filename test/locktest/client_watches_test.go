package locktest

import (
	"slices"
	"testing"

	"github.com/zklock/zklock/test/harness"
	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestTwoKindsOfWatchOnOnePath checks a limit that zk.Client.AddWatch documents. ZooKeeper 3.8
// keeps one kind of watch per session and path (ZOOKEEPER-4466). So a recursive watch silences
// an earlier ChildrenW, and ends when a later GetW fires. ZooKeeper 3.9 and the embedded
// server keep both.
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
			received := f.follow(f.c)
			// The events of a change arrive before its answer.
			events := func() []zk.Event {
				received.mu.Lock()
				defer received.mu.Unlock()
				defer func() { received.events = nil }()
				return received.events
			}
			a := f.make("a", "")
			_, _, children, err := f.c.ChildrenW(f.ctx, a)
			f.ok(err)
			f.ok(f.c.AddWatch(f.ctx, a, zk.WatchRecursive))
			b := f.make("a/b", "")
			created := func(e zk.Event) bool { return e.Type == zk.EventNodeCreated && e.Path == b }
			if got := events(); !slices.ContainsFunc(got, created) {
				t.Errorf("events of the recursive watch: %+v", got)
			}
			select {
			case e := <-children:
				if !env.both {
					t.Errorf("event of ChildrenW: %+v", e)
				}
			default:
				if env.both {
					t.Error("no event of ChildrenW")
				}
			}
			c := f.make("c", "")
			f.ok(f.c.AddWatch(f.ctx, c, zk.WatchRecursive))
			_, _, _, err = f.c.GetW(f.ctx, c)
			f.ok(err)
			_, err = f.c.Set(f.ctx, c, nil, -1)
			f.ok(err)
			if len(events()) == 0 {
				t.Error("no event of the first change")
			}
			_, err = f.c.Set(f.ctx, c, nil, -1)
			f.ok(err)
			if got := events(); (len(got) > 0) != env.both {
				t.Errorf("events of the second change: %+v", got)
			}
		})
	}
}
