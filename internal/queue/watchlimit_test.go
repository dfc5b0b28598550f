package queue

import (
	"fmt"
	"testing"
	"time"
)

// newWatcher returns a connected core of a session with other users, or of its own.
func newWatcher(own bool) *Core {
	c := New(Config{
		OwnSession: own,
		GUID:       func() (g [16]byte) { return g },
		Jitter:     func() float64 { return 0.5 },
	})
	reconnect(c, 1)
	return c
}

func reconnect(c *Core, conn uint64) {
	c.Session(0, SessionChange{State: Connected, Session: 1, Timeout: 8 * time.Second, Conn: conn})
}

// answerAll answers all requests of the core with this code.
func answerAll(c *Core, code Code) {
	requests, _ := c.Take(nil, nil)
	for _, r := range requests {
		c.Reply(0, Reply{ID: r.ID, Code: code, Failed: -1, Conn: 1})
	}
}

// TestTryWithoutSizeWatchReadsAgain: a try that waits for the gate of a semaphore, and may not watch
// the stored size, reads it every second.
func TestTryWithoutSizeWatchReadsAgain(t *testing.T) {
	c := newWatcher(false)
	c.unusedSizeWatches = maxSizeWatches
	id := c.Acquire(time.Millisecond, Spec{Try: true, Semaphores: []Semaphore{{Path: "/s", Permits: 1}}})
	gate := "_c_00000000-0000-0000-0000-0000000000f9-lock-0000000003"
	for requests, _ := c.Take(nil, nil); len(requests) > 0; requests, _ = c.Take(nil, nil) {
		for _, r := range requests {
			a := Reply{ID: r.ID, Failed: -1, Conn: 1}
			switch {
			case r.Kind == Create:
				a.Made, a.Czxid, a.Owner = []string{r.Creates[0].Path + "0000000004"}, 50, 1
			case r.Kind == List && r.Path == GatePath("/s"):
				a.Children = []string{gate, baseOf(c.acquireByID(id).nodes()[0].path())}
			case r.Path == SizePath("/s"):
				a.Data = AppendSize(nil, 2)
			}
			c.Reply(time.Millisecond, a)
		}
	}
	if at := c.acquireByID(id).retryAt; at == 0 || at > time.Millisecond+sizePause {
		t.Errorf("the next read of the size is at %v", at)
	}
}

// TestLostRequestWatchesNoParent: requests for watches on parents that got no answer take none of
// the places that limit the number of such watches.
func TestLostRequestWatchesNoParent(t *testing.T) {
	c := newWatcher(true)
	for i := range maxParentWatches {
		parent := fmt.Sprint("/", i)
		c.watchParent(parent, c.parentWatchOf(parent))
	}
	c.Session(0, SessionChange{State: Disconnected})
	answerAll(c, Unknown)
	reconnect(c, 2)
	if c.parentWatchOf("/new") == nil {
		t.Errorf("%d watches are believed to be set", len(c.parentWatches))
	}
}

// TestRemovedSizeWatchWatchesNoParent: a lock has the path of a stored size. If the watch on the
// size is removed, the client does not rely on it as the watch on the lock's parent.
func TestRemovedSizeWatchWatchesNoParent(t *testing.T) {
	c := newWatcher(true)
	answerAll(c, OK)
	c.watchParent("/s/size", c.parentWatchOf("/s/size"))
	answerAll(c, OK)
	p := &position{sem: &Semaphore{Path: "/s"}}
	c.useSizeWatch(p)
	c.quitSizeWatch(p)
	answerAll(c, OK)
	if w := c.parentWatches["/s/size"]; w != nil && w.state == parentWatched {
		t.Error("the removed watch is believed to be set")
	}
}
