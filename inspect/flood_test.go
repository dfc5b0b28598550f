package inspect

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/zklock/zk"
	"github.com/zklock/zklock/zktest"
)

// TestFloodOfNewLocksIsBounded: a client creates entries below ever new parents, faster than
// the watcher reads. The watcher remembers a bounded number of them, and lists all locks
// again later. It searches its locks for one to drop at most once a second.
func TestFloodOfNewLocksIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewWatcher(zktest.Start(t).Dial(t), nil)
		defer s.Close()
		const many = maxTracks + 1000
		entry := func(i int) string {
			return fmt.Sprintf("/zklock/x%d/_c_%08x-0000-0000-0000-000000000000-lock-0000000000", i, i)
		}
		s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: entry(0)})
		s.onDrained()
		s.tracks["/zklock/x0"].changed = true // its release was read, and is not published
		for i := range many {
			s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: entry(i)})
			s.onEvent(zk.Event{Type: zk.EventNodeDeleted, Path: entry(i)})
		}
		s.onDrained()
		if len(s.tracks) != maxTracks || len(s.dirty) != maxTracks || !s.missedEvents() {
			t.Errorf("%d locks are remembered, %d are outdated, missed %v; want %d, and missed", len(s.tracks), len(s.dirty), s.missedEvents(), maxTracks)
		}
		for path, track := range s.tracks {
			track.dirty = time.Time{}
			track.changed = path == "/zklock/x0"
		}
		s.dirty = nil
		last := fmt.Sprintf("/zklock/x%d", many)
		s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: entry(many)})
		s.onDrained()
		if s.tracks[last] != nil {
			t.Error("the watcher searched its locks again within a second")
		}
		time.Sleep(time.Second)
		s.onEvent(zk.Event{Type: zk.EventNodeCreated, Path: entry(many)})
		s.onDrained()
		if s.tracks[last] == nil || s.tracks["/zklock/x0"] == nil {
			t.Error("the watcher does not follow a new lock in place of a free one, or dropped one that is not published")
		}
	})
}
