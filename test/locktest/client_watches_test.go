package locktest

import (
	"fmt"
	"slices"
	"sync"
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
	for name, env := range map[string]struct {
		servers string
		opts    *zk.Options
		both    bool
	}{
		"ZooKeeper 3.8": {harness.StartServer(t, harness.ServerConfig{}).Addr(), nil, false},
		"ZooKeeper 3.9": {harness.StartServer(t, harness.ServerConfig{Release: harness.Release39}).Addr(), nil, true},
		"embedded":      {embedded.Servers(), &zk.Options{DialContext: embedded.DialContext}, true},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := zk.Dial(t.Context(), env.servers, env.opts)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			w := watched{t: t, c: c}
			c.Listen(zk.Listener{Event: func(e zk.Event) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.events = append(w.events, fmt.Sprint(e.Type, " ", e.Path))
			}})
			w.create("/a")
			_, _, children, err := c.ChildrenW(t.Context(), "/a")
			if err != nil {
				t.Fatal(err)
			}
			w.addWatch("/a")
			w.create("/a/b")
			if got := w.heard(); !slices.Contains(got, fmt.Sprint(zk.EventNodeCreated, " /a/b")) {
				t.Errorf("the recursive watch told of %q", got)
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
			w.create("/c")
			w.addWatch("/c")
			if _, _, _, err := c.GetW(t.Context(), "/c"); err != nil {
				t.Fatal(err)
			}
			w.set("/c")
			if got := w.heard(); len(got) == 0 {
				t.Error("nothing told of the first change")
			}
			w.set("/c")
			if got := w.heard(); (len(got) > 0) != env.both {
				t.Errorf("of the second change told %q", got)
			}
		})
	}
}

// watched is a client and its events.
type watched struct {
	t *testing.T
	c *zk.Client

	mu     sync.Mutex // guards events
	events []string
}

func (w *watched) create(path string) {
	w.t.Helper()
	if _, _, err := w.c.Create(w.t.Context(), path, nil, nil, zk.ModePersistent); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) addWatch(path string) {
	w.t.Helper()
	if err := w.c.AddWatch(w.t.Context(), path, zk.WatchRecursive); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) set(path string) {
	w.t.Helper()
	if _, err := w.c.Set(w.t.Context(), path, nil, -1); err != nil {
		w.t.Fatal(err)
	}
}

// heard returns the events since its last call. The events of a change come before the
// answer to it.
func (w *watched) heard() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer func() { w.events = nil }()
	return w.events
}
